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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// securityPolicyIn a namespace, with the targets of its spec.
func securityPolicyIn(t *testing.T, namespace, spec string) *guard {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {name: jwt, namespace: "+namespace+"}\nspec: "+spec), &o.Object); err != nil {
		t.Fatal(err)
	}
	g, err := securityPolicyGuard(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// routePolicyIn a namespace, with its target.
func routePolicyIn(t *testing.T, namespace, target string) *guard {
	t.Helper()
	o := &gatewayv1alpha1.TailscaleRoutePolicy{}
	if err := yaml.Unmarshal([]byte("metadata: {name: staff, namespace: "+namespace+"}\nspec: {targetRefs: ["+target+"]}"), o); err != nil {
		t.Fatal(err)
	}
	return routePolicyGuard(o)
}

// policyGrant lets SecurityPolicies of a namespace pick HTTPRoutes of another one.
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

// TestProtected shows which backends are reported to be protected, by whatever a policy of
// Envoy Gateway or of ours may be attached to.
func TestProtected(t *testing.T) {
	const (
		group = "group: gateway.networking.k8s.io"
		by    = "SecurityPolicy shop/jwt"
		ours  = "TailscaleRoutePolicy shop/staff"
	)
	labelled := strings.Replace(gateway, "metadata: {name: web}", "metadata: {name: web, labels: {tier: public}}", 1)
	// Service app is behind both rules of a route, api behind one, and db behind a route of
	// another kind and listener.
	app := strings.Replace(routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", `rules: [{name: open, backendRefs: [{name: app, port: 80}]}, {name: closed, backendRefs: [{name: api, port: 80}, {name: app, port: 81}]}]`),
		"name: app", "labels: {tier: app}, name: app", 1)
	db := routeTo("TCPRoute", "shop", "db", "{name: web, sectionName: db}", "True", "rules: [{backendRefs: [{name: db, port: 5432}]}]")
	set := listenerSet
	extra := routeTo("HTTPRoute", "team", "extra", "{group: gateway.networking.k8s.io, kind: ListenerSet, name: extra}", "True", "rules: [{backendRefs: [{name: extra, port: 80}]}]")
	all := map[string]string{"shop/app:80": by, "shop/app:81": by, "shop/api:80": by}
	cases := map[string]struct {
		reason  string
		guards  []*guard
		objects []string
		want    map[string]string
	}{
		"None":             {reason: "Without policies nothing is protected."},
		"Route":            {reason: "A policy of a route protects all behind it.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app}]}")}, want: all},
		"OldForm":          {reason: "So does one that names it in the old way.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRef: {"+group+", kind: HTTPRoute, name: app}}")}, want: all},
		"Rule":             {reason: "A policy of a rule protects what is behind that, by all its ports.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app, sectionName: closed}]}")}, want: all},
		"OpenRule":         {reason: "What is behind another rule alone is open.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app, sectionName: open}]}")}, want: map[string]string{"shop/app:80": by, "shop/app:81": by}},
		"UnknownRule":      {reason: "Who misspelt a rule meant to protect something.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app, sectionName: clsoed}]}")}, want: all},
		"OtherKind":        {reason: "A route of another kind is another route.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: GRPCRoute, name: app}]}")}},
		"OtherNamespace":   {reason: "A policy names what is in its own namespace.", guards: []*guard{securityPolicyIn(t, "team", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app}]}")}},
		"TCPRoute":         {reason: "Routes of TCP may be protected, too.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: TCPRoute, name: db}]}")}, want: map[string]string{"shop/db:5432": by}},
		"Gateway":          {reason: "A policy of the Gateway protects all behind it, by ListenerSets as well.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: Gateway, name: web}]}")}, want: map[string]string{"shop/app:80": by, "shop/app:81": by, "shop/api:80": by, "shop/db:5432": by, "team/extra:80": by}},
		"OtherGateway":     {reason: "One of another Gateway protects nothing of this.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: Gateway, name: other}]}")}},
		"Listener":         {reason: "A policy of a listener protects what is behind that.", guards: []*guard{securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: Gateway, name: web, sectionName: db}]}")}, want: map[string]string{"shop/db:5432": by}},
		"ListenerSet":      {reason: "A policy of a ListenerSet protects what is behind that.", guards: []*guard{securityPolicyIn(t, "team", "{targetRefs: [{"+group+", kind: ListenerSet, name: extra}]}")}, want: map[string]string{"team/extra:80": "SecurityPolicy team/jwt"}},
		"Labels":           {reason: "A policy may pick routes by labels.", guards: []*guard{securityPolicyIn(t, "shop", "{targetSelectors: [{kind: HTTPRoute, matchLabels: {tier: app}}]}")}, want: all},
		"OtherLabels":      {reason: "It picks no others.", guards: []*guard{securityPolicyIn(t, "shop", "{targetSelectors: [{kind: HTTPRoute, matchExpressions: [{key: tier, operator: NotIn, values: [app]}]}]}")}},
		"LabelledGateway":  {reason: "A policy may pick Gateways by labels.", guards: []*guard{securityPolicyIn(t, "shop", "{targetSelectors: [{kind: Gateway, matchLabels: {tier: public}}]}")}, want: map[string]string{"shop/app:80": by, "shop/app:81": by, "shop/api:80": by, "shop/db:5432": by, "team/extra:80": by}},
		"Elsewhere":        {reason: "Policies of other namespaces need leave: else anyone could have a backend withdrawn.", guards: []*guard{securityPolicyIn(t, "edge", "{targetSelectors: [{kind: HTTPRoute, namespaces: {from: All}}]}")}},
		"ElsewhereGranted": {reason: "With a ReferenceGrant they count.", guards: []*guard{securityPolicyIn(t, "edge", "{targetSelectors: [{kind: HTTPRoute, namespaces: {from: All}}]}")}, objects: []string{policyGrant("edge", "shop")}, want: map[string]string{"shop/app:80": "SecurityPolicy edge/jwt", "shop/app:81": "SecurityPolicy edge/jwt", "shop/api:80": "SecurityPolicy edge/jwt"}},
		"ElsewhereSame":    {reason: "One that picks in its own namespace counts there alone.", guards: []*guard{securityPolicyIn(t, "edge", "{targetSelectors: [{kind: HTTPRoute, namespaces: {from: Same}}]}")}, objects: []string{policyGrant("edge", "shop")}},
		"Ours":             {reason: "A TailscaleRoutePolicy protects, too.", guards: []*guard{routePolicyIn(t, "shop", "{"+group+", kind: HTTPRoute, name: app, sectionName: closed}")}, want: map[string]string{"shop/app:80": ours, "shop/app:81": ours, "shop/api:80": ours}},
		"First":            {reason: "Of several policies the first is told.", guards: []*guard{routePolicyIn(t, "shop", "{"+group+", kind: HTTPRoute, name: app}"), securityPolicyIn(t, "shop", "{targetRefs: [{"+group+", kind: HTTPRoute, name: app}]}")}, want: all},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, objects(t, append([]string{tailscaleGateway, labelled, set, app, db, extra}, tc.objects...)...)...)
			in.guards, in.policiesKnown = tc.guards, true
			report := plan(in).report
			if !report.PoliciesKnown {
				t.Errorf("%s\nthe report does not say that policies are known", tc.reason)
			}
			got, told := map[string]string{}, 0
			for _, r := range report.Routes {
				for _, b := range r.Backends {
					told++
					if b.ProtectedBy != "" {
						got[fmt.Sprintf("%s/%s:%d", b.Namespace, b.Name, b.Port)] = b.ProtectedBy
					}
				}
			}
			if told != 5 {
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

// syncs is an informer that has all objects, or not yet.
type syncs struct {
	cache.Informer
	all bool
}

func (s syncs) HasSynced() bool { return s.all }

// TestKnowsSecurityPolicies shows that nothing is taken for unprotected unless policies
// could be read, and that nothing is withdrawn while they are only late.
func TestKnowsSecurityPolicies(t *testing.T) {
	forbidden := kerrors.NewForbidden(schema.GroupResource{Group: groupEnvoyGateway, Resource: "securitypolicies"}, "", errors.New("no"))
	cases := map[string]struct {
		reason  string
		watched bool
		synced  bool
		list    error
		want    bool
		err     bool
	}{
		"NoKind":    {reason: "Without the kind nobody can say that nothing is protected."},
		"Synced":    {reason: "What the cache has is known.", watched: true, synced: true, list: forbidden, want: true},
		"Forbidden": {reason: "What may not be read is not known.", watched: true, list: forbidden},
		"Late":      {reason: "What is only late must not be taken for unknown.", watched: true, err: true},
		"Failing":   {reason: "Nor must an API server that does not answer.", watched: true, list: kerrors.NewServiceUnavailable("later"), err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tc.list },
			})
			c := NewController(nil, kube, Options{})
			if tc.watched {
				c.knows(kindSecurityPolicy)
				c.securityPolicies = syncs{all: tc.synced}
			}
			got, err := c.knowsSecurityPolicies(t.Context())
			if got != tc.want || (err != nil) != tc.err {
				t.Errorf("%s\nwant %t, error %t; got %t, %v", tc.reason, tc.want, tc.err, got, err)
			}
		})
	}
}
