// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
)

// holders returns the names of the peers that have a service's addresses in a client's map.
func holders(t *testing.T, s *Server, client, service string) []string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.netMapLocked(s.st.device(client))
	var out []string
	for _, n := range m.gen.nodes(m.client) {
		if len(n.PrimaryRoutes) > 0 && n.PrimaryRoutes[0].Addr() == s.st.Services[service].addrs()[0] {
			out = append(out, string(n.StableID))
		}
	}
	return out
}

func TestRouteSelection(t *testing.T) {
	s := newServer(t, Options{Policy: PolicyWithAutoApprover})
	for id, region := range map[string]int{"nEU1": 1, "nEU2": 1, "nUS1": 5, "nEUClient": 1, "nUSClient": 5, "nAsiaClient": 9} {
		deviceOf(t, s, Puppet{NodeID: id, Hostname: id, Region: region, Tags: []string{"tag:k8s"}})
	}
	v := &service{Name: "svc:web", Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}}
	s.mu.Lock()
	if err := s.allocateLocked(v); err != nil {
		t.Errorf("cannot allocate: %v", err)
	}
	s.st.Services[v.Name] = v
	s.servicesChangedLocked()
	// The oldest host is the one with the lowest ID.
	ids := map[string]int64{}
	for id, d := range s.st.Devices {
		ids[string(d.StableID)] = id
	}
	s.mu.Unlock()
	oldest, oldestEU := "nEU1", "nEU1"
	for _, h := range []string{"nEU1", "nEU2", "nUS1"} {
		offer(t, s, h, "svc:web")
		if ids[h] < ids[oldest] {
			oldest = h
		}
	}
	if ids["nEU2"] < ids["nEU1"] {
		oldestEU = "nEU2"
	}
	otherEU := map[string]string{"nEU1": "nEU2", "nEU2": "nEU1"}[oldestEU]

	cases := map[string]struct {
		reason  string
		mode    RouteSelection
		offline string
		// want are the hosts by client.
		want map[string][]string
	}{
		"RegionalFailover": {
			reason: "Each client has the oldest host of its region, or of the closest region.",
			mode:   RegionalRoutingFailover,
			want:   map[string][]string{"nEUClient": {oldestEU}, "nUSClient": {"nUS1"}, "nAsiaClient": {"nUS1"}},
		},
		"RegionalFailoverInRegion": {
			reason:  "When the oldest host of a region is lost, the next one of the region follows.",
			mode:    RegionalRoutingFailover,
			offline: oldestEU,
			want:    map[string][]string{"nEUClient": {otherEU}, "nUSClient": {"nUS1"}},
		},
		"RegionalFailoverToAnotherRegion": {
			reason:  "A region without a host has one of another region.",
			mode:    RegionalRoutingFailover,
			offline: "nUS1",
			want:    map[string][]string{"nEUClient": {oldestEU}, "nUSClient": {oldestEU}},
		},
		"RegionalLostHost": {
			reason:  "With one host left in a region, all its clients have it.",
			mode:    RegionalRouting,
			offline: "nEU2",
			want:    map[string][]string{"nEUClient": {"nEU1"}, "nUSClient": {"nUS1"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s.mu.Lock()
			s.st.Settings["routeSelection"] = string(tc.mode)
			s.changedLocked()
			s.mu.Unlock()
			if tc.offline != "" {
				s.SetOnline(tc.offline, false)
				defer s.SetOnline(tc.offline, true)
			}
			for client, want := range tc.want {
				if diff := cmp.Diff(want, holders(t, s, client, "svc:web")); diff != "" {
					t.Errorf("%s %s: -want, +got:\n%s", tc.reason, client, diff)
				}
			}
		})
	}

	for mode, want := range map[RouteSelection]int{ActivePassiveFailover: 1, RegionalRouting: 1, RegionalRoutingFailover: 1, MagicRoute: 3} {
		s.mu.Lock()
		s.st.Settings["routeSelection"] = string(mode)
		s.changedLocked()
		s.mu.Unlock()
		for _, client := range []string{"nEUClient", "nUSClient", "nAsiaClient"} {
			if got := holders(t, s, client, "svc:web"); len(got) != want {
				t.Errorf("%s: %s has the addresses at %d hosts: got %v", mode, client, want, got)
			}
		}
	}
}

// TestBalance tests that in-region load balancing uses all hosts of a region.
func TestBalance(t *testing.T) {
	e := &election{mode: RegionalRouting, hosts: []candidate{{id: 1, region: 1}, {id: 2, region: 1}, {id: 3, region: 2}}}
	clients := map[int64]int{}
	for c := range int64(100) {
		for _, h := range e.hosts {
			if e.hasFor(h.id, 1000+c, 1) {
				clients[h.id]++
			}
		}
	}
	if clients[1] < 20 || clients[2] < 20 || clients[3] != 0 || clients[1]+clients[2] != 100 {
		t.Errorf("each client has one host of its region, and each host has clients: got %v", clients)
	}
}

// TestSubnetHasOneRouter tests that control sends no two nodes with the same prefix
// (tailscale.com v1.102.5 net/routemanager, SetScore), and that exit nodes are all offered.
func TestSubnetHasOneRouter(t *testing.T) {
	s := newServer(t, Options{})
	client := deviceOf(t, s, Puppet{NodeID: "nClient", Hostname: "client"})
	routes := []string{"10.0.0.0/24", "0.0.0.0/0"}
	routers := []*device{
		deviceOf(t, s, Puppet{NodeID: "nR1", Hostname: "r1", Routes: routes}),
		deviceOf(t, s, Puppet{NodeID: "nR2", Hostname: "r2", Routes: routes}),
	}
	look := func() (primary, exits []tailcfg.StableNodeID) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range routers {
			r.EnabledRoutes = routes
			s.deviceChangedLocked(r)
		}
		m := s.netMapLocked(client)
		for _, n := range m.gen.nodes(m.client) {
			for _, p := range n.PrimaryRoutes {
				if p.String() == routes[0] {
					primary = append(primary, n.StableID)
				}
			}
			for _, p := range n.AllowedIPs {
				if p.String() == routes[1] {
					exits = append(exits, n.StableID)
				}
			}
		}
		return primary, exits
	}
	primary, exits := look()
	if diff := cmp.Diff([]tailcfg.StableNodeID{"nR1"}, primary); diff != "" {
		t.Errorf("the oldest router has the subnet: -want, +got:\n%s", diff)
	}
	if len(exits) != 2 {
		t.Errorf("both are exit nodes: got %v", exits)
	}
	s.SetOnline("nR1", false)
	if primary, _ = look(); len(primary) != 1 || primary[0] != "nR2" {
		t.Errorf("when it is lost, the next one has it: got %v", primary)
	}
}

func TestRouteSelectionSetting(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   string
		status int
		// routing and regional are routeSelection and regionalRoutingOn afterwards.
		routing  RouteSelection
		regional bool
	}{
		"Regional":     {reason: "The older form is whether the mode is regional routing.", body: `{"routeSelection": "regional-routing"}`, status: 200, routing: RegionalRouting, regional: true},
		"Off":          {reason: "Off is back to the default.", body: `{"regionalRoutingOn": false}`, status: 200, routing: ActivePassiveFailover},
		"On":           {reason: "On is regional routing.", body: `{"regionalRoutingOn": true}`, status: 200, routing: RegionalRouting, regional: true},
		"MagicRoute":   {reason: "Other modes are not regional routing.", body: `{"routeSelection": "magicroute"}`, status: 200, routing: MagicRoute},
		"Both":         {reason: "Both at once are refused.", body: `{"routeSelection": "magicroute", "regionalRoutingOn": true}`, status: 400, routing: ActivePassiveFailover},
		"UnknownValue": {reason: "Other words are refused.", body: `{"routeSelection": "nearest"}`, status: 400, routing: ActivePassiveFailover},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Options{APIKeys: []string{"key"}})
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/api/v2/tailnet/-/settings", strings.NewReader(tc.body))
			r.SetBasicAuth("key", "")
			s.ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Errorf("%s Want status %d, got %d: %s", tc.reason, tc.status, w.Code, w.Body)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			want := map[string]any{"routeSelection": string(tc.routing), "regionalRoutingOn": tc.regional}
			got := map[string]any{"routeSelection": s.st.Settings["routeSelection"], "regionalRoutingOn": s.st.Settings["regionalRoutingOn"]}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
