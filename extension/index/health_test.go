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

// hosts are endpoints by address alone.
func hosts(addresses ...string) []zonedEndpoint {
	var out []zonedEndpoint
	for _, a := range addresses {
		out = append(out, zonedEndpoint{Endpoint: ir.Endpoint{Address: a}})
	}
	return out
}

func sickAt(addresses ...string) map[ir.Address]bool {
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
		"Well":    {reason: "Nothing is to be moved.", sources: []source{local, other}, want: []string{"0 app a", "0 app b", "1 other x"}},
		"Gradual": {reason: "Where other clusters stand ready, traffic goes over as gradually as endpoints fail: Envoy must see how many there are.", sources: []source{local, other}, p: ir.Placement{Unhealthy: sickAt("a")}, want: []string{"0 app a degraded", "0 app b", "1 other x"}},
		"AllLocal": {
			reason:  "Other clusters come before local ones that are all sick. These keep their place: they answer until Envoy has found well who has just come.",
			sources: []source{local, other}, p: ir.Placement{Unhealthy: sickAt("a", "b")},
			want: []string{"0 app a degraded", "0 app b degraded", "1 other x"},
		},
		"Alone":     {reason: "Without others who is well takes all.", sources: []source{local}, p: ir.Placement{Unhealthy: sickAt("a")}, want: []string{"0 app b", "2 app a degraded"}},
		"AllAlone":  {reason: "If all are sick nothing moves.", sources: []source{local}, p: ir.Placement{Unhealthy: sickAt("a", "b")}, want: []string{"0 app a", "0 app b"}},
		"All":       {reason: "Those of other clusters count.", sources: []source{local, other}, p: ir.Placement{Unhealthy: sickAt("a", "b", "x")}, want: []string{"0 app a", "0 app b", "1 other x"}},
		"Remote":    {reason: "Other clusters that are sick come after local ones that are not.", sources: []source{local, other}, p: ir.Placement{Unhealthy: sickAt("x")}, want: []string{"0 app a", "0 app b", "1 other -", "2 other x degraded"}},
		"LocalOnly": {reason: "Until failoverTimeout is over other clusters are not there.", sources: []source{local, other}, p: ir.Placement{LocalOnly: true, Unhealthy: sickAt("a", "b")}, want: []string{"0 app a", "0 app b", "1 other -"}},
		"NoLocal":   {reason: "They are there when no local endpoint is.", sources: []source{{name: "app", weight: 1}, other}, p: ir.Placement{LocalOnly: true}, want: []string{"0 app -", "1 other x"}},
		"Failback":  {reason: "Who has come back waits behind those who stand in.", sources: []source{local, other}, p: ir.Placement{Local: true}, want: []string{"0 app -", "1 other x", "2 app a", "2 app b"}},
		"FailbackToNobody": {
			reason: "He does not wait when they are sick.", sources: []source{local, other}, p: ir.Placement{Local: true, Unhealthy: sickAt("x")},
			want: []string{"0 app a", "0 app b", "1 other x"},
		},
		"Primary": {
			reason:  "Of several local ones the primary can wait.",
			sources: []source{local, {name: "spare", weight: 1, priority: 1, endpoints: hosts("s")}}, p: ir.Placement{Waiting: map[string]bool{"app": true}},
			want: []string{"0 app -", "1 spare s", "2 app a", "2 app b"},
		},
		"WeightZero": {
			reason:  "A backend that is to get nothing stands in for nobody.",
			sources: []source{local, {name: "none", priority: 1, endpoints: hosts("n")}}, p: ir.Placement{Unhealthy: sickAt("a", "b")},
			want: []string{"0 app a", "0 app b"},
		},
		"Draining": {
			reason:  "Who drains is left alone, and stands in for nobody.",
			sources: []source{{name: "app", weight: 1, endpoints: append(hosts("a"), zonedEndpoint{Endpoint: ir.Endpoint{Address: "d", Health: ir.Draining}})}},
			p:       ir.Placement{Unhealthy: sickAt("a", "d")},
			want:    []string{"0 app a", "0 app d draining"},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			got := told(localities(place(tc.sources, tc.p)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

func told(ls []ir.Locality) []string {
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

// TestPlaceLosesNobody shows for anything that probes may say that every endpoint is
// still there, except for other clusters that are to wait, and that somebody comes first.
func TestPlaceLosesNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var in []source
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
			in = append(in, s)
		}
		for a, sick := range p.Unhealthy {
			if !sick {
				delete(p.Unhealthy, a)
			}
		}
		before := localities(in)
		got := map[string]int{}
		for _, l := range localities(place(in, p)) {
			for _, e := range l.Endpoints {
				got[e.Address]++
			}
		}
		for a, n := range count {
			if got[a] != n {
				t.Fatalf("%s is there %d times, want %d: %+v of %+v", a, got[a], n, p, in)
			}
		}
		if !empty(before) && len(got) == 0 {
			t.Fatalf("nobody is left: %+v of %+v", p, in)
		}
		if diff := cmp.Diff(before, localities(in)); diff != "" {
			t.Fatalf("what was given is changed: %s", diff)
		}
	}
}

func TestSetHealth(t *testing.T) {
	all := []string{routeToWeb, servicesWeb, serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge}
	s := NewStore()
	apply(t, s, false, all...)
	k := ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}
	before := s.Snapshot()
	well := before.Target(k)
	if len(well.Candidates) == 0 {
		t.Fatal("nobody is to be probed")
	}
	sick := map[ir.Address]bool{}
	for _, c := range well.Candidates {
		if !c.Remote {
			sick[c.Address] = true
		}
	}
	sub := s.Subscribe()
	defer sub.Close()
	unknown := k
	unknown.Name = "unknown"
	s.SetHealth(map[ir.TargetKey]ir.Placement{k: {Unhealthy: sick}, unknown: {Local: true}})
	after := s.Snapshot()
	if n := len(s.objects.placements); n != 1 {
		t.Errorf("%d targets have a placement, want one: who is not named has none", n)
	}
	if diff := cmp.Diff([]string{k.ClusterName()}, sub.Take()[:1]); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	if local := after.Target(k).Localities[0]; local.Remote || local.Endpoints[0].Health != ir.Degraded {
		t.Errorf("the first locality is %+v, want sick local ones", local)
	}
	if after.Revision != before.Revision || after.Digest != before.Digest {
		t.Error("health is no change of shape, and needs no translation")
	}
	if diff := cmp.Diff(well.Candidates, after.Target(k).Candidates); diff != "" {
		t.Errorf("who is sick is probed on: -want, +got\n%s", diff)
	}
	s.SetHealth(map[ir.TargetKey]ir.Placement{k: {Unhealthy: sick}})
	if s.Snapshot() != after {
		t.Error("what was told before is no change")
	}
	s.SetHealth(map[ir.TargetKey]ir.Placement{k: {}})
	if diff := cmp.Diff(well.Localities, s.Snapshot().Target(k).Localities); diff != "" {
		t.Errorf("who is well again stands where he did: -want, +got\n%s", diff)
	}
	s.SetHealth(map[ir.TargetKey]ir.Placement{k: {Unhealthy: sick}})
	apply(t, s, true, all[0])
	if len(s.objects.placements) > 0 {
		t.Error("a target that nobody names has no placement any more")
	}
}

func TestOffline(t *testing.T) {
	o := &gatewayv1alpha1.TailscaleEndpoints{}
	o.Generation = 1
	o.Status.DiscoveredEndpoints = []gatewayv1alpha1.DiscoveredEndpoint{{Name: "db", Health: "Offline", TailscaleFQDN: "db.x"}, {Name: "db2", Health: "Online"}}
	was := o.DeepCopy()
	was.Status.DiscoveredEndpoints[0].Health = "Online"
	if parse.Same(was, o) {
		t.Error("a device that went offline must be seen, though its status alone tells")
	}
	moved := o.DeepCopy()
	moved.Status.DiscoveredEndpoints[1].TailscaleIP = "100.64.0.1"
	if !parse.Same(moved, o) {
		t.Error("nothing else of the status is read")
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
		t.Fatal("endpointsEdge is of another kind")
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
		"None":   {reason: "Traffic moves at once.", spec: `{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}]}`},
		"Policy": {reason: "As the policy says.", spec: `{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], loadBalancing: {failoverPolicy: {failoverTimeout: 20s, failbackDelay: 1m}}}`, want: ir.Delays{Failover: 20 * time.Second, Failback: time.Minute}},
		"Strategy": {
			reason: "A primary that says nothing waits as long as the schema has it.",
			spec:   `{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], loadBalancing: {strategy: failover, failover: {primary: app, secondary: [alt]}}}`,
			want:   ir.Delays{Primary: "app", PrimaryFailback: time.Minute},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			o, ok := decode(t, services(tc.spec))[0].(*gatewayv1alpha1.TailscaleServices)
			if !ok {
				t.Fatal("it is of another kind")
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
