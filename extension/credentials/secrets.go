// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

const (
	// Suffixes of the Secrets that a Writer writes beside those of Envoys. They are the names that
	// the chart uses with cert-manager, too.
	suffixCA     = "-ca"
	suffixServer = "-tls"
	suffixClient = "-client"

	// LabelCertificates names the extension in the Secrets of its Writer. A Writer changes no
	// Secret without it. An owner reference would make Kubernetes delete the Secrets when they are
	// restored into another cluster, and nothing creates them again at once.
	LabelCertificates = "gateway.tailscale.com/certificates-of"
)

// A Writer keeps the certificates of an extension in Secrets that pods mount and that Envoy Gateway
// reads, with the names and keys that cert-manager would use: NAME-ca has the authorities in tls.crt
// and the key of the first one in tls.key; NAME-tls, NAME-client and NAME-envoy have the certificates
// of the servers, of Envoy Gateway and of Envoys, and the authorities in ca.crt.
type Writer struct {
	kube            typedcorev1.CoreV1Interface
	namespace, name string
	names           names
	log             logging.Logger
	clock           func() time.Time
}

// NewWriter returns a Writer for an extension of that name. Its servers have the given DNS names.
func NewWriter(kube typedcorev1.CoreV1Interface, namespace, name string, servers []string, log logging.Logger) *Writer {
	return &Writer{
		kube: kube, namespace: namespace, name: name, log: log, clock: time.Now,
		// cert-manager's authority has the same name: Envoys accept its certificates by an earlier
		// authority with the same name and key.
		names: names{authority: name, server: servers, client: name + suffixClient, envoy: name + suffixEnvoy},
	}
}

// Write creates missing Secrets, and renews certificates that are due, lack a name, or have another
// authority. It is an error if a Secret exists that no Writer of this extension has created: Write
// then changes nothing.
func (w *Writer) Write(ctx context.Context) error {
	var last error
	for range attempts {
		last = w.write(ctx)
		if !kerrors.IsConflict(last) && !kerrors.IsAlreadyExists(last) {
			return last
		}
	}
	return last
}

// write makes one attempt, which fails with a conflict if another Writer writes at the same time.
// The authority is first: certificates by another one are renewed in the next attempt or run.
func (w *Writer) write(ctx context.Context) error {
	observed := map[string]stored{}
	for _, suffix := range suffixes() {
		o, err := w.get(ctx, w.name+suffix)
		if err != nil {
			return err
		}
		observed[suffix] = o
	}
	s, _, err := setIn(observed).renewed(w.names, w.clock())
	if err != nil {
		return err
	}
	desired := s.secrets()
	for _, suffix := range suffixes() {
		if err := w.put(ctx, observed[suffix], desired[suffix]); err != nil {
			return err
		}
	}
	return nil
}

// A stored Secret. If it does not exist, it has no data.
type stored struct {
	*corev1.Secret

	exists bool
}

// get returns a Secret of the extension.
func (w *Writer) get(ctx context.Context, name string) (stored, error) {
	o, err := w.kube.Secrets(w.namespace).Get(ctx, name, metav1.GetOptions{})
	if kerrors.IsNotFound(err) {
		return stored{Secret: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{LabelCertificates: w.name}},
			Type:       corev1.SecretTypeTLS,
		}}, nil
	}
	if err != nil {
		return stored{}, errors.Wrapf(err, "cannot get Secret %q", name)
	}
	if o.GetLabels()[LabelCertificates] != w.name {
		return stored{}, errors.Errorf("cannot use Secret %q: it has no label %s=%s, so another program or user created it; delete it, or set the chart's certificates.mode to CertManager or Existing",
			name, LabelCertificates, w.name)
	}
	return stored{Secret: o, exists: true}, nil
}

// put writes a Secret from get if its data differ.
func (w *Writer) put(ctx context.Context, o stored, data map[string][]byte) error {
	if maps.EqualFunc(o.Data, data, bytes.Equal) {
		w.log.Info("The Secret stays as it is", "secret", o.GetName())
		return nil
	}
	o.Data = data
	if !o.exists {
		if _, err := w.kube.Secrets(w.namespace).Create(ctx, o.Secret, metav1.CreateOptions{}); err != nil {
			return errors.Wrapf(err, "cannot create Secret %q", o.GetName())
		}
		w.log.Info("Created the Secret", "secret", o.GetName())
		return nil
	}
	if _, err := w.kube.Secrets(w.namespace).Update(ctx, o.Secret, metav1.UpdateOptions{}); err != nil {
		return errors.Wrapf(err, "cannot update Secret %q", o.GetName())
	}
	w.log.Info("Renewed the Secret", "secret", o.GetName())
	return nil
}

// suffixes returns the suffixes of all Secrets of a Writer, in the order of writes.
func suffixes() []string {
	return []string{suffixCA, suffixServer, suffixClient, suffixEnvoy}
}

// secrets returns the data of a Writer's Secrets, by suffix.
func (s set) secrets() map[string]map[string][]byte {
	pairData := func(p Pair) map[string][]byte {
		return map[string][]byte{corev1.TLSCertKey: p.Cert, corev1.TLSPrivateKeyKey: p.Key, keyCA: s.ca}
	}
	return map[string]map[string][]byte{
		suffixCA:     {corev1.TLSCertKey: s.ca, corev1.TLSPrivateKeyKey: s.caKey},
		suffixServer: pairData(s.server),
		suffixClient: pairData(s.client),
		suffixEnvoy:  pairData(s.envoy),
	}
}

// setIn is the inverse of secrets.
func setIn(secrets map[string]stored) set {
	pair := func(suffix string) Pair {
		d := secrets[suffix].Data
		return Pair{Cert: d[corev1.TLSCertKey], Key: d[corev1.TLSPrivateKeyKey]}
	}
	ca := pair(suffixCA)
	return set{ca: ca.Cert, caKey: ca.Key, server: pair(suffixServer), client: pair(suffixClient), envoy: pair(suffixEnvoy)}
}
