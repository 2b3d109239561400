// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/tailcfg"
)

// sight is what a node sees.
type sight struct {
	Peers    []string
	Services []string
	Names    []string
	// Routes are the addresses of svc:web and the subnets that peers have.
	Routes []string
}

func sightOf(t *testing.T, s *Server, node string) sight {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.netMapLocked(s.st.device(node))
	var out sight
	for _, n := range m.gen.nodes(m.client) {
		out.Peers = append(out.Peers, string(n.StableID))
		for _, p := range n.PrimaryRoutes {
			if p.Addr().Is4() {
				out.Routes = append(out.Routes, string(n.StableID)+" "+p.String())
			}
		}
	}
	for c := range m.self.CapMap {
		if !strings.HasPrefix(string(c), string(tailcfg.NodeAttrPrefixServices)) {
			continue
		}
		d, err := tailcfg.UnmarshalNodeCapJSON[tailcfg.ServiceDetails](m.self.CapMap, c)
		if err != nil || len(d) != 1 {
			t.Errorf("capability %s has one value: %v, %v", c, d, err)
			continue
		}
		out.Services = append(out.Services, d[0].Name.String())
	}
	for _, r := range m.dns.ExtraRecords {
		if strings.Contains(r.Value, ".") {
			out.Names = append(out.Names, r.Name)
		}
	}
	slices.Sort(out.Services)
	slices.Sort(out.Peers)
	slices.Sort(out.Routes)
	return out
}

func TestVisibility(t *testing.T) {
	const owners = `"tagOwners": {"tag:a": [], "tag:b": [], "tag:host": [], "tag:web": []}, "autoApprovers": {"services": {"svc:web": ["tag:host"]}}, `
	const web, subnet = "nHost 100.99.0.1/32", "nHost 10.1.0.0/16"
	cases := map[string]struct {
		reason string
		policy string
		change func(w *Switches)
		// want is by node.
		want map[string]sight
	}{
		"AllowAll": {
			reason: "With the default policy all see all.",
			policy: `"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}]`,
			want: map[string]sight{
				"nA": {Peers: []string{"nB", "nHost", "nUser"}, Services: []string{"svc:web"}, Names: []string{"web.tail1234.ts.net"}, Routes: []string{subnet, web}},
			},
		},
		"Nothing": {
			reason: "Without a rule nodes see nobody; a host has the names of what it hosts.",
			policy: `"grants": []`,
			want:   map[string]sight{"nA": {}, "nHost": {Names: []string{"web.tail1234.ts.net"}}},
		},
		"OneWay": {
			reason: "If one may reach the other, each sees the other, and a third sees neither.",
			policy: `"grants": [{"src": ["tag:a"], "dst": ["tag:b"], "ip": ["tcp:22"]}]`,
			want:   map[string]sight{"nA": {Peers: []string{"nB"}}, "nB": {Peers: []string{"nA"}}, "nUser": {}},
		},
		"Service": {
			reason: "A grant to a service shows the service, and its host with its addresses; the host sees its clients.",
			policy: `"grants": [{"src": ["tag:a"], "dst": ["svc:web"], "ip": ["tcp:80"]}]`,
			want: map[string]sight{
				"nA":    {Peers: []string{"nHost"}, Services: []string{"svc:web"}, Names: []string{"web.tail1234.ts.net"}, Routes: []string{web}},
				"nHost": {Peers: []string{"nA"}, Names: []string{"web.tail1234.ts.net"}},
				"nB":    {},
			},
		},
		"ServiceTag": {
			reason: "So does a grant to a tag of the service.",
			policy: `"grants": [{"src": ["tag:a"], "dst": ["tag:web"], "ip": ["tcp:80"]}]`,
			want: map[string]sight{
				"nA": {Peers: []string{"nHost"}, Services: []string{"svc:web"}, Names: []string{"web.tail1234.ts.net"}, Routes: []string{web}},
			},
		},
		"HostAlone": {
			reason: "A grant to the host does not show its services.",
			policy: `"grants": [{"src": ["tag:a"], "dst": ["tag:host"], "ip": ["*"]}]`,
			want:   map[string]sight{"nA": {Peers: []string{"nHost"}}},
		},
		"Subnet": {
			reason: "A grant to a part of a subnet shows its router.",
			policy: `"grants": [{"src": ["autogroup:member"], "dst": ["10.1.2.0/24"], "ip": ["*"]}]`,
			want:   map[string]sight{"nUser": {Peers: []string{"nHost"}, Routes: []string{subnet}}, "nA": {}},
		},
		"ACL": {
			reason: "ACLs count as grants, with the ports behind the destination.",
			policy: `"acls": [{"action": "accept", "src": ["tag:a"], "dst": ["svc:web:80", "tag:b:*"]}]`,
			want: map[string]sight{
				"nA": {Peers: []string{"nB", "nHost"}, Services: []string{"svc:web"}, Names: []string{"web.tail1234.ts.net"}, Routes: []string{web}},
			},
		},
		"NoServiceDetails": {
			reason: "A control server that does not know the capability sends none.",
			policy: `"grants": [{"src": ["tag:a"], "dst": ["svc:web"], "ip": ["tcp:80"]}]`,
			change: func(w *Switches) { w.NoServiceDetails = true },
			want:   map[string]sight{"nA": {Peers: []string{"nHost"}, Names: []string{"web.tail1234.ts.net"}, Routes: []string{web}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{Policy: `{` + owners + tc.policy + `}`})
			if tc.change != nil {
				if err := s.SetSwitches(tc.change); err != nil {
					t.Fatalf("cannot set switches: %v", err)
				}
			}
			deviceOf(t, s, Puppet{NodeID: "nA", Hostname: "a", Tags: []string{"tag:a"}})
			deviceOf(t, s, Puppet{NodeID: "nB", Hostname: "b", Tags: []string{"tag:b"}})
			deviceOf(t, s, Puppet{NodeID: "nUser", Hostname: "user"})
			h := deviceOf(t, s, Puppet{NodeID: "nHost", Hostname: "host", Tags: []string{"tag:host"}, Routes: []string{"10.1.0.0/16"}})
			v := &service{Name: "svc:web", Ports: []string{"tcp:80"}, Tags: []string{"tag:web"}, Addrs: []string{"100.99.0.1"}}
			s.mu.Lock()
			h.EnabledRoutes = []string{"10.1.0.0/16"}
			if err := s.allocateLocked(v); err != nil {
				t.Errorf("cannot allocate: %v", err)
			}
			s.st.Services[v.Name] = v
			s.servicesChangedLocked()
			s.deviceChangedLocked(h)
			s.mu.Unlock()
			offer(t, s, "nHost", "svc:web")
			for node, want := range tc.want {
				if diff := cmp.Diff(want, sightOf(t, s, node), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s %s: -want, +got:\n%s", tc.reason, node, diff)
				}
			}
		})
	}
}
