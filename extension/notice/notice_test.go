// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

var shop = ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}

// snapshot of one route to web, at two ports, with what is wrong with each.
func snapshot(problems ...string) *ir.Snapshot {
	r := &ir.Route{Key: shop, Rules: []ir.Rule{{Name: "first"}, {}}}
	c := ir.Contents{Routes: []*ir.Route{r}}
	for i, p := range problems {
		b := ir.BackendRef{Kind: ir.BackendServices, NamespacedName: shop.NamespacedName, Port: int32(80 + i), Weight: 1}
		r.Rules[i].Backends = []ir.BackendRef{b}
		c.Targets = append(c.Targets, &ir.Target{Key: b.Target(shop.Kind), Problem: p})
	}
	return ir.NewSnapshot(c)
}

// withheld requests of a route, for its Gateway has a certificate with a problem.
func withheld(problem string) *ir.Snapshot {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	b := ir.BackendRef{Kind: ir.BackendServices, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, Port: 80, Weight: 1}
	return ir.NewSnapshot(ir.Contents{
		Routes:       []*ir.Route{{Key: shop, Gateways: []types.NamespacedName{gw}, Rules: []ir.Rule{{Backends: []ir.BackendRef{b}}}}},
		Targets:      []*ir.Target{{Key: b.Target(shop.Kind), Shape: ir.Shape{TLS: &ir.UpstreamTLS{}}}},
		Certificates: map[types.NamespacedName]*ir.ClientCertificate{gw: {Problem: problem}},
	})
}

// unpresentable is a certificate of a policy's rule, for a route of its Gateway.
func unpresentable(to ir.PolicyTarget, problem string) *ir.Snapshot {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	return ir.NewSnapshot(ir.Contents{
		Routes: []*ir.Route{{Key: shop, Gateways: []types.NamespacedName{gw}, Rules: []ir.Rule{{Name: "first"}}}},
		Policies: []*ir.RoutePolicy{{
			Name: shop.NamespacedName, Targets: []ir.Attachment{{PolicyTarget: to}},
			Rules: []*ir.PolicyRule{{Policy: shop.NamespacedName, Name: "present", Certificate: &ir.ClientCertificate{Problem: problem}}},
		}},
	})
}

// filtered is a reference with filters that nothing is made of.
func filtered(refused ...string) *ir.Snapshot {
	b := ir.BackendRef{Kind: ir.BackendServices, NamespacedName: shop.NamespacedName, Port: 80, Weight: 1, Changes: &ir.Changes{Refused: refused}}
	return ir.NewSnapshot(ir.Contents{
		Routes:  []*ir.Route{{Key: shop, Rules: []ir.Rule{{Backends: []ir.BackendRef{b}}}}},
		Targets: []*ir.Target{{Key: b.Target(shop.Kind)}},
	})
}

func TestProblems(t *testing.T) {
	left := func(rule int, r hooks.Reason) map[string][]hooks.LeftRule {
		return map[string][]hooks.LeftRule{"infra/gw": {{Route: shop, Rule: rule, Reason: r}}}
	}
	cases := map[string]struct {
		reason   string
		snapshot *ir.Snapshot
		left     map[string][]hooks.LeftRule
		want     []string
	}{
		"Filter": {
			reason:   "A filter of a reference that is left out should be named.",
			snapshot: filtered("RequestMirror"),
			want:     []string{"Rule 0: a filter of the reference to shop/web is left out: RequestMirror; Envoy cannot do that for one of several backends, so set it on the rule"},
		},
		"None":        {reason: "What is served is not worth a word.", snapshot: snapshot("", "")},
		"NoEndpoints": {reason: "A rule with a name is told by it.", snapshot: snapshot("asleep"), want: []string{`Rule "first": port 80 is not served: asleep`}},
		"Index":       {reason: "A rule without a name is told by its index.", snapshot: snapshot("", "asleep"), want: []string{"Rule 1: port 81 is not served: asleep"}},
		"Left": {
			reason: "A rule that cannot be served is told with what to do.", snapshot: snapshot(), left: left(1, hooks.Unsupported),
			want: []string{"Rule 1 is not served: " + remedies[hooks.Unsupported]},
		},
		"Withheld": {
			reason: "What a Gateway's certificate keeps from being served is told.", snapshot: withheld("shop is closed"),
			want: []string{"Rule 0: port 80 is not served: Gateway infra/gw cannot present its client certificate: shop is closed"},
		},
		"PolicyOfRoute": {
			reason: "What a policy's certificate keeps from being served is told.", snapshot: unpresentable(ir.PolicyTarget{Route: shop.Kind, NamespacedName: shop.NamespacedName}, "Secret is closed"),
			want: []string{`Rule "first": what rule "present" of TailscaleRoutePolicy shop/web matches is answered 503: Secret is closed`},
		},
		"PolicyOfGateway": {
			reason: "It is for a policy of the Gateway.", snapshot: unpresentable(ir.PolicyTarget{NamespacedName: types.NamespacedName{Namespace: "infra", Name: "gw"}}, "Secret is closed"),
			want: []string{`Rule "first": what rule "present" of TailscaleRoutePolicy shop/web matches is answered 503: Secret is closed`},
		},
		"PolicyOfOther": {reason: "That of another Gateway is not this route's.", snapshot: unpresentable(ir.PolicyTarget{NamespacedName: types.NamespacedName{Namespace: "infra", Name: "other"}}, "Secret is closed")},
		"Presented":     {reason: "What is presented is not worth a word.", snapshot: unpresentable(ir.PolicyTarget{Route: shop.Kind, NamespacedName: shop.NamespacedName}, "")},
		"Stale":         {reason: "What passes by itself is not told.", snapshot: snapshot(), left: left(0, hooks.Stale)},
		"GoneNow":       {reason: "A rule that is there no more is not told.", snapshot: snapshot(), left: left(2, hooks.Unsupported)},
		"NoRoute":       {reason: "Nor is a route.", snapshot: ir.NewSnapshot(ir.Contents{}), left: left(0, hooks.Unsupported)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for p := range problems(tc.snapshot, tc.left) {
				if p.route != shop {
					t.Errorf("\n%s\nthe problem is of %v", tc.reason, p.route)
				}
				got = append(got, p.message)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// ears hear what is told.
type ears struct{ heard []string }

func (e *ears) Tell(_ context.Context, r ir.RouteKey, message string) error {
	e.heard = append(e.heard, r.Name+": "+message)
	return nil
}

func (e *ears) TellServed(_ context.Context, r ir.RouteKey) error {
	e.heard = append(e.heard, r.Name+" is served")
	return nil
}

// after some time, when all has come to rest.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// route to a TailscaleServices that does not exist.
func route(name string) *gwapiv1.HTTPRoute {
	return &gwapiv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: gwapiv1.HTTPRouteSpec{Rules: []gwapiv1.HTTPRouteRule{{BackendRefs: []gwapiv1.HTTPBackendRef{{
			BackendRef: gwapiv1.BackendRef{BackendObjectReference: gwapiv1.BackendObjectReference{
				Group: ptr.To(gwapiv1.Group(gatewayv1alpha1.Group)), Kind: ptr.To(gwapiv1.Kind(gatewayv1alpha1.TailscaleServicesKind)),
				Name: "nobody", Port: ptr.To(gwapiv1.PortNumber(80)),
			}},
		}}}}},
	}
}

func TestRun(t *testing.T) {
	const missing = "Rule 0: port 80 is not served: TailscaleServices shop/nobody does not exist; make it, or correct the backendRefs of the routes that name it"
	type world struct {
		store *index.Store
		n     *Notices
	}
	apply := func(t *testing.T, w world, gone bool, of ...client.Object) {
		t.Helper()
		for _, o := range of {
			if err := w.store.Apply(index.Change{Object: o, Gone: gone}); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := map[string]struct {
		reason string
		do     func(t *testing.T, w world)
		want   []string
	}{
		"Lasting": {
			reason: "A problem that lasts should be told once.",
			do: func(t *testing.T, w world) {
				t.Helper()
				apply(t, w, false, route("web"))
				after(time.Minute)
			},
			want: []string{"web: " + missing},
		},
		"Passing": {
			reason: "A problem that passes should not be told.",
			do: func(t *testing.T, w world) {
				t.Helper()
				apply(t, w, false, route("web"))
				after(settle - time.Second)
				apply(t, w, true, route("web"))
				after(time.Minute)
			},
		},
		"Mended": {
			reason: "That a problem which was told is gone should be told.",
			do: func(t *testing.T, w world) {
				t.Helper()
				w.n.Translated("infra/gw", []hooks.LeftRule{{Route: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: shop.NamespacedName}, Reason: hooks.Patched}})
				apply(t, w, false, route("web"))
				after(time.Minute)
				apply(t, w, true, route("web"))
				after(time.Minute)
			},
			want: []string{"web: Rule 0 is not served: " + remedies[hooks.Patched], "web: " + missing, "web is served"},
		},
		"Many": {
			reason: "Many problems should be told bit by bit, and all of them.",
			do: func(t *testing.T, w world) {
				t.Helper()
				for i := range 2 * most {
					apply(t, w, false, route(fmt.Sprintf("web-%02d", i)))
				}
				after(settle + pause/2)
				if n := len(w.n.speaker.(*ears).heard); n != most {
					t.Errorf("%d are told at once, want %d", n, most)
				}
				after(pause)
			},
			want: func() []string {
				var out []string
				for i := range 2 * most {
					out = append(out, fmt.Sprintf("web-%02d: %s", i, missing))
				}
				return out
			}(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &ears{}
				w := world{store: index.NewStore()}
				w.n = New(w.store, e, logging.NewNopLogger())
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- w.n.Run(ctx) }()
				tc.do(t, w)
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tc.want, e.heard); diff != "" {
					t.Errorf("\n%s\ntold: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestEvents(t *testing.T) {
	s, err := parse.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(route("web")).Build()
	// Two replicas, which tell the same.
	for range 2 {
		e := NewEvents(c, c)
		if err := e.Tell(t.Context(), shop, "asleep"); err != nil {
			t.Fatal(err)
		}
		if err := e.TellServed(t.Context(), shop); err != nil {
			t.Fatal(err)
		}
		gone := shop
		gone.Name = "gone"
		if err := e.Tell(t.Context(), gone, "asleep"); err != nil {
			t.Errorf("a route that has gone: %v", err)
		}
	}
	l := &corev1.EventList{}
	if err := c.List(t.Context(), l, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range l.Items {
		got[e.Type+" "+e.Reason] = e.Message
		if o := e.InvolvedObject; o.Kind != "HTTPRoute" || o.Name != "web" || o.UID != "web" {
			t.Errorf("the event is of %+v", o)
		}
	}
	want := map[string]string{
		"Warning BackendNotServed": "asleep",
		"Normal BackendServed":     "All Tailscale backends of the route are served",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(l.Items) != len(want) {
		t.Errorf("%d events: -want, +got:\n%s", len(l.Items), diff)
	}
}
