// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// TestState checks that certificates from Tailscale are read from a machine's state Secret.
func TestState(t *testing.T) {
	ca := newAuthority(t)
	c := newCluster()
	dir := t.TempDir()
	s, changed := newServer(t, c, dir)
	backendAddr, _ := backend(t)
	web := plan.Termination{Listen: freeAddress(t), Secret: "set-0", Domain: host, Backend: backendAddr}
	other := plan.Termination{Listen: freeAddress(t), Secret: "set-0", Domain: "other.example.com", Backend: backendAddr}
	set(t, s, web)

	// state returns the state Secret of a machine with certificates of the given serial numbers.
	state := func(serials map[string]int64) *corev1.Secret {
		out := &corev1.Secret{Data: map[string][]byte{"_machinekey": []byte("garbage")}}
		for domain, n := range serials {
			got := ca.secret(n)
			out.Data[domain+".crt"] = got.Data[corev1.TLSCertKey]
			out.Data[domain+".key"] = got.Data[corev1.TLSPrivateKeyKey]
		}
		return out
	}
	expect := func(reason string, want map[plan.CertificateRef]plan.Certificate, serial int64) {
		t.Helper()
		if diff := cmp.Diff(want, known(t, s)); diff != "" {
			t.Errorf("\n%s\nCertificates(): -want, +got:\n%s", reason, diff)
		}
		if serial == 0 {
			return
		}
		if _, got, err := ca.handshake(dial(t, web.Listen, someone)); err != nil || got != serial {
			t.Errorf("\n%s\nwant certificate %d, got %d, %v", reason, serial, got, err)
		}
	}
	ref, otherRef := web.Certificate(), other.Certificate()
	missing := "key " + host + ".crt is missing or empty"

	c.update(t, "set-0", state(nil))
	expect("A certificate that was not issued yet is missing.", map[plan.CertificateRef]plan.Certificate{ref: {Problem: missing}}, 0)
	issued := state(map[string]int64{host: 1})
	c.update(t, "set-0", issued)
	expect("An issued certificate is used.", map[plan.CertificateRef]plan.Certificate{ref: {Usable: true}}, 1)

	for len(changed) > 0 {
		<-changed
	}
	set(t, s, web, other)
	select {
	case <-changed:
	case <-time.After(deadline):
		t.Error("Changed must be called when the certificate of a second name is known at once")
	}
	expect("A second name is looked up in the Secret that was already read.",
		map[plan.CertificateRef]plan.Certificate{ref: {Usable: true}, otherRef: {Problem: "key other.example.com.crt is missing or empty"}}, 1)
	set(t, s, web)

	c.update(t, "set-0", state(map[string]int64{host: 2}))
	expect("A renewed certificate is used at once.", map[plan.CertificateRef]plan.Certificate{ref: {Usable: true}}, 2)
	c.update(t, "set-0", state(nil))
	expect("The certificate stays usable when the issuing machine loses its state.", map[plan.CertificateRef]plan.Certificate{ref: {Usable: true, Problem: missing}}, 2)
	c.update(t, "set-0", nil)
	expect("The certificate stays usable when the issuing machine's state Secret is deleted.", map[plan.CertificateRef]plan.Certificate{ref: {Usable: true, Problem: "there is no such Secret"}}, 2)

	restarted, _ := newServer(t, newCluster(), dir)
	if err := restarted.Restore(t.Context()); err != nil {
		t.Fatalf("Restore(...): %v", err)
	}
	if diff := cmp.Diff(map[plan.CertificateRef]plan.Certificate{ref: {Usable: true}}, known(t, restarted)); diff != "" {
		t.Errorf("A restarted agent must have the certificate too: -want, +got:\n%s", diff)
	}
}

func TestRestore(t *testing.T) {
	ca := newAuthority(t)
	dir := t.TempDir()
	backendAddr, _ := backend(t)
	at := freeAddress(t)
	term := plan.Termination{Listen: at, Secret: "web-tls", Backend: backendAddr}

	ctx, cancel := context.WithCancel(t.Context())
	c := newCluster()
	s, _ := newServer(t, c, dir)
	if err := s.Set(ctx, map[string][]plan.Termination{"svc:web": {term}}); err != nil {
		t.Fatal(err)
	}
	c.update(t, "web-tls", ca.secret(5))
	cancel()

	// The API server is unavailable: no Secret is delivered.
	restarted, _ := newServer(t, newCluster(), dir)
	if err := restarted.Restore(t.Context()); err != nil {
		t.Fatalf("Restore(...): %v", err)
	}
	if diff := cmp.Diff(map[plan.CertificateRef]plan.Certificate{{Secret: "web-tls"}: {Usable: true}}, known(t, restarted)); diff != "" {
		t.Errorf("Certificates(): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]plan.Termination{"svc:web": {term}}, restarted.Serving(), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("Serving(): -want, +got:\n%s", diff)
	}
	timeout := time.Now().Add(deadline)
	for {
		_, serial, err := ca.handshake(dial(t, at, someone))
		if err == nil && serial == 5 {
			break
		}
		// The previous listener can still be closing.
		if time.Now().After(timeout) {
			t.Fatalf("want certificate 5, got %d, %v", serial, err)
		}
	}
}

// TestStoreAgain checks that what could not be stored is stored by the next Set, whether the
// terminations or a certificate changed.
func TestStoreAgain(t *testing.T) {
	backendAddr, _ := backend(t)
	cases := map[string]struct {
		reason string

		// fail changes what is served while it cannot be stored.
		fail func(t *testing.T, c *cluster, s *Server, term plan.Termination)
		// setup is done while it can be.
		setup func(t *testing.T, s *Server, term plan.Termination)
		want  map[plan.CertificateRef]plan.Certificate
	}{
		"Terminations": {
			reason: "The same terminations are stored by a later call.",
			setup:  func(*testing.T, *Server, plan.Termination) {},
			fail: func(t *testing.T, _ *cluster, s *Server, term plan.Termination) {
				t.Helper()
				if err := s.Set(t.Context(), map[string][]plan.Termination{"svc:web": {term}}); err == nil {
					t.Error("Set(...): want an error while nothing can be stored")
				}
			},
			want: map[plan.CertificateRef]plan.Certificate{},
		},
		"Certificate": {
			reason: "A certificate that changed in between is stored by a later call.",
			setup:  func(t *testing.T, s *Server, term plan.Termination) { t.Helper(); set(t, s, term) },
			fail: func(t *testing.T, c *cluster, _ *Server, _ plan.Termination) {
				t.Helper()
				c.update(t, "web-tls", newAuthority(t).secret(5))
			},
			want: map[plan.CertificateRef]plan.Certificate{{Secret: "web-tls"}: {Usable: true}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			term := plan.Termination{Listen: freeAddress(t), Secret: "web-tls", Backend: backendAddr}
			dir, c := t.TempDir(), newCluster()
			s, _ := newServer(t, c, dir)
			tc.setup(t, s, term)

			// A file in place of the directory is a store that fails.
			storePath := filepath.Join(dir, "tls")
			if err := os.RemoveAll(storePath); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(storePath, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			tc.fail(t, c, s, term)
			if err := s.Set(t.Context(), s.Serving()); err == nil {
				t.Errorf("\n%s\nSet(...): want an error until it is stored", tc.reason)
			}
			if err := os.Remove(storePath); err != nil {
				t.Fatal(err)
			}
			if err := s.Set(t.Context(), s.Serving()); err != nil {
				t.Errorf("\n%s\nSet(...): %v", tc.reason, err)
			}

			restarted, _ := newServer(t, newCluster(), dir)
			if err := restarted.Restore(t.Context()); err != nil {
				t.Fatalf("Restore(...): %v", err)
			}
			if diff := cmp.Diff(map[string][]plan.Termination{"svc:web": {term}}, restarted.Serving(), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Errorf("\n%s\nServing(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, known(t, restarted)); diff != "" {
				t.Errorf("\n%s\nCertificates(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRestoreGarbage(t *testing.T) {
	dir := t.TempDir()
	if _, err := atomicdir.New(filepath.Join(dir, "tls"), "tls.json").Write([]byte("garbage")); err != nil {
		t.Fatal(err)
	}
	s, _ := newServer(t, newCluster(), dir)
	if err := s.Restore(t.Context()); err != nil {
		t.Errorf("Restore(...): want no error for content that cannot be read, got %v", err)
	}
}

// known returns the certificates of a Server without the times at which they expire: each usable
// one has such a time.
func known(t *testing.T, s *Server) map[plan.CertificateRef]plan.Certificate {
	t.Helper()
	out := s.Certificates()
	for ref, c := range out {
		if c.NotAfter.After(time.Now()) != c.Usable {
			t.Errorf("%s: usable %t, expires at %v", ref, c.Usable, c.NotAfter)
		}
		c.NotAfter = time.Time{}
		out[ref] = c
	}
	return out
}
