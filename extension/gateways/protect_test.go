// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/protect"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// policyIn returns the guard of a policy of Envoy Gateway in a namespace with targets in its spec.
func policyIn(t *testing.T, kind, namespace, spec string) *protect.Guard {
	t.Helper()
	o := parse.NewPolicy(kind)
	if err := yaml.Unmarshal([]byte("metadata: {name: jwt, namespace: "+namespace+"}\nspec: "+spec), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetGroupVersionKind(parse.NewPolicy(kind).GroupVersionKind())
	g, err := protect.PolicyGuard(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// securityPolicyIn returns the guard of a SecurityPolicy.
func securityPolicyIn(t *testing.T, namespace, spec string) *protect.Guard {
	t.Helper()
	return policyIn(t, "SecurityPolicy", namespace, spec)
}

// routePolicyIn returns the guard of a TailscaleRoutePolicy in a namespace with a target.
func routePolicyIn(t *testing.T, namespace, target string) *protect.Guard {
	t.Helper()
	o := &gatewayv1alpha1.TailscaleRoutePolicy{}
	if err := yaml.Unmarshal([]byte("metadata: {name: staff, namespace: "+namespace+"}\nspec: {targetRefs: ["+target+"]}"), o); err != nil {
		t.Fatal(err)
	}
	return protect.RoutePolicyGuard(o)
}

// policyGrant returns a ReferenceGrant that permits SecurityPolicies of a namespace to select
// HTTPRoutes of another one.
func policyGrant(from, to string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: policies, namespace: %s}
spec:
  from: [{group: gateway.envoyproxy.io, kind: SecurityPolicy, namespace: %s}]
  to: [{group: gateway.networking.k8s.io, kind: HTTPRoute}]
`, to, from)
}

// TestProtected checks which backends are reported as protected by policies of Envoy Gateway
// and of this project, for all kinds of targets.
func TestProtected(t *testing.T) {
	const (
		group  = "group: gateway.networking.k8s.io"
		policy = "SecurityPolicy shop/jwt"
		ours   = "TailscaleRoutePolicy shop/staff"
	)
	labelled := strings.Replace(gateway, "metadata: {name: web}", "metadata: {name: web, labels: {tier: public}}", 1)
	// Service app is a backend of both rules of a route, api of one rule, and db of a route of
	// another kind and listener.
	app := strings.Replace(routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", `rules: [{name: open, backendRefs: [{name: app, port: 80}]}, {name: closed, backendRefs: [{name: api, port: 80}, {name: app, port: 81}]}]`),
		"name: app", "labels: {tier: app}, name: app", 1)
	db := routeTo("TCPRoute", "shop", "db", "{name: web, sectionName: db}", "True", "rules: [{backendRefs: [{name: db, port: 5432}]}]")
	set := listenerSet
	extra := routeTo("HTTPRoute", "team", "extra", "{group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}", "True", "rules: [{backendRefs: [{name: extra, port: 80}]}]")
	all := map[string]string{"shop/app:80": policy, "shop/app:81": policy, "shop/api:80": policy}
	cases := map[string]struct {
		reason  string
		guards  []*protect.Guard
		objects []string
		want    map[string]string
	}{
		"None":             {reason: "Without policies no backend is protected."},
		"Route":            {reason: "A policy of a route protects all backends of the route.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app}]}")}, want: all},
		"OldForm":          {reason: "A policy with the deprecated targetRef protects them as well.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRef: {"+group+", kind: HTTPRoute, name: app}}")}, want: all},
		"Rule":             {reason: "A policy of a rule protects the rule's backends, with all their ports.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app, sectionName: closed}]}")}, want: all},
		"OpenRule":         {reason: "Backends of other rules are unprotected.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app, sectionName: open}]}")}, want: map[string]string{"shop/app:80": policy, "shop/app:81": policy}},
		"UnknownRule":      {reason: "A policy with a misspelt rule protects the whole route.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app, sectionName: clsoed}]}")}, want: all},
		"OtherKind":        {reason: "A policy of a route of another kind does not apply.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: GRPCRoute, name: app}]}")}},
		"OtherNamespace":   {reason: "The targetRefs of a policy are in the policy's namespace.", guards: []*protect.Guard{securityPolicyIn(t, "team", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app}]}")}},
		"TCPRoute":         {reason: "A policy may protect a TCPRoute.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: TCPRoute, name: db}]}")}, want: map[string]string{"shop/db:5432": policy}},
		"Gateway":          {reason: "A policy of the Gateway protects all backends, including those of ListenerSets.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: Gateway, name: web}]}")}, want: map[string]string{"shop/app:80": policy, "shop/app:81": policy, "shop/api:80": policy, "shop/db:5432": policy, "team/extra:80": policy}},
		"OtherGateway":     {reason: "A policy of another Gateway does not apply.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: Gateway, name: other}]}")}},
		"Listener":         {reason: "A policy of a listener protects the listener's backends.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: Gateway, name: web, sectionName: db}]}")}, want: map[string]string{"shop/db:5432": policy}},
		"ListenerSet":      {reason: "A policy of a ListenerSet protects the ListenerSet's backends.", guards: []*protect.Guard{securityPolicyIn(t, "team", "{targetRefs: [{"+group+", kind: ListenerSet, name: extra}]}")}, want: map[string]string{"team/extra:80": "SecurityPolicy team/jwt"}},
		"Labels":           {reason: "A policy may select routes by labels.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetSelectors: [{kind: HTTPRoute, matchLabels: {tier: app}}]}")}, want: all},
		"OtherLabels":      {reason: "A policy does not apply to routes with other labels.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetSelectors: [{kind: HTTPRoute, matchExpressions: [{key: tier, operator: NotIn, values: [app]}]}]}")}},
		"LabelledGateway":  {reason: "A policy may select Gateways by labels.", guards: []*protect.Guard{securityPolicyIn(t, "shop", "{targetSelectors: [{kind: Gateway, matchLabels: {tier: public}}]}")}, want: map[string]string{"shop/app:80": policy, "shop/app:81": policy, "shop/api:80": policy, "shop/db:5432": policy, "team/extra:80": policy}},
		"Elsewhere":        {reason: "Policies of other namespaces need a ReferenceGrant, because they could otherwise withdraw any backend.", guards: []*protect.Guard{securityPolicyIn(t, "edge", "{targetSelectors: [{kind: HTTPRoute, namespaces: {from: All}}]}")}},
		"ElsewhereGranted": {reason: "Policies with a ReferenceGrant apply.", guards: []*protect.Guard{securityPolicyIn(t, "edge", "{targetSelectors: [{kind: HTTPRoute, namespaces: {from: All}}]}")}, objects: []string{policyGrant("edge", "shop")}, want: map[string]string{"shop/app:80": "SecurityPolicy edge/jwt", "shop/app:81": "SecurityPolicy edge/jwt", "shop/api:80": "SecurityPolicy edge/jwt"}},
		"ElsewhereSame":    {reason: "A policy that selects in the same namespace applies only there.", guards: []*protect.Guard{securityPolicyIn(t, "edge", "{targetSelectors: [{kind: HTTPRoute, namespaces: {from: Same}}]}")}, objects: []string{policyGrant("edge", "shop")}},
		"Ours":             {reason: "A TailscaleRoutePolicy protects, too.", guards: []*protect.Guard{routePolicyIn(t, "shop", "{"+group+", kind: HTTPRoute, name: app, sectionName: closed}")}, want: map[string]string{"shop/app:80": ours, "shop/app:81": ours, "shop/api:80": ours}},
		"Unknown":          {reason: "A target of an unknown kind counts for the policy's namespace.", guards: []*protect.Guard{securityPolicyIn(t, "team", "{targetRefs: [{group: gateway.networking.x-k8s.io, kind: XListenerSet, name: extra}]}")}, want: map[string]string{"team/extra:80": "SecurityPolicy team/jwt"}},
		"UnknownSelector":  {reason: "So does a selector of an unknown kind.", guards: []*protect.Guard{securityPolicyIn(t, "team", "{targetSelectors: [{kind: XListenerSet}]}")}, want: map[string]string{"team/extra:80": "SecurityPolicy team/jwt"}},
		"Class":            {reason: "A patch of a class is for all its Gateways, from any namespace.", guards: []*protect.Guard{policyIn(t, "EnvoyPatchPolicy", "edge", "{targetRef: {"+group+", kind: GatewayClass, name: eg}}")}, want: map[string]string{"shop/app:80": "EnvoyPatchPolicy edge/jwt", "shop/app:81": "EnvoyPatchPolicy edge/jwt", "shop/api:80": "EnvoyPatchPolicy edge/jwt", "shop/db:5432": "EnvoyPatchPolicy edge/jwt", "team/extra:80": "EnvoyPatchPolicy edge/jwt"}},
		"OtherClass":       {reason: "A patch of another class does not apply.", guards: []*protect.Guard{policyIn(t, "EnvoyPatchPolicy", "shop", "{targetRef: {"+group+", kind: GatewayClass, name: other}}")}},
		"First":            {reason: "Of several policies, the first is reported.", guards: []*protect.Guard{routePolicyIn(t, "shop", "{"+group+", kind: HTTPRoute, name: app}"), securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app}]}")}, want: all},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inputs := inputOf(t, objects(t, append([]string{tailscaleGateway, labelled, set, app, db, extra}, tc.objects...)...)...)
			inputs.guards, inputs.policiesKnown = tc.guards, true
			report := plan(inputs).report()
			if !report.PoliciesKnown {
				t.Errorf("%s\npoliciesKnown: want true, got false", tc.reason)
			}
			got, backends := map[string]string{}, 0
			for _, r := range report.Routes {
				for _, b := range r.Backends {
					backends++
					if b.ProtectedBy != "" {
						got[fmt.Sprintf("%s/%s:%d", b.Namespace, b.Name, b.Port)] = b.ProtectedBy
					}
				}
			}
			if backends != 5 {
				t.Fatalf("want 5 backends, got %+v", report.Routes)
			}
			if tc.want == nil {
				tc.want = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A syncs informer reports whether it has synced.
type syncs struct {
	cache.Informer
	all bool
}

func (s syncs) HasSynced() bool { return s.all }

// TestHasPolicies checks that backends count as unprotected only if all policies could
// be read, and that no backend is withdrawn while the cache is filling.
func TestHasPolicies(t *testing.T) {
	forbidden := kerrors.NewForbidden(schema.GroupResource{Group: parse.GroupEnvoyGateway, Resource: "securitypolicies"}, "", errors.New("no"))
	cases := map[string]struct {
		reason  string
		watched bool
		synced  bool
		list    error
		want    bool
		err     bool
	}{
		"NoKind":    {reason: "Without the kind the policies are unknown."},
		"Synced":    {reason: "A synced cache has the policies.", watched: true, synced: true, list: forbidden, want: true},
		"Forbidden": {reason: "Policies that the extension may not read are unknown.", watched: true, list: forbidden},
		"Late":      {reason: "A cache that is still filling is an error.", watched: true, err: true},
		"Failing":   {reason: "An unavailable API server is an error.", watched: true, list: kerrors.NewServiceUnavailable("later"), err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tc.list },
			})
			c := NewController(nil, kube, Options{})
			if tc.watched {
				c.setWatched("SecurityPolicy")
				c.policies["SecurityPolicy"] = syncs{all: tc.synced}
			}
			got, err := c.hasPolicies(t.Context(), "SecurityPolicy")
			if got != tc.want || (err != nil) != tc.err {
				t.Errorf("%s\nwant %t, error %t; got %t, %v", tc.reason, tc.want, tc.err, got, err)
			}
		})
	}
}
