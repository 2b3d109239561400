// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// policyOf returns a policy of Envoy Gateway with the name jwt.
func policyOf(t testing.TB, kind, namespace, spec string) *unstructured.Unstructured {
	t.Helper()
	o := parse.NewPolicy(kind)
	if err := yaml.Unmarshal([]byte("metadata: {name: jwt, namespace: "+namespace+"}\nspec: "+spec), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetGroupVersionKind(parse.NewPolicy(kind).GroupVersionKind())
	return o
}

// guardOf returns the guard of a policy of Envoy Gateway with the name jwt.
func guardOf(t testing.TB, kind, namespace, spec string) *Guard {
	t.Helper()
	g, err := PolicyGuard(policyOf(t, kind, namespace, spec))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// routePolicyOf returns the guard of a TailscaleRoutePolicy with the name staff.
func routePolicyOf(t testing.TB, namespace, refs string) *Guard {
	t.Helper()
	o := &gatewayv1alpha1.TailscaleRoutePolicy{}
	if err := yaml.Unmarshal([]byte("metadata: {name: staff, namespace: "+namespace+"}\nspec: {targetRefs: "+refs+"}"), o); err != nil {
		t.Fatal(err)
	}
	return RoutePolicyGuard(o)
}

// TestPolicyGuard checks which policies have a guard, whatever their specs contain: a policy without
// one keeps all backends from being published.
func TestPolicyGuard(t *testing.T) {
	type result struct {
		name               string
		targets, selectors int
		elsewhere          bool
		err                string
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   result
	}{
		"Empty":          {reason: "A policy without targets has a guard that applies to nothing.", spec: "{}", want: result{name: "SecurityPolicy shop/jwt"}},
		"Null":           {reason: "So does one without a spec.", spec: "null", want: result{name: "SecurityPolicy shop/jwt"}},
		"UnknownFields":  {reason: "Fields that are newer than this do not hide the targets.", spec: "{quota: [1], targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: app, port: 80}]}", want: result{name: "SecurityPolicy shop/jwt", targets: 1}},
		"Both":           {reason: "The deprecated field and the new ones add up.", spec: "{targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: app}, targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}], targetSelectors: [{kind: GRPCRoute}]}", want: result{name: "SecurityPolicy shop/jwt", targets: 2, selectors: 1}},
		"OtherGroup":     {reason: "A kind of another group is unknown, whatever its name.", spec: "{targetRefs: [{group: example.com, kind: HTTPRoute, name: app}]}", want: result{name: "SecurityPolicy shop/jwt", elsewhere: true}},
		"NoGroup":        {reason: "Services, which have no group, are unknown as targets.", spec: "{targetRefs: [{kind: Service, name: app}]}", want: result{name: "SecurityPolicy shop/jwt", elsewhere: true}},
		"OtherKind":      {reason: "A kind that is newer than this is unknown.", spec: "{targetRefs: [{group: gateway.networking.k8s.io, kind: Mesh, name: app}]}", want: result{name: "SecurityPolicy shop/jwt", elsewhere: true}},
		"OneUnknown":     {reason: "An unknown target does not hide known ones, in either order.", spec: "{targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}, {group: '', kind: A, name: a}, {group: gateway.networking.k8s.io, kind: TLSRoute, name: a}, {group: gateway.networking.k8s.io, kind: UDPRoute, name: a}]}", want: result{name: "SecurityPolicy shop/jwt", targets: 3, elsewhere: true}},
		"SelectorKind":   {reason: "An unknown kind of a selector stays unknown after a known one.", spec: "{targetSelectors: [{kind: Mesh}, {kind: HTTPRoute}]}", want: result{name: "SecurityPolicy shop/jwt", selectors: 2, elsewhere: true}},
		"SelectorGroup":  {reason: "A selector of another group selects unknown objects, whatever the kind's name.", spec: "{targetSelectors: [{group: example.com, kind: HTTPRoute}]}", want: result{name: "SecurityPolicy shop/jwt", selectors: 1, elsewhere: true}},
		"SelectorKnown":  {reason: "The group of a selector may be written.", spec: "{targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute}]}", want: result{name: "SecurityPolicy shop/jwt", selectors: 1}},
		"NoList":         {reason: "Targets of another type cannot be read.", spec: "{targetRefs: all}", want: result{err: "cannot decode SecurityPolicy shop/jwt"}},
		"NoObject":       {reason: "Nor can targets that are no objects.", spec: "{targetRef: 7}", want: result{err: "cannot decode SecurityPolicy shop/jwt"}},
		"NoSelectorList": {reason: "Nor can selectors that are no objects.", spec: "{targetSelectors: [all]}", want: result{err: "cannot decode SecurityPolicy shop/jwt"}},
		"NoSpec":         {reason: "Nor can a spec that is none.", spec: "all", want: result{err: "cannot decode SecurityPolicy shop/jwt"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := PolicyGuard(policyOf(t, "SecurityPolicy", "shop", tc.spec))
			got := result{}
			if g != nil {
				got = result{name: g.String(), targets: len(g.targets), selectors: len(g.selectors), elsewhere: g.elsewhere}
			}
			if err != nil {
				// The decoder writes the rest.
				got.err = err.Error()[:min(len(err.Error()), len(tc.want.err))]
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("%s\nPolicyGuard(...): %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
