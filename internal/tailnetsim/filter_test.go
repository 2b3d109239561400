// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
)

func TestFilter(t *testing.T) {
	const owners = `"tagOwners": {"tag:a": [], "tag:b": []}, `
	any4 := tailcfg.PortRangeAny
	cases := map[string]struct {
		reason string
		policy string
		want   []tailcfg.FilterRule
	}{
		"AllowAll": {
			reason: "A star stays a star.",
			policy: `{` + owners + `"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}]}`,
			want:   []tailcfg.FilterRule{{SrcIPs: []string{"*"}, DstPorts: []tailcfg.NetPortRange{{IP: "*", Ports: any4}}}},
		},
		"NothingGranted": {
			reason: "Without a rule nobody reaches anybody.",
			policy: `{}`,
			want:   []tailcfg.FilterRule{},
		},
		"TagToService": {
			reason: "A grant from a tag to a service has their addresses and the port.",
			policy: `{` + owners + `"grants": [{"src": ["tag:a"], "dst": ["svc:web"], "ip": ["tcp:443"]}]}`,
			want: []tailcfg.FilterRule{{
				SrcIPs: []string{"100.64.0.2", "fd7a:115c:a1e0:ab12:4843:cd96:6240:2"},
				DstPorts: []tailcfg.NetPortRange{
					{IP: "100.99.0.1", Ports: tailcfg.PortRange{First: 443, Last: 443}},
					{IP: "fd7a:115c:a1e0::8000:1", Ports: tailcfg.PortRange{First: 443, Last: 443}},
				},
			}},
		},
		"ACL": {
			reason: "An ACL has ports behind its destination.",
			policy: `{` + owners + `"acls": [{"action": "accept", "src": ["*"], "dst": ["10.0.0.0/8:80-90"]}]}`,
			want:   []tailcfg.FilterRule{{SrcIPs: []string{"*"}, DstPorts: []tailcfg.NetPortRange{{IP: "10.0.0.0/8", Ports: tailcfg.PortRange{First: 80, Last: 90}}}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := New(Options{Policy: tc.policy})
			if err != nil {
				t.Fatalf("cannot make a server: %v", err)
			}
			s.mu.Lock()
			d := s.st.addDevice(s.now())
			d.Tags = []string{"tag:a"}
			v := &service{Name: "svc:web", Addrs: []string{"100.99.0.1"}}
			if err := s.allocateLocked(v); err != nil {
				t.Errorf("cannot allocate: %v", err)
			}
			v.Addrs[1] = "fd7a:115c:a1e0::8000:1" // Otherwise a random one.
			s.st.Services[v.Name] = v
			got := s.filterLocked()
			s.mu.Unlock()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if err := s.Close(); err != nil {
				t.Errorf("cannot close: %v", err)
			}
		})
	}
}

func TestOwns(t *testing.T) {
	p, err := parsePolicy(`{"tagOwners": {"tag:op": [], "tag:a": ["tag:op"], "tag:b": ["tag:a"], "tag:c": ["tag:d"], "tag:d": ["tag:c"]}}`, nil)
	if err != nil {
		t.Fatalf("cannot parse: %v", err)
	}
	cases := map[string]struct {
		reason string
		tag    string
		want   bool
	}{
		"Own":      {reason: "A credential may give its own tag.", tag: "tag:op", want: true},
		"Owned":    {reason: "And tags that it owns.", tag: "tag:a", want: true},
		"Indirect": {reason: "Also through another tag.", tag: "tag:b", want: true},
		"Circle":   {reason: "Owners in a circle end.", tag: "tag:c"},
		"Unknown":  {reason: "A tag that is not defined belongs to nobody.", tag: "tag:x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, p.owns([]string{"tag:op"}, tc.tag)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
