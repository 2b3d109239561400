// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	objects "github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// suffixEnvoy is part of the name in Envoys' certificate, which has no Secret.
	suffixEnvoy = "-envoy"

	// suffixEDS is of the Service that Envoys dial.
	suffixEDS = "-eds"

	// Keys of the Secret with all certificates, beside those of kubernetes.io/tls, which hold the
	// server's.
	keyCA         = "ca.crt"
	keyCAKey      = "ca.key"
	keyClientCert = "client.crt"
	keyClientKey  = "client.key"
	keyEnvoyCert  = "envoy.crt"
	keyEnvoyKey   = "envoy.key"

	// syncInterval is the interval at which a replica reads the Secrets, and finds those that
	// another replica renewed.
	syncInterval = time.Minute

	// retryInterval is the pause after a failure at the start.
	retryInterval = 2 * time.Second

	// attempts is the number of attempts if others write at the same time.
	attempts = 5
)

// A Keeper keeps the certificates of an extension.
type Keeper struct {
	kube            typedcorev1.CoreV1Interface
	namespace, name string
	names           names
	log             logging.Logger
	clock           func() time.Time

	current atomic.Pointer[held]
}

// held is the current state of a Keeper.
type held struct {
	set    set
	server *tls.Certificate
}

// NewKeeper returns the Keeper of an extension whose ServiceAccount and Service have that name. The
// ServiceAccount owns the Secrets, which the provider has created without certificates.
func NewKeeper(kube typedcorev1.CoreV1Interface, namespace, name string, log logging.Logger) *Keeper {
	k := &Keeper{kube: kube, namespace: namespace, name: name, log: log, clock: time.Now, names: names{client: objects.ExtensionClient(name), envoy: name + suffixEnvoy}}
	for _, service := range []string{name, name + suffixEDS} {
		host := service + "." + namespace
		k.names.server = append(k.names.server, host+".svc", host, host+".svc.cluster.local")
	}
	// gRPC uses localhost as the name of the server at a Unix socket.
	k.names.server = append(k.names.server, "localhost")
	k.names.authority = k.names.server[0]
	return k
}

// Start waits until there are certificates, or until ctx ends.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		err := k.sync(ctx)
		if err == nil {
			return nil
		}
		k.log.Info("Cannot get certificates; will try again", "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryInterval):
		}
	}
}

// Run renews certificates, and reads those that another replica has renewed, until ctx ends. It
// calls changed after each change.
func (k *Keeper) Run(ctx context.Context, changed func()) error {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		previous := k.current.Load()
		if err := k.sync(ctx); err != nil {
			k.log.Info("Cannot renew certificates; the current ones stay", "error", err)
			continue
		}
		if k.current.Load() != previous {
			k.log.Info("Certificates have changed")
			changed()
		}
	}
}

// Get returns the certificate of the servers (serve.CertificateFn).
func (k *Keeper) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.current.Load().server, nil
}

// CA returns the authorities of all these certificates, in PEM.
func (k *Keeper) CA() ([]byte, error) { return k.current.Load().set.ca, nil }

// Envoy returns the pair that Envoys present.
func (k *Keeper) Envoy() Pair { return k.current.Load().set.envoy }

// ClientName returns the name in Envoy Gateway's certificate, which is also the name of its Secret.
// tls.crt in this Secret has the authority too, so that Envoy Gateway's configuration may name it
// for both.
func (k *Keeper) ClientName() string { return k.names.client }

// EnvoyName returns the name in Envoys' certificate.
func (k *Keeper) EnvoyName() string { return k.names.envoy }

// sync reads the Secrets, makes missing certificates, and renews those that are due.
func (k *Keeper) sync(ctx context.Context) error {
	s, err := k.agreed(ctx)
	if err != nil {
		return err
	}
	if err := k.publish(ctx, s); err != nil {
		return err
	}
	if c := k.current.Load(); c != nil && maps.EqualFunc(c.set.data(), s.data(), bytes.Equal) {
		return nil
	}
	pair, err := tls.X509KeyPair(s.server.Cert, s.server.Key)
	if err != nil {
		return errors.Wrap(err, "cannot use certificate")
	}
	k.current.Store(&held{set: s, server: &pair})
	return nil
}

// agreed returns the certificates that all replicas use.
func (k *Keeper) agreed(ctx context.Context) (set, error) {
	var last error
	for range attempts {
		o, err := k.get(ctx, objects.ExtensionCertificates(k.name))
		if err != nil {
			return set{}, err
		}
		s, changed, err := setOf(o.Data).renewed(k.names, k.clock())
		if err != nil || !changed {
			return s, err
		}
		if last = k.put(ctx, o, s.data()); last == nil {
			return s, nil
		}
		if !kerrors.IsConflict(last) {
			return set{}, last
		}
	}
	return set{}, last
}

// publish writes the Secret for Envoy Gateway.
func (k *Keeper) publish(ctx context.Context, s set) error {
	o, err := k.get(ctx, k.names.client)
	if err != nil {
		return err
	}
	want := map[string][]byte{
		corev1.TLSCertKey:       slices.Concat(s.client.Cert, s.ca),
		corev1.TLSPrivateKeyKey: s.client.Key,
		keyCA:                   s.ca,
	}
	if maps.EqualFunc(o.Data, want, bytes.Equal) {
		return nil
	}
	err = k.put(ctx, o, want)
	if kerrors.IsConflict(err) {
		// Another replica has written. It checks again, as this one does.
		return nil
	}
	return err
}

// get returns a Secret of the extension. The provider creates it, because this account may write
// only Secrets of these names (internal/controller/extension).
func (k *Keeper) get(ctx context.Context, name string) (*corev1.Secret, error) {
	o, err := k.kube.Secrets(k.namespace).Get(ctx, name, metav1.GetOptions{})
	if kerrors.IsNotFound(err) {
		return nil, errors.Errorf("cannot use Secret %q: the provider has not created it; check that it runs, and may list and watch ServiceAccounts", name)
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get Secret %q", name)
	}
	if !slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == "ServiceAccount" && r.Name == k.name }) {
		return nil, errors.Errorf("cannot use Secret %q: ServiceAccount %q does not own it; delete it", name, k.name)
	}
	return o, nil
}

// put writes a Secret from get with other data.
func (k *Keeper) put(ctx context.Context, o *corev1.Secret, data map[string][]byte) error {
	o.Data = data
	_, err := k.kube.Secrets(k.namespace).Update(ctx, o, metav1.UpdateOptions{})
	return errors.Wrapf(err, "cannot write Secret %q", o.GetName())
}

// data returns the data of the Secret with all certificates.
func (s set) data() map[string][]byte {
	return map[string][]byte{
		keyCA: s.ca, keyCAKey: s.caKey,
		corev1.TLSCertKey: s.server.Cert, corev1.TLSPrivateKeyKey: s.server.Key,
		keyClientCert: s.client.Cert, keyClientKey: s.client.Key,
		keyEnvoyCert: s.envoy.Cert, keyEnvoyKey: s.envoy.Key,
	}
}

// setOf is the inverse of data.
func setOf(data map[string][]byte) set {
	return set{
		ca: data[keyCA], caKey: data[keyCAKey],
		server: Pair{Cert: data[corev1.TLSCertKey], Key: data[corev1.TLSPrivateKeyKey]},
		client: Pair{Cert: data[keyClientCert], Key: data[keyClientKey]},
		envoy:  Pair{Cert: data[keyEnvoyCert], Key: data[keyEnvoyKey]},
	}
}
