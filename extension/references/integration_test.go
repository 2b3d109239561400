// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package references

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// waitLimit is longer than any wait of a passing test.
const waitLimit = time.Minute

// A store of one kind, whose wanted objects a test sets.
type store[S any] struct {
	changed chan struct{}

	mu      sync.Mutex
	wanted  []types.NamespacedName
	states  map[types.NamespacedName]*S
	updated chan struct{}
}

func newStore[S any](wanted ...types.NamespacedName) *store[S] {
	return &store[S]{changed: make(chan struct{}), updated: make(chan struct{}, 1), states: map[types.NamespacedName]*S{}, wanted: wanted}
}

func (s *store[S]) names() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

func (s *store[S]) set(n types.NamespacedName, h *S) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[n] = h
	select {
	case s.updated <- struct{}{}:
	default:
	}
}

func (s *store[S]) want(ns ...types.NamespacedName) {
	s.mu.Lock()
	s.wanted = ns
	s.mu.Unlock()
	s.changed <- struct{}{}
}

// until waits until the held state of an object fulfils a condition.
func (s *store[S]) until(t *testing.T, description string, n types.NamespacedName, match func(h *S) bool) {
	t.Helper()
	limit := time.After(waitLimit)
	for {
		s.mu.Lock()
		h := s.states[n]
		s.mu.Unlock()
		if match(h) {
			return
		}
		select {
		case <-s.updated:
		case <-limit:
			t.Fatalf("%s: %s is held as %+v", description, n, h)
		}
	}
}

// secretStore is a SecretStore.
type secretStore struct{ *store[ir.CertificateSecret] }

func (s secretStore) Secrets() []types.NamespacedName                           { return s.names() }
func (s secretStore) SecretsChanged() <-chan struct{}                           { return s.changed }
func (s secretStore) SetSecret(n types.NamespacedName, h *ir.CertificateSecret) { s.set(n, h) }

// configMapStore is a ConfigMapStore.
type configMapStore struct{ *store[parse.ConfigMap] }

func (s configMapStore) ConfigMaps() []types.NamespacedName                      { return s.names() }
func (s configMapStore) ConfigMapsChanged() <-chan struct{}                      { return s.changed }
func (s configMapStore) SetConfigMap(n types.NamespacedName, c *parse.ConfigMap) { s.set(n, c) }
func (s configMapStore) ReadConfigMap(_ types.NamespacedName, o *corev1.ConfigMap) (parse.ConfigMap, error) {
	return parse.ConfigMap{Authorities: backendtls.ParseAuthorities(o)}, nil
}

func presentable(h *ir.CertificateSecret) bool { return h != nil && h.Pair != nil }

func because(reason string) func(h *ir.CertificateSecret) bool {
	return func(h *ir.CertificateSecret) bool { return h != nil && h.Reason == reason }
}

// startServer returns clients of an API server with RBAC, of an administrator and of the extension.
func startServer(t *testing.T) (admin, extension kubernetes.Interface) {
	t.Helper()
	server, err := apiserver.Start(t.Context(), apiserver.Options{APIServerFlags: map[string]string{"authorization-mode": "RBAC"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	as := rest.CopyConfig(server.Config)
	as.Impersonate.UserName = "extension"
	return clientOf(t, server.Config), clientOf(t, as)
}

// run runs a watcher until the test ends, and returns a channel that is closed once it has settled.
func run(t *testing.T, w interface {
	Run(ctx context.Context, settled func()) error
},
) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	settled, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- w.Run(ctx, func() { close(settled) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return settled
}

// TestConfigMapWatcher checks that the watcher reads ConfigMaps of a real API server, and knows that it
// may not.
func TestConfigMapWatcher(t *testing.T) {
	admin, extension := startServer(t)
	ca := types.NamespacedName{Namespace: "default", Name: "ca"}
	problem := func(p string) func(c *parse.ConfigMap) bool {
		return func(c *parse.ConfigMap) bool { return c != nil && c.Problem == p }
	}
	s := newStore[parse.ConfigMap](ca)
	settled := run(t, NewConfigMapWatcher(configMapStore{s}, extension.CoreV1(), logging.NewNopLogger()))
	s.until(t, "without a Role", ca, problem(parse.UnreadableConfigMap(ca).Problem))
	<-settled

	allow(t, admin, "configmaps", ca.Name, "list", "watch")
	s.until(t, "with a Role, before it is there", ca, problem(backendtls.ParseAuthorities(nil).Problem))
	o := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ca.Namespace, Name: ca.Name},
		Data:       map[string]string{backendtls.CAKey: "# A comment.\n" + string(certificate(t, ca.Name, time.Hour).Data[corev1.TLSCertKey])},
	}
	if _, err := admin.CoreV1().ConfigMaps(ca.Namespace).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until(t, "once it is there", ca, func(c *parse.ConfigMap) bool {
		return c != nil && c.Problem == "" && len(c.Certificates) == 1
	})
	o.Data = nil
	if _, err := admin.CoreV1().ConfigMaps(ca.Namespace).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until(t, "without the key", ca, problem(backendtls.ParseAuthorities(o).Problem))
	if err := admin.CoreV1().ConfigMaps(ca.Namespace).Delete(t.Context(), ca.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until(t, "deleted", ca, problem(backendtls.ParseAuthorities(nil).Problem))
	s.want()
	s.until(t, "not wanted any more", ca, func(c *parse.ConfigMap) bool { return c == nil })
}

// TestSecretWatcher checks that the watcher reads from a real API server with a Role that names a
// Secret.
func TestSecretWatcher(t *testing.T) {
	admin, extension := startServer(t)
	client, other := types.NamespacedName{Namespace: "default", Name: "client"}, types.NamespacedName{Namespace: "default", Name: "other"}
	s := newStore[ir.CertificateSecret](client)
	settled := run(t, NewSecretWatcher(secretStore{s}, extension.CoreV1(), logging.NewNopLogger()))
	s.until(t, "without a Role", client, because(ir.ReasonNotReadable))
	<-settled

	allow(t, admin, "secrets", client.Name, "get", "list", "watch")
	s.until(t, "with a Role, before it is there", client, because(ir.ReasonInvalidCertificate))
	create(t, admin, certificate(t, client.Name, time.Hour))
	s.until(t, "once it is there", client, presentable)

	// The Secret has a name that the Role permits, and another type.
	create(t, admin, certificate(t, other.Name, time.Hour))
	s.want(client, other)
	s.until(t, "another Secret", other, because(ir.ReasonNotReadable))

	// Long enough to be seen on a busy machine.
	replace(t, admin, certificate(t, client.Name, 10*time.Second))
	s.until(t, "renewed for ten seconds", client, func(h *ir.CertificateSecret) bool { return presentable(h) && time.Until(h.Due) < time.Minute })
	s.until(t, "after these ten seconds", client, because(ir.ReasonCertificateExpired))
	replace(t, admin, certificate(t, client.Name, time.Hour))
	s.until(t, "renewed for an hour", client, presentable)
	if err := admin.CoreV1().Secrets(client.Namespace).Delete(t.Context(), client.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until(t, "deleted", client, because(ir.ReasonInvalidCertificate))

	s.want()
	s.until(t, "not wanted any more", client, func(h *ir.CertificateSecret) bool { return h == nil })
}

func clientOf(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// allow permits the extension to read an object.
func allow(t *testing.T, c kubernetes.Interface, resource, name string, verbs ...string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: verbs,
	}}}
	if _, err := c.RbacV1().Roles(meta.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "extension"}},
	}
	if _, err := c.RbacV1().RoleBindings(meta.Namespace).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, c kubernetes.Interface, s *corev1.Secret) {
	t.Helper()
	if _, err := c.CoreV1().Secrets(s.Namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, c kubernetes.Interface, s *corev1.Secret) {
	t.Helper()
	if _, err := c.CoreV1().Secrets(s.Namespace).Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// certificate returns a Secret with a certificate of that lifetime.
func certificate(t *testing.T, name string, valid time.Duration) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
		},
	}
}
