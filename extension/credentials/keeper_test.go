// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

const (
	namespace = "shop"
	name      = "web-extension"
)

// created returns the Secrets that the provider has created (internal/controller/extension).
func created() []runtime.Object {
	newSecret := func(name string, t corev1.SecretType, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{Type: t, Data: data, ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"gateway.tailscale.com/secret-type": "extension"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: "web-extension", UID: "account"}},
		}}
	}
	return []runtime.Object{
		newSecret("web-extension-certificates", corev1.SecretTypeOpaque, nil),
		newSecret("web-extension-client", corev1.SecretTypeTLS, map[string][]byte{"tls.crt": {}, "tls.key": {}}),
	}
}

// cluster returns a cluster with Secrets. It fails the test for requests that the Role of the
// extension does not permit.
func cluster(t *testing.T, secrets ...runtime.Object) *fake.Clientset {
	t.Helper()
	out := fake.NewClientset(secrets...)
	out.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if r := a.GetResource().Resource; r != "secrets" || !slices.Contains([]string{"get", "update"}, a.GetVerb()) {
			t.Errorf("the Keeper may only get and update Secrets, and not %s %s", a.GetVerb(), r)
		}
		return false, nil, nil
	})
	return out
}

func keeper(t *testing.T, kube *fake.Clientset, at time.Time) *Keeper {
	t.Helper()
	k := NewKeeper(kube.CoreV1(), namespace, name, logging.NewNopLogger())
	k.clock = func() time.Time { return at }
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

func secret(t *testing.T, kube *fake.Clientset, name string) *corev1.Secret {
	t.Helper()
	s, err := kube.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMade verifies new certificates as Envoy Gateway, Envoys and the servers do.
func TestMade(t *testing.T) {
	kube := cluster(t, created()...)
	k := keeper(t, kube, time.Now())

	all, client := secret(t, kube, "web-extension-certificates"), secret(t, kube, "web-extension-client")
	for _, s := range []*corev1.Secret{all, client} {
		want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: name, UID: "account"}}
		if diff := cmp.Diff(want, s.OwnerReferences); diff != "" {
			t.Errorf("the account should still own %s: -want, +got:\n%s", s.GetName(), diff)
		}
	}
	if _, ok := client.Data[keyCAKey]; ok || len(client.Data) != 3 || client.Type != corev1.SecretTypeTLS {
		t.Errorf("Envoy Gateway's Secret has more than it needs: type %s, %d keys", client.Type, len(client.Data))
	}

	// Envoy Gateway reads one Secret for both references.
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(client.Data["tls.crt"]) {
		t.Fatal("the Secret has no authority")
	}
	pair, err := tls.X509KeyPair(client.Data["tls.crt"], client.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	shown, err := k.Get(nil)
	if err != nil {
		t.Fatal(err)
	}
	server, err := x509.ParseCertificate(shown.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"web-extension.shop.svc", "web-extension-eds.shop.svc", "web-extension.shop.svc.cluster.local", "localhost"} {
		if _, err := server.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
			t.Errorf("the server's certificate is refused under the name %s: %v", host, err)
		}
	}

	// The servers verify clients.
	ca, err := k.CA()
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	envoy, err := tls.X509KeyPair(k.Envoy().Cert, k.Envoy().Key)
	if err != nil {
		t.Fatal(err)
	}
	for clientName, c := range map[string]tls.Certificate{k.ClientName(): pair, k.EnvoyName(): envoy} {
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: clientName, Roots: clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("the certificate of %s is refused: %v", clientName, err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
			t.Errorf("the certificate of %s is valid for a server", clientName)
		}
	}
}

// TestAgree starts several replicas.
func TestAgree(t *testing.T) {
	kube := cluster(t, created()...)
	at := time.Now()
	first, two := keeper(t, kube, at), keeper(t, kube, at)
	if diff := cmp.Diff(first.current.Load().set.data(), two.current.Load().set.data()); diff != "" {
		t.Errorf("replicas have different certificates:\n%s", diff)
	}
}

func TestRenewed(t *testing.T) {
	n := NewKeeper(nil, namespace, name, nil).names
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	old, err := newSet(n, start)
	if err != nil {
		t.Fatal(err)
	}
	partial := func(key string) set {
		d := maps.Clone(old.data())
		delete(d, key)
		return setOf(d)
	}
	other, err := newSet(NewKeeper(nil, namespace, "api-extension", nil).names, start)
	if err != nil {
		t.Fatal(err)
	}
	type want struct{ leaves, authority bool }
	cases := map[string]struct {
		reason string
		input  set
		at     time.Time
		want   want
	}{
		"Young":          {reason: "Fresh certificates should stay.", input: old, at: start.Add(24 * time.Hour)},
		"BeforeDue":      {reason: "Certificates with a third of their lifetime left should stay.", input: old, at: start.Add(leafLife/3*2 - time.Hour)},
		"Due":            {reason: "Older ones should be renewed by the same authority.", input: old, at: start.Add(leafLife / 3 * 2), want: want{leaves: true}},
		"Ended":          {reason: "Expired ones should be renewed.", input: old, at: start.Add(2 * leafLife), want: want{leaves: true}},
		"NoEnvoy":        {reason: "Missing ones should be made.", input: partial(keyEnvoyCert), at: start, want: want{leaves: true}},
		"OtherNames":     {reason: "Certificates for other names should be made again.", input: other, at: start, want: want{leaves: true}},
		"AuthorityDue":   {reason: "An authority should be renewed long before it expires.", input: old, at: start.Add(authorityLife / 3 * 2), want: want{leaves: true, authority: true}},
		"NoAuthorityKey": {reason: "An authority without its key should be replaced.", input: partial(keyCAKey), at: start, want: want{leaves: true, authority: true}},
		"Empty":          {reason: "An empty set should become a complete one.", at: start, want: want{leaves: true, authority: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, changed, err := tc.input.renewed(n, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			g := want{leaves: changed, authority: !bytes.Equal(got.caKey, tc.input.caKey)}
			if diff := cmp.Diff(tc.want, g, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if g.authority && len(tc.input.ca) > 0 && tc.at.Before(start.Add(authorityLife)) && !bytes.HasSuffix(got.ca, tc.input.ca) {
				t.Errorf("\n%s\nthe previous authority is no longer trusted", tc.reason)
			}
			if _, repeat, err := got.renewed(n, tc.at); err != nil || repeat {
				t.Errorf("\n%s\na renewed set is renewed again: %v", tc.reason, err)
			}
		})
	}
}

// TestRun checks that one replica renews certificates, that the other finds them, and that deleted
// Secrets get new ones once the provider has created them again.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := cluster(t, created()...)
		at := time.Now()
		later := atomic.Int64{}
		changes := make(chan string, 10)
		ctx, cancel := context.WithCancel(t.Context())
		for _, replica := range []string{"one", "two"} {
			k := keeper(t, kube, at)
			k.clock = func() time.Time { return at.Add(time.Duration(later.Load())) }
			go func() { _ = k.Run(ctx, func() { changes <- replica }) }() // Ends with the context.
		}
		hear := func(event string) {
			t.Helper()
			<-time.After(3 * syncInterval)
			got := map[string]bool{}
			for range len(changes) {
				got[<-changes] = true
			}
			if diff := cmp.Diff(map[string]bool{"one": true, "two": true}, got); diff != "" {
				t.Errorf("%s: replicas with the change: -want, +got:\n%s", event, diff)
			}
		}
		first := secret(t, kube, "web-extension-client")
		later.Store(int64(leafLife / 3 * 2))
		hear("renewal")
		second := secret(t, kube, "web-extension-client")
		if cmp.Equal(first.Data["tls.crt"], second.Data["tls.crt"]) || !cmp.Equal(first.Data["ca.crt"], second.Data["ca.crt"]) {
			t.Error("Envoy Gateway's certificate should be renewed by the same authority")
		}

		for _, o := range created() {
			s, err := meta.Accessor(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), namespace, s.GetName()); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(3 * syncInterval)
		if len(changes) > 0 {
			t.Error("the certificates in use should stay while the Secrets do not exist")
		}
		for _, o := range created() {
			if err := kube.Tracker().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		hear("deletion")
		if cmp.Equal(second.Data["ca.crt"], secret(t, kube, "web-extension-client").Data["ca.crt"]) {
			t.Error("deleted Secrets should get a new authority")
		}
		cancel()
	})
}

// TestAbsent checks that the Keeper waits for the provider to create Secrets, and creates none.
func TestAbsent(t *testing.T) {
	err := NewKeeper(cluster(t).CoreV1(), namespace, name, logging.NewNopLogger()).sync(t.Context())
	if err == nil || !strings.Contains(err.Error(), "web-extension-certificates") || !strings.Contains(err.Error(), "provider") {
		t.Errorf("want an error that names the Secret and who creates it, got %v", err)
	}
}

// TestForeign checks that the Keeper keeps off Secrets of other owners.
func TestForeign(t *testing.T) {
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-extension-client"}, Data: map[string][]byte{"password": []byte("x")}}
	kube := cluster(t, created()[0], theirs)
	err := NewKeeper(kube.CoreV1(), namespace, name, logging.NewNopLogger()).sync(t.Context())
	if err == nil || !strings.Contains(err.Error(), "web-extension-client") || strings.Contains(err.Error(), "password") {
		t.Errorf("want an error that names the Secret, got %v", err)
	}
	if diff := cmp.Diff(theirs.Data, secret(t, kube, "web-extension-client").Data); diff != "" {
		t.Errorf("-before, +after:\n%s", diff)
	}
}
