// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// hosts returns endpoints that have only an address.
func hosts(addresses ...string) []zonedEndpoint {
	var out []zonedEndpoint
	for _, a := range addresses {
		out = append(out, zonedEndpoint{Endpoint: ir.Endpoint{Address: a}})
	}
	return out
}

func unhealthyAt(addresses ...string) map[ir.Address]bool {
	out := map[ir.Address]bool{}
	for _, a := range addresses {
		out[ir.Address{Host: a}] = true
	}
	return out
}

func TestPlace(t *testing.T) {
	local := source{name: "app", weight: 1, endpoints: hosts("a", "b")}
	other := source{name: "other", weight: 1, priority: ir.PriorityRemote, remote: true, endpoints: hosts("x")}
	cases := map[string]struct {
		reason  string
		sources []source
		p       ir.Placement
		want    []string
	}{
		"Well":    {reason: "Healthy endpoints should stay in place.", sources: []source{local, other}, want: []string{"0 app a", "0 app b", "1 other x"}},
		"Gradual": {reason: "With other clusters in reserve, traffic should move gradually as endpoints fail: Envoy must see the number of all endpoints.", sources: []source{local, other}, p: ir.Placement{Unhealthy: unhealthyAt("a")}, want: []string{"0 app a degraded", "0 app b", "1 other x"}},
		"AllLocal": {
			reason:  "Other clusters should get traffic when all local endpoints are unhealthy. The local ones keep their place, to answer until Envoy has checked the new endpoints.",
			sources: []source{local, other}, p: ir.Placement{Unhealthy: unhealthyAt("a", "b")},
			want: []string{"0 app a degraded", "0 app b degraded", "1 other x"},
		},
		"Alone":     {reason: "Without other clusters, the healthy endpoints should get all traffic.", sources: []source{local}, p: ir.Placement{Unhealthy: unhealthyAt("a")}, want: []string{"0 app b", "2 app a degraded"}},
		"AllAlone":  {reason: "Nothing should change if all endpoints are unhealthy.", sources: []source{local}, p: ir.Placement{Unhealthy: unhealthyAt("a", "b")}, want: []string{"0 app a", "0 app b"}},
		"All":       {reason: "Nothing should change if the endpoints of other clusters are unhealthy too.", sources: []source{local, other}, p: ir.Placement{Unhealthy: unhealthyAt("a", "b", "x")}, want: []string{"0 app a", "0 app b", "1 other x"}},
		"Remote":    {reason: "Unhealthy endpoints of other clusters should come after healthy local ones.", sources: []source{local, other}, p: ir.Placement{Unhealthy: unhealthyAt("x")}, want: []string{"0 app a", "0 app b", "1 other -", "2 other x degraded"}},
		"LocalOnly": {reason: "Other clusters should be excluded until failoverTimeout is over.", sources: []source{local, other}, p: ir.Placement{LocalOnly: true, Unhealthy: unhealthyAt("a", "b")}, want: []string{"0 app a", "0 app b", "1 other -"}},
		"NoLocal":   {reason: "Other clusters should be included if there is no local endpoint.", sources: []source{{name: "app", weight: 1}, other}, p: ir.Placement{LocalOnly: true}, want: []string{"0 app -", "1 other x"}},
		"Failback":  {reason: "Endpoints that are healthy again should wait behind other clusters.", sources: []source{local, other}, p: ir.Placement{Local: true}, want: []string{"0 app -", "1 other x", "2 app a", "2 app b"}},
		"FailbackToNobody": {
			reason: "Endpoints that are healthy again should not wait if other clusters are unhealthy.", sources: []source{local, other}, p: ir.Placement{Local: true, Unhealthy: unhealthyAt("x")},
			want: []string{"0 app a", "0 app b", "1 other x"},
		},
		"Primary": {
			reason:  "The primary should wait behind other local backends.",
			sources: []source{local, {name: "spare", weight: 1, priority: 1, endpoints: hosts("s")}}, p: ir.Placement{Waiting: map[string]bool{"app": true}},
			want: []string{"0 app -", "1 spare s", "2 app a", "2 app b"},
		},
		"WeightZero": {
			reason:  "A backend of weight 0 should not replace another one.",
			sources: []source{local, {name: "none", priority: 1, endpoints: hosts("n")}}, p: ir.Placement{Unhealthy: unhealthyAt("a", "b")},
			want: []string{"0 app a", "0 app b"},
		},
		"Draining": {
			reason:  "A draining endpoint should not move, and not replace another one.",
			sources: []source{{name: "app", weight: 1, endpoints: append(hosts("a"), zonedEndpoint{Endpoint: ir.Endpoint{Address: "d", Health: ir.Draining}})}},
			p:       ir.Placement{Unhealthy: unhealthyAt("a", "d")},
			want:    []string{"0 app a", "0 app d draining"},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			got := describe(localities(place(tc.sources, tc.p)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

func describe(ls []ir.Locality) []string {
	var out []string
	for _, l := range ls {
		if len(l.Endpoints) == 0 {
			out = append(out, fmt.Sprintf("%d %s -", l.Priority, l.Name))
		}
		for _, e := range l.Endpoints {
			health := map[ir.Health]string{ir.Draining: " draining", ir.Degraded: " degraded"}[e.Health]
			out = append(out, fmt.Sprintf("%d %s %s%s", l.Priority, l.Name, e.Address, health))
		}
	}
	return out
}

// TestPlaceLosesNobody checks for random results of probes that no endpoint gets lost,
// except for other clusters that are excluded, and that at least one endpoint remains.
func TestPlaceLosesNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var sources []source
		p := ir.Placement{LocalOnly: r.IntN(4) == 0, Local: r.IntN(4) == 0, Unhealthy: map[ir.Address]bool{}}
		count := map[string]int{}
		for i := range 1 + r.IntN(4) {
			s := source{name: strconv.Itoa(i), weight: uint64(r.IntN(3)), priority: uint32(r.IntN(3)), remote: r.IntN(2) == 0}
			for j := range r.IntN(4) {
				a := fmt.Sprintf("%d.%d", i, j)
				s.endpoints = append(s.endpoints, hosts(a)...)
				p.Unhealthy[ir.Address{Host: a}] = r.IntN(2) == 0
				if s.weight > 0 && (!p.LocalOnly || !s.remote) {
					count[a]++
				}
			}
			sources = append(sources, s)
		}
		for a, unhealthy := range p.Unhealthy {
			if !unhealthy {
				delete(p.Unhealthy, a)
			}
		}
		original := localities(sources)
		got := map[string]int{}
		for _, l := range localities(place(sources, p)) {
			for _, e := range l.Endpoints {
				got[e.Address]++
			}
		}
		for a, n := range count {
			if got[a] != n {
				t.Fatalf("got %s %d times, want %d: %+v of %+v", a, got[a], n, p, sources)
			}
		}
		if !empty(original) && len(got) == 0 {
			t.Fatalf("no endpoint is left: %+v of %+v", p, sources)
		}
		if diff := cmp.Diff(original, localities(sources)); diff != "" {
			t.Fatalf("the sources were changed: %s", diff)
		}
	}
}

func TestSetHealth(t *testing.T) {
	all := []string{routeToWeb, servicesWeb, serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge}
	s := NewStore()
	apply(t, s, false, all...)
	k := ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}
	previous := s.Snapshot()
	well := previous.Target(k)
	if len(well.Candidates) == 0 {
		t.Fatal("want candidates to probe")
	}
	unhealthy := map[ir.Address]bool{}
	for _, c := range well.Candidates {
		if !c.Remote {
			unhealthy[c.Address] = true
		}
	}
	sub := s.Subscribe()
	defer sub.Close()
	unknown := k
	unknown.Name = "unknown"
	s.SetHealth(map[ir.TargetKey]ir.Placement{k: {Unhealthy: unhealthy}, unknown: {Local: true}})
	updated := s.Snapshot()
	if n := len(s.objects.placements); n != 1 {
		t.Errorf("%d targets have a placement, want only the one that a route names", n)
	}
	names, _ := sub.Take()
	if diff := cmp.Diff([]string{k.ClusterName()}, names[:1]); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	if local := updated.Target(k).Localities[0]; local.Remote || local.Endpoints[0].Health != ir.Degraded {
		t.Errorf("the first locality is %+v, want degraded local endpoints", local)
	}
	if updated.Revision != previous.Revision || updated.Digest != previous.Digest {
		t.Error("a change of health changed the revision or the digest")
	}
	if diff := cmp.Diff(well.Candidates, updated.Target(k).Candidates); diff != "" {
		t.Errorf("unhealthy endpoints should stay candidates: -want, +got\n%s", diff)
	}
	s.SetHealth(map[ir.TargetKey]ir.Placement{k: {Unhealthy: unhealthy}})
	if s.Snapshot() != updated {
		t.Error("the same health again changed the Snapshot")
	}
	s.SetHealth(map[ir.TargetKey]ir.Placement{k: {}})
	if diff := cmp.Diff(well.Localities, s.Snapshot().Target(k).Localities); diff != "" {
		t.Errorf("endpoints that are healthy again should return to their place: -want, +got\n%s", diff)
	}
	s.SetHealth(map[ir.TargetKey]ir.Placement{k: {Unhealthy: unhealthy}})
	apply(t, s, true, all[0])
	if len(s.objects.placements) > 0 {
		t.Error("want no placement of a target that no route names")
	}
}

func TestOffline(t *testing.T) {
	o := &gatewayv1alpha1.TailscaleEndpoints{}
	o.Generation = 1
	o.Status.DiscoveredEndpoints = []gatewayv1alpha1.DiscoveredEndpoint{{Name: "db", Health: "Offline", TailscaleFQDN: "db.x"}, {Name: "db2", Health: "Online"}}
	previous := o.DeepCopy()
	previous.Status.DiscoveredEndpoints[0].Health = "Online"
	if parse.Same(previous, o) {
		t.Error("want a change when a device goes offline, which only the status shows")
	}
	moved := o.DeepCopy()
	moved.Status.DiscoveredEndpoints[1].TailscaleIP = "100.64.0.1"
	if !parse.Same(moved, o) {
		t.Error("want no change for the rest of the status")
	}
	if diff := cmp.Diff(map[string]bool{"db": true}, parse.OfflineEndpoints(o)); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	if _, err := parse.Strip(o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"db": true}, parse.OfflineEndpoints(o)); diff != "" {
		t.Errorf("stripped: -want, +got\n%s", diff)
	}

	all := []string{routeTo("TCPRoute", 5432), proxySetEdge, sliceEdge, endpointsEdge}
	s := NewStore()
	apply(t, s, false, all...)
	e, ok := decode(t, endpointsEdge)[0].(*gatewayv1alpha1.TailscaleEndpoints)
	if !ok {
		t.Fatal("endpointsEdge has another kind")
	}
	e.Status = o.Status
	applyObject(t, s, e)
	k := ir.TargetKey{Kind: ir.TargetEndpoints, Namespace: "shop", Name: "edge", Port: 5432, Protocol: ir.ProtocolTCP}
	got := map[string]bool{}
	for _, c := range s.Snapshot().Target(k).Candidates {
		got[c.Source] = c.Offline
	}
	if diff := cmp.Diff(map[string]bool{"db/5432": true, "db2/5432": false}, got); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	e.Status = gatewayv1alpha1.TailscaleEndpointsStatus{}
	applyObject(t, s, e)
	if len(s.objects.offline) > 0 {
		t.Errorf("%v are offline, want none", s.objects.offline[types.NamespacedName{Namespace: "shop", Name: "edge"}])
	}
}

func TestDelays(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   ir.Delays
	}{
		"None":   {reason: "Without a policy there should be no delays.", spec: `{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}]}`},
		"Policy": {reason: "The delays should be those of the policy.", spec: `{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], loadBalancing: {failoverPolicy: {failoverTimeout: 20s, failbackDelay: 1m}}}`, want: ir.Delays{Failover: 20 * time.Second, Failback: time.Minute}},
		"Strategy": {
			reason: "A primary should have the schema's default delay.",
			spec:   `{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], loadBalancing: {strategy: failover, failover: {primary: app, secondary: [alt]}}}`,
			want:   ir.Delays{Primary: "app", PrimaryFailback: time.Minute},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			o, ok := decode(t, services(tc.spec))[0].(*gatewayv1alpha1.TailscaleServices)
			if !ok {
				t.Fatal("the object has another kind")
			}
			if diff := cmp.Diff(tc.want, parse.Delays(o.Spec.LoadBalancing)); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

func applyObject(t *testing.T, s *Store, o client.Object) {
	t.Helper()
	if err := s.Apply(Change{Object: o}); err != nil {
		t.Fatal(err)
	}
}
