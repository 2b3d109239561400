// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	tuneRoute = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: route, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: mixed}]
  healthCheck: {active: {type: TCP, tcp: {}, overrides: {port: 9090}}}
`
	tuneGateway = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: gateway, namespace: infra, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw2}]
  healthCheck: {active: {type: TCP, tcp: {}, overrides: {port: 7070}}}
  loadBalancer: {type: RoundRobin, zoneAware: {weightedZones: [{zone: b, weight: 1}, {zone: a, weight: 3}]}}
`
	tuneSet = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: set, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: ListenerSet, name: more}]
  healthCheck: {active: {type: TCP, tcp: {}, overrides: {port: 6060}}}
`
)

func TestTunings(t *testing.T) {
	mixed := ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")}
	zones := []ir.ZoneWeight{{Zone: "a", Weight: 3}, {Zone: "b", Weight: 1}}
	replaced := func(doc string, oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(doc) }
	ofRule := replaced(tuneRoute, "name: mixed", "name: mixed, sectionName: split", "name: route", "name: rule", "9090", "9191")
	listener := replaced(tuneSet, "name: more", "name: more, sectionName: a", "name: set", "name: listener", "6060", "6161")
	pings := ir.HTTP2{StreamWindow: 128 << 10, Streams: 7, OnInvalidMessage: ir.EndStream, Interval: 30 * time.Second, Timeout: 5 * time.Second, JitterSet: true}
	merged := ir.HTTP2{Streams: 7, OnInvalidMessage: ir.EndConnection}
	cases := map[string]struct {
		reason      string
		objects     []string
		rule, other ir.Tuning
	}{
		"None":  {reason: "Without a policy there should be no settings."},
		"Route": {reason: "A policy of the route should apply to all of its rules.", objects: []string{tuneRoute}, rule: ir.Tuning{HealthPort: 9090}, other: ir.Tuning{HealthPort: 9090}},
		"Rule": {
			reason: "A policy of a rule should take precedence over an older one of the route.", objects: []string{tuneRoute, replaced(ofRule, "2026-01-02", "2026-01-03")},
			rule: ir.Tuning{HealthPort: 9191}, other: ir.Tuning{HealthPort: 9090},
		},
		"Older": {
			reason: "The older of two policies of a route should apply.", objects: []string{tuneRoute, replaced(tuneRoute, "name: route", "name: zzz", "2026-01-02", "2026-01-01", "9090", "9292")},
			rule: ir.Tuning{HealthPort: 9292}, other: ir.Tuning{HealthPort: 9292},
		},
		"Gateway": {
			reason: "A policy of the Gateway should apply to routes of its ListenerSets.", objects: []string{listenerSet, tuneGateway},
			rule: ir.Tuning{HealthPort: 7070, Zones: zones}, other: ir.Tuning{HealthPort: 7070, Zones: zones},
		},
		"OtherGateway": {reason: "A policy of another Gateway should not apply.", objects: []string{listenerSet, replaced(tuneGateway, "name: gw2", "name: gw")}},
		"ListenerSet": {
			reason: "A policy of the ListenerSet should take precedence over one of the Gateway.", objects: []string{listenerSet, tuneGateway, tuneSet},
			rule: ir.Tuning{HealthPort: 6060}, other: ir.Tuning{HealthPort: 6060},
		},
		"Listener": {
			reason: "A policy of a listener should take precedence over both for a route that attaches to all listeners.", objects: []string{listenerSet, tuneGateway, tuneSet, listener},
			rule: ir.Tuning{HealthPort: 6161}, other: ir.Tuning{HealthPort: 6161},
		},
		"OtherListener": {
			reason: "A policy of a listener that the route does not attach to should not apply.", objects: []string{replaced(mixedRoute, "name: more", "name: more, sectionName: b"), listenerSet, listener},
		},
		"Alone": {
			reason: "A policy of the route should apply alone.", objects: []string{listenerSet, tuneGateway, tuneRoute},
			rule: ir.Tuning{HealthPort: 9090}, other: ir.Tuning{HealthPort: 9090},
		},
		"Merged": {
			reason: "A policy of the route with a mergeType should be merged with one of the Gateway.", objects: []string{listenerSet, tuneGateway, replaced(tuneRoute, "spec:", "spec:\n  mergeType: StrategicMerge")},
			rule: ir.Tuning{HealthPort: 9090, Zones: zones}, other: ir.Tuning{HealthPort: 9090, Zones: zones},
		},
		"HTTP2": {
			reason:  "Settings of HTTP/2 should apply, except for those that Envoy would refuse.",
			objects: []string{replaced(tuneRoute, "spec:", "spec:\n  http2: {initialStreamWindowSize: 128Ki, initialConnectionWindowSize: 1, maxConcurrentStreams: 7, onInvalidMessage: TerminateStream, connectionKeepalive: {interval: 30s, timeout: 5s, intervalJitter: 0}}")},
			rule:    ir.Tuning{HealthPort: 9090, HTTP2: pings}, other: ir.Tuning{HealthPort: 9090, HTTP2: pings},
		},
		"HTTP2Merged": {
			reason:  "Each unset part should be merged from the policy of the Gateway.",
			objects: []string{listenerSet, replaced(tuneGateway, "spec:", "spec:\n  http2: {maxConcurrentStreams: 9, onInvalidMessage: TerminateConnection}"), replaced(tuneRoute, "spec:", "spec:\n  mergeType: StrategicMerge\n  http2: {maxConcurrentStreams: 7}")},
			rule:    ir.Tuning{HealthPort: 9090, Zones: zones, HTTP2: merged}, other: ir.Tuning{HealthPort: 9090, Zones: zones, HTTP2: merged},
		},
		"NoZone": {
			reason: "A zone with a name that no node can have should be left out.", objects: []string{replaced(tuneGateway, "kind: Gateway, name: gw2", "kind: HTTPRoute, name: mixed", ", namespace: infra", "", "zone: b", `zone: "b+local"`)},
			rule: ir.Tuning{HealthPort: 7070, Zones: zones[:1]}, other: ir.Tuning{HealthPort: 7070, Zones: zones[:1]},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, append([]string{mixedRoute}, tc.objects...)...)
			if diff := cmp.Diff(tc.rule, s.Settings().Tuning(mixed, "split")); diff != "" {
				t.Errorf("%s\nrule split: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.other, s.Settings().Tuning(mixed, "")); diff != "" {
				t.Errorf("%s\nother rules: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWide checks which policies apply to a whole Gateway, next to policies of listeners and
// ListenerSets, and to a Gateway that is not known.
func TestWide(t *testing.T) {
	mixed := ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("mixed")}
	listener := strings.NewReplacer("name: gw2", "name: gw2, sectionName: a", "name: gateway", "name: listener").Replace(tuneGateway)
	s := snapshotOf(t, mixedRoute, listenerSet, tuneGateway, tuneRoute, tuneSet, listener)
	for _, p := range s.Edit().Settings.Get(mixed).GatewayPolicies {
		if !s.Settings().HasGatewayPolicy(mixed, p) || p.Name != "gateway" {
			t.Errorf("%s should not count as a policy of the whole Gateway", p)
		}
	}
	if len(s.Edit().Settings.Get(mixed).GatewayPolicies) != 1 {
		t.Errorf("want one policy of the whole Gateway, got %v", s.Edit().Settings.Get(mixed).GatewayPolicies)
	}
	if s = snapshotOf(t, mixedRoute, tuneGateway); len(s.Edit().Settings.Get(mixed).GatewayPolicies) > 0 {
		t.Errorf("want no policy of the Gateway without its ListenerSet, got %v", s.Edit().Settings.Get(mixed).GatewayPolicies)
	}
}
