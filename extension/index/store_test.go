// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	mixedRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: mixed, labels: {team: shop}}
spec:
  parentRefs: [{kind: ListenerSet, name: more}]
  rules:
  - name: split
    backendRefs:
    - {name: app, port: 8080, weight: 70}
    - {group: gateway.tailscale.com, kind: TailscaleEndpoints, name: edge, port: 5432, weight: 30}
    - {group: gateway.tailscale.com, kind: TailscaleServices, name: web, namespace: other, port: 80}
`
	listenerSet = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more}
spec: {parentRef: {name: gw2, namespace: infra}, listeners: [{name: a, port: 80, protocol: HTTP}]}
`
	grant = `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: web, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}]
  to: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web}, {group: "", kind: Service}]
`
	pinRule = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: rule}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: mixed, sectionName: split}], circuitBreaker: {maxConnections: 7}}
`
	pinLabels = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: labels}
spec: {targetSelectors: [{kind: HTTPRoute, matchLabels: {team: shop}}], loadBalancer: {type: RoundRobin}}
`
)

// everything that tests have, by kind.
func everything() []string {
	return []string{
		routeToWeb, mixedRoute, routeTo("UDPRoute", 53), listenerSet, grant, pinRule, tuneGateway, tlsPolicy, tlsPolicyOfPort, configMapCA,
		servicesWeb, serviceApp, sliceApp, serviceAlt, sliceAlt, attachmentWeb, proxySetEdge, sliceEdge, endpointsEdge,
		policyWeb, policyGateway, gatewayOf("gw2"), identityOf("joins", "gw2", "http"),
		"apiVersion: v1\nkind: Service\nmetadata: {name: edge-out}\nspec: {clusterIP: None, ipFamilies: [IPv4]}\n",
	}
}

// TestApplyInAnyOrder changes, adds and removes objects at random, some at once, and
// wants what the objects that are left give when they come all together.
func TestApplyInAnyOrder(t *testing.T) {
	all := decode(t, everything()...)
	want := snapshotOf(t, everything()...)
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := NewStore()
		gone := map[int]bool{}
		for range 60 {
			var cs []Change
			for range 1 + r.IntN(4) {
				i := r.IntN(len(all))
				gone[i] = r.IntN(3) == 0
				cs = append(cs, Change{Object: disturbed(all[i], r), Gone: gone[i]})
			}
			if err := s.Apply(cs...); err != nil {
				t.Fatal(err)
			}
		}
		order := r.Perm(len(all))
		for _, i := range order[:len(order)/2] {
			if err := s.Apply(Change{Object: all[i]}); err != nil {
				t.Fatal(err)
			}
		}
		var rest []Change
		for _, i := range order[len(order)/2:] {
			rest = append(rest, Change{Object: all[i]})
		}
		if err := s.Apply(rest...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.Snapshot(), compareSnapshots()); diff != "" {
			t.Fatalf("seed %d: -want, +got\n%s", seed, diff)
		}
		for _, o := range all {
			if err := s.Apply(Change{Object: o, Gone: true}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(&ir.Snapshot{}, s.Snapshot(), compareSnapshots()); diff != "" {
			t.Fatalf("seed %d: something is left: -want, +got\n%s", seed, diff)
		}
		if len(s.lookups)+len(s.dependents)+len(s.namedBy)+len(s.ruleNames)+len(s.objects.groups)+len(s.objects.identityGateway)+len(s.objects.identities) > 0 {
			t.Fatalf("seed %d: dependencies are left: %v %v %v %v", seed, s.lookups, s.dependents, s.namedBy, s.objects.groups)
		}
	}
}

// disturbed is an object as it may have been before, with other labels: of a slice
// they are what it belongs to.
func disturbed(o client.Object, r *rand.Rand) client.Object {
	if r.IntN(2) == 0 {
		return o
	}
	c, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return o
	}
	l := maps.Clone(c.GetLabels())
	for k := range l {
		l[k] = []string{"app", "alt", "edge-out", "shop", ""}[r.IntN(5)]
	}
	c.SetLabels(l)
	if a, ok := c.(*tailnetv1alpha1.ServiceAttachment); ok {
		a.Spec.Direction = tailnetv1alpha1.DirectionIngress
	}
	return c
}

func TestRevision(t *testing.T) {
	base := []string{routeToWeb, mixedRoute, servicesWeb, serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge, endpointsEdge}
	cases := map[string]struct {
		reason  string
		change  string
		gone    bool
		greater bool
		names   []string
	}{
		"Nothing": {
			reason: "An object as it was changes nothing.",
			change: servicesWeb,
		},
		"Status": {
			reason: "Nor does a newer generation of a route with the same rules.",
			change: strings.Replace(routeToWeb, "generation: 1", "generation: 2", 1),
		},
		"Endpoints": {
			reason: "A pod that is ready is an endpoint more, and no other shape. Rules that name the Service beside ours have it too.",
			change: strings.ReplaceAll(sliceApp, "ready: false}", "ready: true}"),
			names:  []string{"tailscale/rule/httproute/shop/mixed", "tailscale/services/shop/web/80/http"},
		},
		"Proxies": {
			reason: "An egress pod is an endpoint of all that goes through it.",
			change: strings.Replace(sliceEdge, "serving: false", "serving: true", 1),
			names:  []string{"tailscale/endpoints/shop/edge/5432/http", "tailscale/rule/httproute/shop/mixed", "tailscale/services/shop/web/80/http"},
		},
		"Shape": {
			reason:  "A threshold is part of the shape, and no endpoint.",
			change:  services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], loadBalancing: {failoverPolicy: {healthThreshold: 50}}}`),
			greater: true,
		},
		"Missing": {
			reason:  "A reference that became wrong is answered otherwise.",
			change:  servicesWeb,
			gone:    true,
			greater: true,
			names:   []string{"tailscale/services/shop/web/80/http"},
		},
		"Route": {
			reason:  "A route names another port.",
			change:  strings.Replace(routeToWeb, "port: 80", "port: 81", 1),
			greater: true,
			names:   []string{"tailscale/services/shop/web/80/http", "tailscale/services/shop/web/81/http"},
		},
		"Grant": {
			reason:  "A reference became permitted.",
			change:  grant,
			greater: true,
		},
		"Pin": {
			reason:  "A policy on a rule gives it a cluster of its own.",
			change:  pinRule,
			greater: true,
		},
		"OtherRoute": {
			reason: "A route that names none of ours is nobody's business.",
			change: "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: plain}\nspec: {rules: [{backendRefs: [{name: app, port: 8080}]}]}\n",
		},
		"OtherService": {
			reason: "Nor is a Service that no target needs.",
			change: serviceAlt,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := NewStore()
			apply(t, s, false, base...)
			sub := s.Subscribe()
			defer sub.Close()
			before := s.Snapshot()
			apply(t, s, tc.gone, tc.change)
			after := s.Snapshot()
			if got := after.Revision > before.Revision; got != tc.greater {
				t.Errorf("%s\nrevision: want greater %v, got %d after %d", tc.reason, tc.greater, after.Revision, before.Revision)
			}
			if got := after.Digest != before.Digest; got != tc.greater {
				t.Errorf("%s\ndigest: want other %v, got %d after %d", tc.reason, tc.greater, after.Digest, before.Digest)
			}
			woken := false
			select {
			case <-sub.Changed():
				woken = true
			default:
			}
			got := plain(sub.Take())
			if diff := cmp.Diff(tc.names, got); diff != "" {
				t.Errorf("%s\nnames: -want, +got\n%s", tc.reason, diff)
			}
			if woken != (len(tc.names) > 0) {
				t.Errorf("%s\nwoken: %v", tc.reason, woken)
			}
		})
	}
}

// plain names are sorted, and without the hash of a rule's backends.
func plain(names []string) []string {
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, ir.RulePrefix) {
			n = n[:strings.LastIndex(n, "/")]
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestNamesAreKnown wants the names that are told to be those that are answered.
func TestNamesAreKnown(t *testing.T) {
	s := NewStore()
	sub := s.Subscribe()
	defer sub.Close()
	apply(t, s, false, everything()...)
	for _, n := range sub.Take() {
		if _, ok := s.Snapshot().Shares(n); !ok {
			t.Errorf("%q is told, and not known", n)
		}
	}
	mixed := s.Snapshot().Route(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")})
	apply(t, s, true, sliceApp)
	if n, names := mixed.RuleName(0), sub.Take(); !slices.Contains(names, n) {
		t.Errorf("%q has changed, and is not told: %v", n, names)
	}
}

func TestSnapshotNeverChanges(t *testing.T) {
	s := NewStore()
	apply(t, s, false, everything()...)
	before := s.Snapshot()
	apply(t, s, true, everything()...)
	if diff := cmp.Diff(snapshotOf(t, everything()...), before, compareSnapshots()); diff != "" {
		t.Errorf("a Snapshot has changed: -want, +got\n%s", diff)
	}
}

func TestSubscriptionCollects(t *testing.T) {
	s := NewStore()
	sub := s.Subscribe()
	apply(t, s, false, routeToWeb)
	apply(t, s, false, mixedRoute)
	want := []string{
		"tailscale/endpoints/shop/edge/5432/http", "tailscale/rule/httproute/shop/mixed",
		"tailscale/services/other/web/80/http", "tailscale/services/shop/web/80/http",
	}
	if diff := cmp.Diff(want, plain(sub.Take())); diff != "" {
		t.Errorf("names of two changes: -want, +got\n%s", diff)
	}
	if got := sub.Take(); len(got) > 0 {
		t.Errorf("names are given out twice: %v", got)
	}
	sub.Close()
	apply(t, s, true, routeToWeb)
	if got := sub.Take(); len(got) > 0 {
		t.Errorf("a closed subscription got %v", got)
	}
}

func TestPermitted(t *testing.T) {
	other := func(k ir.BackendKind, n string) ir.BackendRef {
		return ir.BackendRef{Kind: k, NamespacedName: types.NamespacedName{Namespace: "other", Name: n}}
	}
	cases := map[string]struct {
		reason string
		kind   ir.RouteKind
		ref    ir.BackendRef
		want   bool
	}{
		"SameNamespace": {reason: "One's own namespace is always permitted.", kind: ir.KindTCPRoute, ref: ir.BackendRef{Kind: ir.BackendServices, NamespacedName: name("web")}, want: true},
		"Granted":       {reason: "A grant names the object.", kind: ir.KindHTTPRoute, ref: other(ir.BackendServices, "web"), want: true},
		"OtherName":     {reason: "And not another one.", kind: ir.KindHTTPRoute, ref: other(ir.BackendServices, "api")},
		"OtherKind":     {reason: "Nor another kind.", kind: ir.KindHTTPRoute, ref: other(ir.BackendEndpoints, "web")},
		"OtherRoute":    {reason: "Nor another kind of route.", kind: ir.KindGRPCRoute, ref: other(ir.BackendServices, "web")},
		"AnyService":    {reason: "A grant without a name is for all.", kind: ir.KindHTTPRoute, ref: other(ir.BackendService, "app"), want: true},
		"L4":            {reason: "Envoy Gateway drops ours in another namespace on L4.", kind: ir.KindTCPRoute, ref: other(ir.BackendServices, "web")},
	}
	s := snapshotOf(t, grant, strings.NewReplacer("name: web, namespace", "name: tcp, namespace", "kind: HTTPRoute", "kind: TCPRoute").Replace(grant))
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if got := s.Permitted(ir.RouteKey{Kind: tc.kind, NamespacedName: name("r")}, tc.ref); got != tc.want {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestPinned(t *testing.T) {
	mixed := ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")}
	with := func(settings string) []string {
		return []string{strings.Replace(pinRule, "circuitBreaker: {maxConnections: 7}", settings, 1)}
	}
	cases := map[string]struct {
		reason      string
		policies    []string
		rule, other bool
	}{
		"None":          {reason: "No policy pins nothing."},
		"Rule":          {reason: "A policy on a rule pins that rule.", policies: []string{pinRule}, rule: true},
		"Route":         {reason: "One on the route pins all.", policies: []string{strings.Replace(pinRule, ", sectionName: split", "", 1)}, rule: true, other: true},
		"TargetRef":     {reason: "So does the older targetRef.", policies: []string{strings.NewReplacer("targetRefs: [{", "targetRef: {", ", sectionName: split}],", "},").Replace(pinRule)}, rule: true, other: true},
		"Labels":        {reason: "And a selector.", policies: []string{pinLabels}, rule: true, other: true},
		"OtherLabels":   {reason: "But one of other labels.", policies: []string{strings.Replace(pinLabels, "team: shop", "team: x", 1)}},
		"Gateway":       {reason: "A policy on the Gateway is in the template of all clusters.", policies: []string{strings.Replace(pinRule, "kind: HTTPRoute, name: mixed", "kind: Gateway, name: mixed", 1)}},
		"Namespace":     {reason: "A policy is for its own namespace.", policies: []string{strings.Replace(pinLabels, "name: labels", "name: labels, namespace: other", 1)}},
		"AllNamespaces": {reason: "Unless it says otherwise: better a route too many.", policies: []string{strings.NewReplacer("name: labels", "name: labels, namespace: other", "kind: HTTPRoute,", "kind: HTTPRoute, namespaces: {from: All},").Replace(pinLabels)}, rule: true, other: true},
		"RouteSettings": {reason: "What no cluster is made of pins nothing.", policies: with("retry: {numRetries: 3}, faultInjection: {abort: {httpStatus: 500}}, timeout: {http: {requestTimeout: 3s, streamIdleTimeout: 2s}}, mergeType: StrategicMerge")},
		"HTTPTimeout":   {reason: "A timeout of connections is the cluster's.", policies: with("timeout: {http: {requestTimeout: 3s, connectionIdleTimeout: 1h}}"), rule: true},
		"TCPTimeout":    {reason: "So is one of TCP.", policies: with("timeout: {tcp: {connectTimeout: 1s}}"), rule: true},
		"Unknown":       {reason: "What is not known may be.", policies: with("retry: {}, surprise: {}"), rule: true},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, append([]string{mixedRoute}, tc.policies...)...)
			if got := s.Pinned(mixed, "split"); got != tc.rule {
				t.Errorf("%s\nrule split: want %v, got %v", tc.reason, tc.rule, got)
			}
			if got := s.Pinned(mixed, ""); got != tc.other {
				t.Errorf("%s\nother rules: want %v, got %v", tc.reason, tc.other, got)
			}
		})
	}
}

func TestBadPolicy(t *testing.T) {
	s := NewStore()
	apply(t, s, false, mixedRoute, pinLabels)
	bad := strings.Replace(pinLabels, "matchLabels: {team: shop}", "matchExpressions: [{key: team, operator: Boom}]", 1)
	if err := s.Apply(Change{Object: decode(t, bad)[0]}); err == nil {
		t.Error("a selector that cannot be read is no error")
	}
	if s.Snapshot().Pinned(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")}, "") {
		t.Error("a policy that cannot be read still counts as it was")
	}
}

func TestSetHost(t *testing.T) {
	s := directStore()
	apply(t, s, false, routeToWeb, services(`{vipService: {ports: ["tcp:80"]}, backends: [{kind: External, name: legacy, host: Old.example.com., port: 8080}]}`))
	if diff := cmp.Diff([]string{"old.example.com"}, s.Hosts()); diff != "" {
		t.Errorf("hosts to resolve: -want, +got\n%s", diff)
	}
	key := ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}
	s.SetHost("old.example.com", []string{"192.0.2.2", "192.0.2.1", "192.0.2.2"})
	want := []ir.Locality{{Name: "legacy", Weight: 1, Endpoints: []ir.Endpoint{
		{Address: "192.0.2.1", Port: 8080, Hostname: "old.example.com", Weight: 1},
		{Address: "192.0.2.2", Port: 8080, Hostname: "old.example.com", Weight: 1},
	}}}
	if diff := cmp.Diff(want, s.Snapshot().Target(key).Localities); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	// Who resolves names hears of the first that is wanted, not of its addresses,
	// and again when nobody wants it.
	for _, wanted := range []string{"a name that is wanted", "a name that nobody wants"} {
		select {
		case <-s.HostsChanged():
		default:
			t.Errorf("%s is not told", wanted)
		}
		select {
		case <-s.HostsChanged():
			t.Errorf("%s is told twice", wanted)
		default:
		}
		apply(t, s, true, routeToWeb)
	}
	apply(t, s, false, routeToWeb)
	s.SetHost("old.example.com", nil)
	if got := s.Snapshot().Target(key).Problem; got == "" {
		t.Error("a host without addresses is no problem")
	}
}

// What is for people alone is renewed, and neither revision nor digest moves: else
// Envoy Gateway would translate for it.
func TestApplyAbout(t *testing.T) {
	s := NewStore()
	if err := s.Apply(Change{Object: decode(t, routeToWeb)[0]}); err != nil {
		t.Fatal(err)
	}
	before := s.Snapshot()
	o := decode(t, routeToWeb)[0].(*gwapiv1.HTTPRoute)
	o.Spec.Hostnames = []gwapiv1.Hostname{"new.example.com"}
	if err := s.Apply(Change{Object: o}); err != nil {
		t.Fatal(err)
	}
	now := s.Snapshot()
	if diff := cmp.Diff([]string{"new.example.com"}, now.Route(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}).Info.Hostnames); diff != "" {
		t.Errorf("-want hostnames, +got:\n%s", diff)
	}
	if now.Revision != before.Revision || now.Digest != before.Digest {
		t.Errorf("revision %d -> %d, digest %x -> %x", before.Revision, now.Revision, before.Digest, now.Digest)
	}
}

func TestApplyUnknown(t *testing.T) {
	s := NewStore()
	err := s.Apply(Change{Object: &corev1.Pod{}}, Change{Object: decode(t, routeToWeb)[0]})
	if err == nil {
		t.Error("a Pod is taken")
	}
	if s.Snapshot().Route(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}) == nil {
		t.Error("what came with a Pod is not taken")
	}
}
