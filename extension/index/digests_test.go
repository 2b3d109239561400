// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// tcpOfOther attaches to another Gateway than the other routes.
const tcpOfOther = `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: tcp, namespace: shop}
spec:
  parentRefs: [{name: other}]
  rules: [{backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80}]}]
`

// TestGatewayDigestsFollowState checks that the digests depend only on the final objects,
// and not on the order of events or on objects that were deleted meanwhile.
func TestGatewayDigestsFollowState(t *testing.T) {
	docs := append(everything(), tcpOfOther, gatewayOf("gw"))
	first := NewStore()
	apply(t, first, false, docs...)
	want := maps.Collect(first.Snapshot().GatewayDigests())
	if len(want) < 3 {
		t.Fatalf("want digests of three Gateways at least, got %v", want)
	}
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			s := NewStore()
			shuffled := append([]string(nil), docs...)
			r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			for i, doc := range shuffled {
				apply(t, s, false, doc)
				if i%3 == 0 {
					apply(t, s, true, doc)
					apply(t, s, false, doc)
				}
			}
			if diff := cmp.Diff(want, maps.Collect(s.Snapshot().GatewayDigests())); diff != "" {
				t.Errorf("the digests depend on the order of events: -want, +got:\n%s", diff)
			}
			for _, doc := range docs {
				apply(t, s, true, doc)
			}
			if remaining := maps.Collect(s.Snapshot().GatewayDigests()); len(remaining) > 0 {
				t.Errorf("want no digests after all objects are deleted, got %v", remaining)
			}
			if len(s.digests.parts)+len(s.digests.targets) > 0 {
				t.Errorf("digestParts of deleted objects are kept: %v", s.digests)
			}
		})
	}
}

const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec:
  gatewayClassName: envoy
  listeners: [{name: http, protocol: HTTP, port: 80}, {name: https, protocol: HTTPS, port: 443, hostname: "*.example.com"}]
`

// TestAboutGateway checks that a Gateway is known, and that it alone changes neither
// revision nor digest.
func TestAboutGateway(t *testing.T) {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw3"}
	gateway := strings.Replace(gateway, "name: gw,", "name: gw3,", 1)
	s := NewStore()
	apply(t, s, false, everything()...)
	previous := s.Snapshot()
	apply(t, s, false, gateway)
	want := &ir.Gateway{Class: "envoy", Listeners: []string{"http: HTTP 80", "https: HTTPS 443 *.example.com"}, Sections: []string{"http", "https"}, HTTPPorts: map[string]int32{"http": 80}}
	if diff := cmp.Diff(want, s.Snapshot().Gateway(gw)); diff != "" {
		t.Errorf("a new Gateway: -want, +got:\n%s", diff)
	}
	if current := s.Snapshot(); current.Revision != previous.Revision || current.Digest != previous.Digest {
		t.Error("a Gateway alone changed the revision or the digest")
	}
	apply(t, s, true, gateway)
	if got := s.Snapshot().Gateway(gw); got != nil {
		t.Errorf("a deleted Gateway is still known: %v", got)
	}
}

// TestAdmittingGateways checks that routes and policies of another namespace affect only Gateways
// that exist and admit them: the revision of a Gateway is an object of its namespace.
func TestAdmittingGateways(t *testing.T) {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	allowed := func(spec string) string {
		return strings.Replace(gateway, "port: 80}", "port: 80, allowedRoutes: "+spec+"}", 1)
	}
	own := strings.Replace(routeToWeb, "metadata: {name: web,", "metadata: {name: web, namespace: infra,", 1)
	plain := strings.NewReplacer("group: gateway.tailscale.com, kind: TailscaleServices, ", "").Replace(routeToWeb)
	policy := policyOf("p", "{name: a, actions: [{type: Deny}]}")
	cases := map[string]struct {
		reason  string
		docs    []string
		deleted string
		want    bool
	}{
		"NoGateway":       {reason: "Where there is no Gateway, a route of another namespace should affect none.", docs: []string{routeToWeb}},
		"Default":         {reason: "A Gateway admits only routes of its namespace by default.", docs: []string{routeToWeb, gateway}},
		"Same":            {reason: "It may say so.", docs: []string{routeToWeb, allowed("{namespaces: {from: Same}}")}},
		"All":             {reason: "A Gateway may admit all routes.", docs: []string{routeToWeb, allowed("{namespaces: {from: All}}")}, want: true},
		"Selector":        {reason: "Labels of namespaces are not known, so the namespaces of a selector should count.", docs: []string{routeToWeb, allowed("{namespaces: {from: Selector, selector: {matchLabels: {a: b}}}}")}, want: true},
		"Kinds":           {reason: "Kinds of routes admit no namespaces.", docs: []string{routeToWeb, allowed("{kinds: [{kind: HTTPRoute}]}")}},
		"ListenerSets":    {reason: "ListenerSets of a Gateway have their own rules.", docs: []string{routeToWeb, strings.Replace(gateway, "spec:", "spec:\n  allowedListeners: {namespaces: {from: Same}}", 1)}, want: true},
		"NoListenerSets":  {reason: "A Gateway may refuse them.", docs: []string{routeToWeb, strings.Replace(gateway, "spec:", "spec:\n  allowedListeners: {namespaces: {from: None}}", 1)}},
		"Own":             {reason: "Routes of the Gateway's namespace should always count.", docs: []string{own}, want: true},
		"Later":           {reason: "A Gateway that admits routes later should count.", docs: []string{routeToWeb, gateway, allowed("{namespaces: {from: All}}")}, want: true},
		"NoLonger":        {reason: "A Gateway that admits routes no longer should not.", docs: []string{routeToWeb, allowed("{namespaces: {from: All}}"), gateway}},
		"Gone":            {reason: "Nor should a Gateway that is deleted.", docs: []string{routeToWeb, allowed("{namespaces: {from: All}}")}, deleted: allowed("{namespaces: {from: All}}")},
		"Policy":          {reason: "A policy of another namespace should affect no such Gateway.", docs: []string{plain, policy, gateway}},
		"AdmittedPolicy":  {reason: "A policy of an admitted route should.", docs: []string{plain, policy, gateway, allowed("{namespaces: {from: All}}")}, want: true},
		"PolicyNoLonger":  {reason: "A policy of a route that is admitted no longer should not.", docs: []string{plain, policy, allowed("{namespaces: {from: All}}"), gateway}},
		"NobodysIdentity": {reason: "A TailscaleGateway of another namespace should affect no Gateway that does not exist.", docs: []string{foreign(identityOf("a", "gw", "http"))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			for _, d := range tc.docs {
				apply(t, s, false, d)
			}
			if tc.deleted != "" {
				apply(t, s, true, tc.deleted)
			}
			if got := s.Snapshot().GatewayDigest(gw) != ""; got != tc.want {
				t.Errorf("%s\nthe Gateway has a digest: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestGatewayDigests checks which Gateways' digests a change affects.
func TestGatewayDigests(t *testing.T) {
	gw, gw2, other := types.NamespacedName{Namespace: "infra", Name: "gw"}, types.NamespacedName{Namespace: "infra", Name: "gw2"}, types.NamespacedName{Namespace: "shop", Name: "other"}
	cases := map[string]struct {
		reason  string
		doc     string
		deleted bool
		want    map[types.NamespacedName]bool
	}{
		"Shape": {
			reason: "A setting of a target should affect the Gateways whose routes name it.",
			doc:    strings.Replace(servicesWeb, "spec:\n", "spec:\n  loadBalancing: {healthCheck: {enabled: true, path: /other}}\n", 1),
			want:   map[types.NamespacedName]bool{gw: true, other: true},
		},
		"Endpoints": {
			reason: "Endpoints should affect no digest, because Envoy gets them by EDS.",
			doc:    strings.Replace(sliceApp, "10.0.0.1", "10.0.0.99", 1),
		},
		"Route":  {reason: "A route should affect its Gateway.", doc: tcpOfOther, deleted: true, want: map[types.NamespacedName]bool{other: true}},
		"Policy": {reason: "A policy should affect the Gateways of the routes that it pins.", doc: pinRule, deleted: true, want: map[types.NamespacedName]bool{gw2: true}},
		"Tuning": {reason: "A policy with settings of endpoint lists should affect the Gateway that it targets.", doc: tuneGateway, deleted: true, want: map[types.NamespacedName]bool{gw2: true}},
		"Grant":  {reason: "A grant should affect the Gateways of the routes that need it.", doc: grant, deleted: true, want: map[types.NamespacedName]bool{gw2: true}},
		"ListenerSet": {
			reason: "A route that moves to another Gateway should affect both Gateways.",
			doc:    strings.Replace(listenerSet, "name: gw2, namespace: infra", "name: other, namespace: shop", 1),
			want:   map[types.NamespacedName]bool{gw2: true, other: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			apply(t, s, false, append(everything(), tcpOfOther, gatewayOf("gw"))...)
			previous := s.Snapshot()
			changed, end := s.Revised()
			defer end()
			apply(t, s, tc.deleted, tc.doc)
			updated := s.Snapshot()
			var got map[types.NamespacedName]bool
			for _, g := range []types.NamespacedName{gw, gw2, other} {
				if previous.GatewayDigest(g) == updated.GatewayDigest(g) {
					continue
				}
				if got == nil {
					got = map[types.NamespacedName]bool{}
				}
				got[g] = true
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			select {
			case <-changed:
				if len(tc.want) == 0 {
					t.Errorf("%s\nwant no notification", tc.reason)
				}
			default:
				if len(tc.want) > 0 {
					t.Errorf("%s\nwant a notification", tc.reason)
				}
			}
		})
	}
}

// TestPlaceholderIsNoRoute checks that placeholders, which exist only for the status of other
// routes, are not known as routes.
func TestPlaceholderIsNoRoute(t *testing.T) {
	s := NewStore()
	placeholder := decode(t, routeToWeb)[0]
	placeholder.SetLabels(map[string]string{ir.PlaceholderLabel: "gw"})
	if err := s.Apply(Change{Object: placeholder}); err != nil {
		t.Fatal(err)
	}
	if got := s.Snapshot().Counts()["routes"]; got != 0 {
		t.Errorf("a placeholder should not be known as a route, got %d", got)
	}
}
