// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
)

func TestConfigured(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatalf("cannot make a server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("cannot close: %v", err)
		}
	})
	v := &service{Name: "svc:web", Ports: []string{"tcp:80"}}
	offer := func(port uint16) map[string]*tailcfg.VIPService {
		return map[string]*tailcfg.VIPService{v.Name: {Active: true, Ports: []tailcfg.ProtoPortRange{{Proto: 6, Ports: tailcfg.PortRange{First: port, Last: port}}}}}
	}
	cases := map[string]struct {
		reason string
		d      *device
		want   string
	}{
		"Ready":   {reason: "A host that serves every port is ready.", d: &device{offers: offer(80)}, want: "ready"},
		"Partial": {reason: "A host that lacks one is not.", d: &device{offers: offer(81)}, want: "needs-configuration"},
		"Known": {
			reason: "The state of a host that has announced and reported is known.", want: "ready",
			d: &device{offers: offer(80), heard: "a", Hostinfo: &tailcfg.Hostinfo{ServicesHash: "a"}},
		},
		"Unknown": {
			reason: "The state of a host that has not reported yet is pending.", want: "pending",
			d: &device{offers: offer(80), heard: "a", Hostinfo: &tailcfg.Hostinfo{ServicesHash: "b"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if diff := cmp.Diff(tc.want, s.configuredLocked(v, tc.d)); diff != "" {
				t.Errorf("\n%s\nconfiguredLocked(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
