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

// everything returns the manifests of the tests, of all kinds.
func everything() []string {
	return []string{
		routeToWeb, mixedRoute, routeTo("UDPRoute", 53), listenerSet, grant, pinRule, tuneGateway, tlsPolicy, tlsPolicyOfPort, configMapCA,
		servicesWeb, serviceApp, sliceApp, serviceAlt, sliceAlt, attachmentWeb, proxySetEdge, sliceEdge, endpointsEdge,
		policyWeb, policyGateway, gatewayOf("gw2"), identityOf("joins", "gw2", "http"),
		routeToService, failoverOf("infra"), failoverOf("shop"), shareGateways,
		"apiVersion: v1\nkind: Service\nmetadata: {name: edge-out}\nspec: {clusterIP: None, ipFamilies: [IPv4]}\n",
	}
}

// TestApplyInAnyOrder creates, changes and deletes objects at random, sometimes several at
// once. The result must equal a store that receives the remaining objects at once.
func TestApplyInAnyOrder(t *testing.T) {
	all := decode(t, everything()...)
	want := snapshotOf(t, everything()...)
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := NewStore()
		deleted := map[int]bool{}
		for range 60 {
			var cs []Change
			for range 1 + r.IntN(4) {
				i := r.IntN(len(all))
				deleted[i] = r.IntN(3) == 0
				cs = append(cs, Change{Object: disturbed(all[i], r), Deleted: deleted[i]})
			}
			if err := applyChanges(s, cs...); err != nil {
				t.Fatal(err)
			}
		}
		order := r.Perm(len(all))
		for _, i := range order[:len(order)/2] {
			if err := applyChanges(s, Change{Object: all[i]}); err != nil {
				t.Fatal(err)
			}
		}
		var rest []Change
		for _, i := range order[len(order)/2:] {
			rest = append(rest, Change{Object: all[i]})
		}
		if err := applyChanges(s, rest...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.Snapshot(), compareSnapshots()); diff != "" {
			t.Fatalf("seed %d: -want, +got\n%s", seed, diff)
		}
		for _, o := range all {
			if err := applyChanges(s, Change{Object: o, Deleted: true}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(&ir.Snapshot{}, s.Snapshot(), compareSnapshots()); diff != "" {
			t.Fatalf("seed %d: the Snapshot is not empty: -want, +got\n%s", seed, diff)
		}
		if len(s.built)+len(s.byLookup)+len(s.namedBy)+len(s.ruleNames)+len(s.foreign)+len(s.objects.permissions)+len(s.objects.permitted)+len(s.objects.groups)+len(s.objects.identityGateway)+len(s.objects.requestedListeners)+len(s.objects.failovers)+len(s.objects.failoverGateway)+len(s.objects.serviceRoutes)+len(s.objects.publishers) > 0 {
			t.Fatalf("seed %d: dependencies are left: %v %v %v %v %v %v", seed, s.built, s.byLookup, s.namedBy, s.objects.groups, s.foreign, s.objects.permitted)
		}
	}
}

// disturbed returns an object as it may have been before, with other labels. Labels of an
// EndpointSlice name its Service.
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
		deleted bool
		greater bool
		names   []string
		tunings bool
	}{
		"Nothing": {
			reason: "An unchanged object should change nothing.",
			change: servicesWeb,
		},
		"Status": {
			reason: "A newer generation of a route with the same rules should change nothing.",
			change: strings.Replace(routeToWeb, "generation: 1", "generation: 2", 1),
		},
		"Endpoints": {
			reason: "A new ready pod should add an endpoint and keep the shape, also for rules that name the Service beside one of our kinds.",
			change: strings.ReplaceAll(sliceApp, "ready: false}", "ready: true}"),
			names:  []string{"tailscale/rule/httproute/shop/mixed", "tailscale/services/shop/web/80/http"},
		},
		"Proxies": {
			reason: "An egress pod should be an endpoint of all targets behind it.",
			change: strings.Replace(sliceEdge, "serving: false", "serving: true", 1),
			names:  []string{"tailscale/endpoints/shop/edge/5432/http", "tailscale/rule/httproute/shop/mixed", "tailscale/services/shop/web/80/http"},
		},
		"Shape": {
			reason:  "A threshold should change the shape, and the endpoint list, which has it.",
			change:  services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], loadBalancing: {failoverPolicy: {healthThreshold: 50}}}`),
			greater: true,
			names:   []string{"tailscale/services/shop/web/80/http"},
		},
		"Missing": {
			reason:  "A reference that becomes invalid should change the shape.",
			change:  servicesWeb,
			deleted: true,
			greater: true,
			names:   []string{"tailscale/services/shop/web/80/http"},
		},
		"Route": {
			reason:  "Another port in a route should change the shape.",
			change:  strings.Replace(routeToWeb, "port: 80", "port: 81", 1),
			greater: true,
			names:   []string{"tailscale/services/shop/web/80/http", "tailscale/services/shop/web/81/http"},
		},
		"Grant": {
			reason:  "A reference that becomes permitted should change the revision, and the endpoints of its rule.",
			change:  grant,
			greater: true,
			names:   []string{"tailscale/rule/httproute/shop/mixed"},
		},
		"Pin": {
			reason:  "A policy on a rule should give the rule a separate cluster.",
			change:  pinRule,
			greater: true,
		},
		"Tuning": {
			reason:  "A policy with another port for health checks should change the tunings, and no list without one.",
			change:  tuneRoute,
			greater: true,
			tunings: true,
		},
		"OtherRoute": {
			reason: "A route without a backend of our kinds should change nothing.",
			change: "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: plain}\nspec: {rules: [{backendRefs: [{name: app, port: 8080}]}]}\n",
		},
		"OtherService": {
			reason: "A Service that no target needs should change nothing.",
			change: serviceAlt,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := NewStore()
			apply(t, s, false, base...)
			sub := s.Subscribe()
			defer sub.Close()
			previous := s.Snapshot()
			apply(t, s, tc.deleted, tc.change)
			updated := s.Snapshot()
			if got := updated.Revision > previous.Revision; got != tc.greater {
				t.Errorf("%s\nrevision: want increase %v, got %d after %d", tc.reason, tc.greater, updated.Revision, previous.Revision)
			}
			if got := updated.Digest != previous.Digest; got != tc.greater {
				t.Errorf("%s\ndigest: want change %v, got %d after %d", tc.reason, tc.greater, updated.Digest, previous.Digest)
			}
			woken := false
			select {
			case <-sub.Changed():
				woken = true
			default:
			}
			names, tunings := sub.Take()
			if diff := cmp.Diff(tc.names, plain(names)); diff != "" {
				t.Errorf("%s\nnames: -want, +got\n%s", tc.reason, diff)
			}
			if tunings != tc.tunings {
				t.Errorf("%s\nother tunings: want %t, got %t", tc.reason, tc.tunings, tunings)
			}
			if woken != (len(tc.names) > 0 || tc.tunings) {
				t.Errorf("%s\nnotified: %v", tc.reason, woken)
			}
		})
	}
}

// plain returns names sorted, and without the hash of a rule's backends.
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

// TestNamesAreKnown checks that a Snapshot resolves the names that a subscription reports.
func TestNamesAreKnown(t *testing.T) {
	s := NewStore()
	sub := s.Subscribe()
	defer sub.Close()
	apply(t, s, false, everything()...)
	names, _ := sub.Take()
	for _, n := range names {
		if _, ok := s.Snapshot().Shares(n); !ok {
			t.Errorf("%q is reported but not known", n)
		}
	}
	mixed := s.Snapshot().Route(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")})
	apply(t, s, true, sliceApp)
	names, _ = sub.Take()
	if n := mixed.RuleName(0); !slices.Contains(names, n) {
		t.Errorf("%q has changed but is not reported: %v", n, names)
	}
}

func TestSnapshotNeverChanges(t *testing.T) {
	s := NewStore()
	apply(t, s, false, everything()...)
	original := s.Snapshot()
	apply(t, s, true, everything()...)
	if diff := cmp.Diff(snapshotOf(t, everything()...), original, compareSnapshots()); diff != "" {
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
	names, _ := sub.Take()
	if diff := cmp.Diff(want, plain(names)); diff != "" {
		t.Errorf("names of two changes: -want, +got\n%s", diff)
	}
	if got, _ := sub.Take(); len(got) > 0 {
		t.Errorf("names are reported twice: %v", got)
	}
	sub.Close()
	apply(t, s, true, routeToWeb)
	if got, _ := sub.Take(); len(got) > 0 {
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
		"SameNamespace": {reason: "The route's namespace should always be permitted.", kind: ir.KindTCPRoute, ref: ir.BackendRef{Kind: ir.BackendServices, NamespacedName: name("web")}, want: true},
		"Granted":       {reason: "A grant should permit the object that it names.", kind: ir.KindHTTPRoute, ref: other(ir.BackendServices, "web"), want: true},
		"OtherName":     {reason: "A grant should not permit another object.", kind: ir.KindHTTPRoute, ref: other(ir.BackendServices, "api")},
		"OtherKind":     {reason: "A grant should not permit another kind.", kind: ir.KindHTTPRoute, ref: other(ir.BackendEndpoints, "web")},
		"OtherRoute":    {reason: "A grant should not permit another kind of route.", kind: ir.KindGRPCRoute, ref: other(ir.BackendServices, "web")},
		"AnyService":    {reason: "A grant without a name should permit all objects of the kind.", kind: ir.KindHTTPRoute, ref: other(ir.BackendService, "app"), want: true},
		"L4":            {reason: "An L4 route should not be permitted to name our kinds in another namespace, because Envoy Gateway drops such references.", kind: ir.KindTCPRoute, ref: other(ir.BackendServices, "web")},
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
	pinWith := func(settings string) []string {
		return []string{strings.Replace(pinRule, "circuitBreaker: {maxConnections: 7}", settings, 1)}
	}
	cases := map[string]struct {
		reason      string
		policies    []string
		rule, other bool
	}{
		"None":          {reason: "Without a policy nothing should be pinned."},
		"Rule":          {reason: "A policy on a rule should pin that rule.", policies: []string{pinRule}, rule: true},
		"Route":         {reason: "A policy on the route should pin all rules.", policies: []string{strings.Replace(pinRule, ", sectionName: split", "", 1)}, rule: true, other: true},
		"TargetRef":     {reason: "A policy with the older targetRef should pin all rules.", policies: []string{strings.NewReplacer("targetRefs: [{", "targetRef: {", ", sectionName: split}],", "},").Replace(pinRule)}, rule: true, other: true},
		"Labels":        {reason: "A policy with a selector should pin all rules.", policies: []string{pinLabels}, rule: true, other: true},
		"OtherLabels":   {reason: "A policy that selects other labels should pin nothing.", policies: []string{strings.Replace(pinLabels, "team: shop", "team: x", 1)}},
		"Gateway":       {reason: "A policy on the Gateway should pin nothing, because the template of all clusters includes it.", policies: []string{strings.Replace(pinRule, "kind: HTTPRoute, name: mixed", "kind: Gateway, name: mixed", 1)}},
		"Namespace":     {reason: "A policy in another namespace should pin nothing.", policies: []string{strings.Replace(pinLabels, "name: labels", "name: labels, namespace: other", 1)}},
		"AllNamespaces": {reason: "A policy that selects other namespaces should pin: a route that is pinned without need costs only a cluster.", policies: []string{strings.NewReplacer("name: labels", "name: labels, namespace: other", "kind: HTTPRoute,", "kind: HTTPRoute, namespaces: {from: All},").Replace(pinLabels)}, rule: true, other: true},
		"RouteSettings": {reason: "Settings of requests should pin nothing.", policies: pinWith("retry: {numRetries: 3}, faultInjection: {abort: {httpStatus: 500}}, timeout: {http: {requestTimeout: 3s, streamIdleTimeout: 2s}}, mergeType: StrategicMerge")},
		"HTTPTimeout":   {reason: "A timeout of connections should pin, because it is a setting of clusters.", policies: pinWith("timeout: {http: {requestTimeout: 3s, connectionIdleTimeout: 1h}}"), rule: true},
		"TCPTimeout":    {reason: "A timeout of TCP should pin.", policies: pinWith("timeout: {tcp: {connectTimeout: 1s}}"), rule: true},
		"Unknown":       {reason: "An unknown setting should pin, because it may be a setting of clusters.", policies: pinWith("retry: {}, surprise: {}"), rule: true},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, append([]string{mixedRoute}, tc.policies...)...)
			if got := s.Settings().Pinned(mixed, "split"); got != tc.rule {
				t.Errorf("%s\nrule split: want %v, got %v", tc.reason, tc.rule, got)
			}
			if got := s.Settings().Pinned(mixed, ""); got != tc.other {
				t.Errorf("%s\nother rules: want %v, got %v", tc.reason, tc.other, got)
			}
		})
	}
}

func TestBadPolicy(t *testing.T) {
	s := NewStore()
	apply(t, s, false, mixedRoute, pinLabels)
	bad := strings.Replace(pinLabels, "matchLabels: {team: shop}", "matchExpressions: [{key: team, operator: Boom}]", 1)
	if err := applyChanges(s, Change{Object: decode(t, bad)[0]}); err == nil {
		t.Error("want an error for an invalid selector")
	}
	if s.Snapshot().Settings().Pinned(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")}, "") {
		t.Error("an invalid policy still applies in its earlier form")
	}
}

func TestSetHost(t *testing.T) {
	s := directStore()
	apply(t, s, false, routeToWeb, services(`{vipService: {ports: ["tcp:80"]}, backends: [{kind: External, name: legacy, host: Old.example.com., port: 8080}]}`))
	if diff := cmp.Diff(map[string][]string{"old.example.com": {"shop"}}, s.Hosts()); diff != "" {
		t.Errorf("hosts to resolve: -want, +got\n%s", diff)
	}
	key := ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}
	if !s.Snapshot().Target(key).Pending {
		t.Error("want a target pending whose host was not looked up")
	}
	s.SetHost("old.example.com", []string{"192.0.2.2", "192.0.2.1", "192.0.2.2"})
	want := []ir.Locality{{Name: "legacy", Weight: 1, Endpoints: []ir.Endpoint{
		{Address: "192.0.2.1", Port: 8080, Hostname: "old.example.com", Weight: 1},
		{Address: "192.0.2.2", Port: 8080, Hostname: "old.example.com", Weight: 1},
	}}}
	if diff := cmp.Diff(want, s.Snapshot().Target(key).Localities); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	// The resolver is notified when the first name is needed and again when no name is
	// needed, but not of addresses.
	for _, wanted := range []string{"a needed name", "an unused name"} {
		select {
		case <-s.HostsChanged():
		default:
			t.Errorf("no notification of %s", wanted)
		}
		select {
		case <-s.HostsChanged():
			t.Errorf("two notifications of %s", wanted)
		default:
		}
		apply(t, s, true, routeToWeb)
	}
	apply(t, s, false, routeToWeb)
	s.SetHost("old.example.com", nil)
	if got := s.Snapshot().Target(key).Problem; got == "" {
		t.Error("want a problem for a host without addresses")
	}
	if s.Snapshot().Target(key).Pending {
		t.Error("want a target not pending whose host has no addresses")
	}
	s.ForgetHost("old.example.com")
	if !s.Snapshot().Target(key).Pending {
		t.Error("want a target pending whose host was forgotten")
	}
}

// TestApplyAbout checks that a change of information for people alone changes neither
// revision nor digest, so that Envoy Gateway does not translate because of it.
func TestApplyAbout(t *testing.T) {
	s := NewStore()
	if err := applyChanges(s, Change{Object: decode(t, routeToWeb)[0]}); err != nil {
		t.Fatal(err)
	}
	previous := s.Snapshot()
	o := decode(t, routeToWeb)[0].(*gwapiv1.HTTPRoute)
	o.Spec.Hostnames = []gwapiv1.Hostname{"new.example.com"}
	if err := applyChanges(s, Change{Object: o}); err != nil {
		t.Fatal(err)
	}
	updated := s.Snapshot()
	if diff := cmp.Diff([]string{"new.example.com"}, updated.Route(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}).Info.Hostnames); diff != "" {
		t.Errorf("-want hostnames, +got:\n%s", diff)
	}
	if updated.Revision != previous.Revision || updated.Digest != previous.Digest {
		t.Errorf("revision %d -> %d, digest %x -> %x", previous.Revision, updated.Revision, previous.Digest, updated.Digest)
	}
}

func TestApplyUnknown(t *testing.T) {
	s := NewStore()
	err := applyChanges(s, Change{Object: &corev1.Pod{}}, Change{Object: decode(t, routeToWeb)[0]})
	if err == nil {
		t.Error("want an error for a Pod")
	}
	if s.Snapshot().Route(ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("web")}) == nil {
		t.Error("the route that was applied with a Pod is missing")
	}
}
