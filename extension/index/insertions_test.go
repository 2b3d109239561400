// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// denying returns a policy of a target with one rule of so many matches, which need a route each.
func denying(namespace, name string, target gwapiv1.LocalPolicyTargetReference, matches int) *gatewayv1alpha1.TailscaleRoutePolicy {
	r := gatewayv1alpha1.RoutePolicyRule{Name: "a", Actions: []gatewayv1alpha1.RoutePolicyAction{{Type: gatewayv1alpha1.ActionDeny}}}
	for i := range matches {
		r.Matches = append(r.Matches, gatewayv1alpha1.RoutePolicyMatch{Headers: []gwapiv1.HTTPHeaderMatch{{Name: "x", Value: fmt.Sprintf("%04d", i)}}})
	}
	p := &gatewayv1alpha1.TailscaleRoutePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.TargetRefs = []gwapiv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: target}}
	p.Spec.Rules = []gatewayv1alpha1.RoutePolicyRule{r}
	return p
}

func toHTTPRoute(name string) gwapiv1.LocalPolicyTargetReference {
	return gwapiv1.LocalPolicyTargetReference{Group: gwapiv1.GroupName, Kind: "HTTPRoute", Name: gwapiv1.ObjectName(name)}
}

// wide returns a route of the Gateway infra/gw of so many rules.
func wide(namespace string, i, rules int) *gwapiv1.HTTPRoute {
	r := &gwapiv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("r%d", i), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0))}}
	ns := gwapiv1.Namespace("infra")
	r.Spec.ParentRefs = []gwapiv1.ParentReference{{Namespace: &ns, Name: "gw"}}
	r.Spec.Rules = make([]gwapiv1.HTTPRouteRule, rules)
	return r
}

// TestInsertions checks which routes policies may insert routes for, whatever the order of changes.
func TestInsertions(t *testing.T) {
	const rules = 16
	// costs are the estimated bytes for one wide route.
	const cost = rules * 128 * (insertedRoute + len("x=0000"))
	tenant := func(namespace string, routes int) []client.Object {
		var out []client.Object
		for i := range routes {
			r := wide(namespace, i, rules)
			out = append(out, r, denying(namespace, r.Name, toHTTPRoute(r.Name), 128))
		}
		return out
	}
	tooWide := wide("hostile", 0, 2*rules)
	cases := map[string]struct {
		reason  string
		objects []client.Object
		// want are the numbers of routes by namespace that are served, and refused.
		want, refused map[string]int
	}{
		"Fine": {
			reason:  "Routes within the limits should be served.",
			objects: tenant("shop", 2),
			want:    map[string]int{"shop": 2},
		},
		"Route": {
			reason:  "A route beyond its limit should be refused, and no other.",
			objects: append(tenant("shop", 1), tooWide, denying("hostile", tooWide.Name, toHTTPRoute(tooWide.Name), 128)),
			want:    map[string]int{"shop": 1},
			refused: map[string]int{"hostile": 1},
		},
		"Namespace": {
			reason:  "The newest routes of a namespace beyond its limit should be refused.",
			objects: append(tenant("hostile", 40), tenant("shop", 1)...),
			want:    map[string]int{"hostile": limits.NamespaceInsertions / cost, "shop": 1},
			refused: map[string]int{"hostile": 40 - limits.NamespaceInsertions/cost},
		},
		"Gateway": {
			reason: "Beyond the limit of a Gateway, the namespaces with the most should have equal parts.",
			objects: func() []client.Object {
				out := tenant("shop", 1)
				for i := range 8 {
					out = append(out, tenant(fmt.Sprintf("hostile-%d", i), 12)...)
				}
				return out
			}(),
			want: func() map[string]int {
				out := map[string]int{"shop": 1}
				for i := range 8 {
					out[fmt.Sprintf("hostile-%d", i)] = (limits.GatewayInsertions - cost) / 8 / cost
				}
				return out
			}(),
			refused: func() map[string]int {
				out := map[string]int{}
				for i := range 8 {
					out[fmt.Sprintf("hostile-%d", i)] = 12 - (limits.GatewayInsertions-cost)/8/cost
				}
				return out
			}(),
		},
		"GatewayPolicy": {
			reason: "The routes of a policy of a Gateway should count for the namespaces of its routes.",
			objects: func() []client.Object {
				out := []client.Object{denying("infra", "all", gwapiv1.LocalPolicyTargetReference{Group: gwapiv1.GroupName, Kind: "Gateway", Name: "gw"}, 128), wide("shop", 0, 1)}
				for i := range 40 {
					out = append(out, wide("hostile", i, rules))
				}
				return out
			}(),
			want:    map[string]int{"hostile": limits.NamespaceInsertions / cost, "shop": 1},
			refused: map[string]int{"hostile": 40 - limits.NamespaceInsertions/cost},
		},
	}
	gateway := decode(t, gatewayOf("gw"))[0]
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			// The newest routes come first.
			for i := len(tc.objects) - 1; i >= 0; i-- {
				if err := s.Apply(Change{Object: tc.objects[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Apply(Change{Object: gateway}); err != nil {
				t.Fatal(err)
			}
			want, refused := map[string]int{}, map[string]int{}
			at := types.NamespacedName{Namespace: "infra", Name: "gw"}
			for _, o := range tc.objects {
				r, ok := o.(*gwapiv1.HTTPRoute)
				if !ok {
					continue
				}
				k := ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: client.ObjectKeyFromObject(r)}
				counts := want
				for _, rule := range s.Snapshot().Policies().Rules(k, "", at, "http") {
					if s.Snapshot().Policies().Refuses(rule.Policy, k) {
						counts = refused
					}
				}
				counts[r.Namespace]++
			}
			if tc.refused == nil {
				tc.refused = map[string]int{}
			}
			if diff := cmp.Diff(tc.want, want) + cmp.Diff(tc.refused, refused); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, o := range tc.objects {
				if err := s.Apply(Change{Object: o, Deleted: true}); err != nil {
					t.Fatal(err)
				}
			}
			ins := s.objects.insertions
			if n := len(ins.policies) + len(ins.costs) + len(ins.routes) + len(ins.namespaces) + len(ins.gateways) + len(ins.large) + len(ins.refused) + len(ins.affected); n > 0 {
				t.Errorf("%d entries stay after all objects are gone", n)
			}
		})
	}
}

// TestRefusedAtEachStep checks that policies report the same refused routes after random changes as if the
// objects had just been made: each change settles only the policies that it affects.
func TestRefusedAtEachStep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	gateways := []string{"gw", "gw2"}
	edit := func() client.Object {
		name := fmt.Sprintf("r%d", random.IntN(3))
		switch random.IntN(3) {
		case 0:
			r := wide("infra", 0, []int{1, 16, 32}[random.IntN(3)])
			r.Name, r.Spec.ParentRefs[0].Name = name, gwapiv1.ObjectName(gateways[random.IntN(2)])
			return r
		case 1:
			return denying("infra", "at-"+name, toHTTPRoute(name), []int{1, 64, 128}[random.IntN(3)])
		}
		gateway := gateways[random.IntN(2)]
		return denying("infra", "at-"+gateway, gwapiv1.LocalPolicyTargetReference{Group: gwapiv1.GroupName, Kind: "Gateway", Name: gwapiv1.ObjectName(gateway)}, []int{1, 64, 128}[random.IntN(3)])
	}
	refused := func(s *Store) map[types.NamespacedName]map[ir.RouteKey]string {
		out := map[types.NamespacedName]map[ir.RouteKey]string{}
		for p := range s.Snapshot().Policies().All() {
			if len(p.Refused) > 0 {
				out[p.Name] = p.Refused
			}
		}
		return out
	}
	s, objects, some := NewStore(), map[string]client.Object{}, 0
	apply(t, s, false, gatewayOf("gw"), gatewayOf("gw2"))
	for range 80 {
		o := edit()
		key := fmt.Sprintf("%T/%s", o, o.GetName())
		change := Change{Object: o, Deleted: random.IntN(4) == 0}
		put(objects, key, o, change.Deleted)
		if err := s.Apply(change); err != nil {
			t.Fatal(err)
		}
		fresh := NewStore()
		apply(t, fresh, false, gatewayOf("gw"), gatewayOf("gw2"))
		for _, o := range objects {
			if err := fresh.Apply(Change{Object: o}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(refused(fresh), refused(s)); diff != "" {
			t.Fatalf("After a change of %s, deleted %t: refused routes of a new Store and of this one, -want, +got:\n%s", key, change.Deleted, diff)
		}
		if diff := cmp.Diff(fresh.Snapshot().GatewayDigest(types.NamespacedName{Namespace: "infra", Name: "gw"}), s.Snapshot().GatewayDigest(types.NamespacedName{Namespace: "infra", Name: "gw"})); diff != "" {
			t.Fatalf("After a change of %s, deleted %t: digest of a new Store and of this one, -want, +got:\n%s", key, change.Deleted, diff)
		}
		some += len(refused(s))
	}
	if some == 0 {
		t.Error("No change refused a route")
	}
}

// TestRefusedCost checks that an edit of a tenant's policy that has refused routes does not look at the policies
// of other tenants.
func TestRefusedCost(t *testing.T) {
	cost := func(tenants int) float64 {
		s := NewStore()
		apply(t, s, false, gatewayOf("gw"))
		change := func(o client.Object) {
			if err := s.Apply(Change{Object: o}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range tenants {
			n := fmt.Sprintf("shop%d", i)
			change(wide(n, 0, 1))
			change(denying(n, "p", toHTTPRoute("r0"), 1))
		}
		change(wide("hostile", 0, 32))
		edits := []client.Object{denying("hostile", "p", toHTTPRoute("r0"), 128), denying("hostile", "p", toHTTPRoute("r0"), 127)}
		change(edits[0])
		return testing.AllocsPerRun(3, func() {
			for _, o := range edits {
				change(o)
			}
		})
	}
	if few, many := cost(10), cost(200); many > few+50 {
		t.Errorf("Edits of the policy need %.0f allocations among 200 tenants, want about the %.0f among 10", many, few)
	}
}

// TestSettledParents checks that a changed Gateway without routes leaves nothing for later edits to look at.
func TestSettledParents(t *testing.T) {
	s := NewStore()
	for _, o := range []client.Object{wide("shop", 0, 1), denying("shop", "p", toHTTPRoute("r0"), 1)} {
		if err := s.Apply(Change{Object: o}); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, s, false, gatewayOf("gw"), gatewayOf("lonely"))
	apply(t, s, false, strings.Replace(gatewayOf("lonely"), "port: 80", "port: 81", 1))
	if n := len(s.objects.insertions.dirtyParents); n > 0 {
		t.Errorf("%d parents are looked for among all routes at each further edit", n)
	}
}

// TestReadmitted checks that a route whose Gateway starts to admit it counts for the Gateway's digest, also if
// only its information for people changes at the same time.
func TestReadmitted(t *testing.T) {
	closed := strings.Replace(gatewayOf("gw"), "from: All", "from: Same", 1)
	newer := strings.Replace(routeToWeb, "generation: 1", "generation: 2", 1)
	s := NewStore()
	apply(t, s, false, closed, servicesWeb, routeToWeb)
	apply(t, s, false, gatewayOf("gw"), newer)
	want := snapshotOf(t, gatewayOf("gw"), servicesWeb, newer)
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	if diff := cmp.Diff(want.GatewayDigest(gw), s.Snapshot().GatewayDigest(gw)); diff != "" {
		t.Errorf("digest of the Gateway: -want, +got\n%s", diff)
	}
}
