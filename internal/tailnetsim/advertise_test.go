// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAdvertise checks that a puppet hosts what it advertises, as a node does.
func TestAdvertise(t *testing.T) {
	s := newServer(t, Options{Policy: PolicyWithAutoApprover})
	id, err := s.Join(Puppet{Hostname: "proxy", Tags: []string{"tag:k8s"}})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	for _, name := range []string{"svc:web", "svc:api"} {
		v := &service{Name: name, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}
		if err := s.allocateLocked(v); err != nil {
			t.Fatal(err)
		}
		s.st.Services[name] = v
	}
	s.mu.Unlock()
	cases := map[string]struct {
		reason   string
		services []string
		want     map[string]string
	}{
		"1Both":  {reason: "It is the host of all services that it advertises.", services: []string{"svc:web", "svc:api"}, want: map[string]string{"svc:web": id, "svc:api": id}},
		"2One":   {reason: "It withdraws the others.", services: []string{"svc:api"}, want: map[string]string{"svc:api": id}},
		"3Gone":  {reason: "A service that does not exist is of no account.", services: []string{"svc:gone"}, want: map[string]string{}},
		"4Again": {reason: "It can advertise a service again.", services: []string{"svc:web"}, want: map[string]string{"svc:web": id}},
	}
	for _, name := range []string{"1Both", "2One", "3Gone", "4Again"} {
		tc := cases[name]
		if !s.Advertise(id, tc.services...) {
			t.Fatalf("Advertise(%q): there is no such device", id)
		}
		got := map[string]string{}
		for _, v := range s.State().Services {
			for _, h := range v.Hosts {
				if h.Configured == stateReady {
					got[v.Name] = h.NodeID
				}
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("\n%s\n%s: hosts: -want, +got:\n%s", tc.reason, name, diff)
		}
	}
	if s.Advertise("nobody") {
		t.Error("Advertise(nobody): want no such device")
	}
}
