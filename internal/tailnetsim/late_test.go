// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"testing"

	"tailscale.com/tailcfg"
)

// TestLateDefinitions defines a service that a device advertises already. Control takes the device
// as a host once its list of services changes, such as when it withdraws and advertises again.
func TestLateDefinitions(t *testing.T) {
	s, err := New(Options{Switches: Switches{LateDefinitions: true, RevokedKeyStatus: 404, CertDomains: CertAdvertised}})
	if err != nil {
		t.Fatalf("cannot make a server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("cannot close: %v", err)
		}
	})
	id, err := s.Join(Puppet{Hostname: "host", Tags: []string{"tag:k8s"}})
	if err != nil {
		t.Fatal(err)
	}
	define := func(name string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.st.Services[name] = &service{Name: name, Ports: []string{"tcp:80"}, Addrs: []string{"100.96.0.1", "fd7a:115c:a1e0::8000:1"}}
		s.st.Approvals[name] = map[int64]bool{s.st.device(id).ID: true}
		s.defineLocked(name)
		s.changedLocked()
	}
	offer := func(o ...Offer) {
		t.Helper()
		if err := s.SetOffers(id, o...); err != nil {
			t.Fatal(err)
		}
	}
	web := Offer{Service: "svc:web", Ports: []uint16{80}}
	hosts := func(reason string, want tailcfg.StableNodeID) {
		t.Helper()
		if got := s.Primary("svc:web"); got != want {
			t.Errorf("%s: want the host %q, got %q", reason, want, got)
		}
	}
	offer(web)
	define("svc:web")
	hosts("advertised before the definition", "")
	offer(web)
	hosts("the same report again", "")
	offer(Offer{Service: "svc:web", Ports: []uint16{80}, Withdrawn: true})
	hosts("withdrawn", "")
	offer(web)
	hosts("advertised again", tailcfg.StableNodeID(id))
}
