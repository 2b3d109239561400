// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"
	"slices"
	"sync"
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

// snapshot returns a snapshot of one route to two ports of web, each with a problem.
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

// withheld returns a snapshot of a route whose Gateway has a client certificate with a problem.
func withheld(problem string) *ir.Snapshot {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	b := ir.BackendRef{Kind: ir.BackendServices, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}, Port: 80, Weight: 1}
	return ir.NewSnapshot(ir.Contents{
		Routes:       []*ir.Route{{Key: shop, Gateways: []types.NamespacedName{gw}, Rules: []ir.Rule{{Backends: []ir.BackendRef{b}}}}},
		Targets:      []*ir.Target{{Key: b.Target(shop.Kind), Shape: ir.Shape{TLS: &ir.UpstreamTLS{}}}},
		Certificates: map[types.NamespacedName]*ir.ClientCertificate{gw: {Problem: problem}},
	})
}

// unpresentable returns a snapshot of a route and a policy rule whose client certificate has a
// problem.
func unpresentable(target ir.PolicyTarget, problem string) *ir.Snapshot {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	return ir.NewSnapshot(ir.Contents{
		Routes: []*ir.Route{{Key: shop, Gateways: []types.NamespacedName{gw}, Rules: []ir.Rule{{Name: "first"}}}},
		Policies: []*ir.RoutePolicy{{
			Name: shop.NamespacedName, Targets: []ir.Attachment{{PolicyTarget: target}},
			Rules: []*ir.PolicyRule{{Policy: shop.NamespacedName, Name: "present", Certificate: &ir.ClientCertificate{Problem: problem}}},
		}},
	})
}

// filtered returns a snapshot of a route with a reference that has unsupported filters.
func filtered(refused ...string) *ir.Snapshot {
	b := ir.BackendRef{Kind: ir.BackendServices, NamespacedName: shop.NamespacedName, Port: 80, Weight: 1, Changes: &ir.Changes{Refused: refused}}
	return ir.NewSnapshot(ir.Contents{
		Routes:  []*ir.Route{{Key: shop, Rules: []ir.Rule{{Backends: []ir.BackendRef{b}}}}},
		Targets: []*ir.Target{{Key: b.Target(shop.Kind)}},
	})
}

func TestProblems(t *testing.T) {
	unchangedRule := func(rule int, r hooks.Reason) map[string][]hooks.SkippedRule {
		return map[string][]hooks.SkippedRule{"infra/gw": {{Route: shop, Rule: rule, Reason: r}}}
	}
	cases := map[string]struct {
		reason    string
		snapshot  *ir.Snapshot
		unchanged map[string][]hooks.SkippedRule
		want      []string
	}{
		"Filter": {
			reason:   "The problem names a filter that cannot be applied.",
			snapshot: filtered("RequestMirror"),
			want:     []string{"Rule 0: requests to shop/web get a 500 response because of a filter of the reference: RequestMirror; Envoy does not support it for one of several backends, so set it on the rule"},
		},
		"None":        {reason: "A route that is served has no problems.", snapshot: snapshot("", "")},
		"NoEndpoints": {reason: "The problem names the rule.", snapshot: snapshot("asleep"), want: []string{`Rule "first": port 80 is not served: asleep`}},
		"Index":       {reason: "The problem has the index of a rule without a name.", snapshot: snapshot("", "asleep"), want: []string{"Rule 1: port 81 is not served: asleep"}},
		"Left": {
			reason: "The problem of an unsupported rule includes the remedy.", snapshot: snapshot(), unchanged: unchangedRule(1, hooks.Unsupported),
			want: []string{"Rule 1 is not served: " + remedies[hooks.Unsupported]},
		},
		"Withheld": {
			reason: "A Gateway's certificate with a problem is a problem of its routes.", snapshot: withheld("shop is closed"),
			want: []string{"Rule 0: port 80 is not served: Gateway infra/gw cannot present its client certificate: shop is closed"},
		},
		"PolicyOfRoute": {
			reason: "A certificate with a problem is a problem of the route that the policy targets.", snapshot: unpresentable(ir.PolicyTarget{Route: shop.Kind, NamespacedName: shop.NamespacedName}, "Secret is closed"),
			want: []string{`Rule "first": requests that match rule "present" of TailscaleRoutePolicy shop/web get a 503 response: Secret is closed`},
		},
		"PolicyOfGateway": {
			reason: "A certificate with a problem is a problem of the routes of the Gateway that the policy targets.", snapshot: unpresentable(ir.PolicyTarget{NamespacedName: types.NamespacedName{Namespace: "infra", Name: "gw"}}, "Secret is closed"),
			want: []string{`Rule "first": requests that match rule "present" of TailscaleRoutePolicy shop/web get a 503 response: Secret is closed`},
		},
		"PolicyOfOther": {reason: "A policy of another Gateway does not affect the route.", snapshot: unpresentable(ir.PolicyTarget{NamespacedName: types.NamespacedName{Namespace: "infra", Name: "other"}}, "Secret is closed")},
		"Presented":     {reason: "A certificate without a problem is not reported.", snapshot: unpresentable(ir.PolicyTarget{Route: shop.Kind, NamespacedName: shop.NamespacedName}, "")},
		"Stale":         {reason: "A stale rule needs no action, and is not reported.", snapshot: snapshot(), unchanged: unchangedRule(0, hooks.Stale)},
		"GoneNow":       {reason: "A rule that no longer exists is not reported.", snapshot: snapshot(), unchanged: unchangedRule(2, hooks.Unsupported)},
		"NoRoute":       {reason: "A route that no longer exists is not reported.", snapshot: ir.NewSnapshot(ir.Contents{}), unchanged: unchangedRule(0, hooks.Unsupported)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for p := range problems(tc.snapshot, tc.unchanged) {
				if p.route != shop {
					t.Errorf("\n%s\nroute of the problem: got %v", tc.reason, p.route)
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

// A fakeRecorder is a Recorder that collects what it records.
type fakeRecorder struct {
	mu       sync.Mutex
	recorded []string
}

func (e *fakeRecorder) record(event string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorded = append(e.recorded, event)
}

// events returns the number of recorded events.
func (e *fakeRecorder) events() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.recorded)
}

func (e *fakeRecorder) RecordProblem(_ context.Context, r ir.RouteKey, message string) error {
	e.record(r.Name + ": " + message)
	return nil
}

func (e *fakeRecorder) RecordServed(_ context.Context, r ir.RouteKey) error {
	e.record(r.Name + " is served")
	return nil
}

// after waits until some time has passed and all goroutines are blocked.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// route returns an HTTPRoute to a TailscaleServices that does not exist.
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
	type fixture struct {
		store    *index.Store
		reporter *Reporter
	}
	var twoBatches []string
	for i := range 2 * maxEvents {
		twoBatches = append(twoBatches, fmt.Sprintf("web-%02d: %s", i, missing))
	}
	apply := func(t *testing.T, f fixture, deleted bool, objs ...client.Object) {
		t.Helper()
		for _, o := range objs {
			if err := f.store.Apply(index.Change{Object: o, Deleted: deleted}); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := map[string]struct {
		reason string
		action func(t *testing.T, f fixture)
		want   []string
	}{
		"Lasting": {
			reason: "A problem that lasts is reported once.",
			action: func(t *testing.T, f fixture) {
				t.Helper()
				apply(t, f, false, route("web"))
				after(time.Minute)
			},
			want: []string{"web: " + missing},
		},
		"Passing": {
			reason: "A problem that passes soon is not reported.",
			action: func(t *testing.T, f fixture) {
				t.Helper()
				apply(t, f, false, route("web"))
				after(minDuration - time.Second)
				apply(t, f, true, route("web"))
				after(time.Minute)
			},
		},
		"Fixed": {
			reason: "The end of a reported problem is reported.",
			action: func(t *testing.T, f fixture) {
				t.Helper()
				f.reporter.Translated("infra/gw", []hooks.SkippedRule{{Route: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: shop.NamespacedName}, Reason: hooks.Patched}})
				apply(t, f, false, route("web"))
				after(time.Minute)
				apply(t, f, true, route("web"))
				after(time.Minute)
			},
			want: []string{"web: Rule 0 is not served: " + remedies[hooks.Patched], "web: " + missing, "web is served"},
		},
		"Staggered": {
			reason: "Batches of problems that began one after the other have a pause between them, too.",
			action: func(t *testing.T, f fixture) {
				t.Helper()
				for i := range 2 * maxEvents {
					if i == maxEvents {
						after(pause / 2)
					}
					apply(t, f, false, route(fmt.Sprintf("web-%02d", i)))
				}
				after(minDuration + settle)
				if n := f.reporter.recorder.(*fakeRecorder).events(); n != maxEvents {
					t.Errorf("%d problems in the first batch, want %d", n, maxEvents)
				}
				after(pause)
			},
			want: twoBatches,
		},
		"Many": {
			reason: "Many problems are reported in batches.",
			action: func(t *testing.T, f fixture) {
				t.Helper()
				for i := range 2 * maxEvents {
					apply(t, f, false, route(fmt.Sprintf("web-%02d", i)))
				}
				after(minDuration + pause/2)
				if n := f.reporter.recorder.(*fakeRecorder).events(); n != maxEvents {
					t.Errorf("%d problems in the first batch, want %d", n, maxEvents)
				}
				after(pause)
			},
			want: twoBatches,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &fakeRecorder{}
				f := fixture{store: index.NewStore()}
				f.reporter = New(f.store, e, logging.NewNopLogger())
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- f.reporter.Run(ctx) }()
				// The check at the start finds no objects.
				synctest.Wait()
				tc.action(t, f)
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tc.want, e.recorded); diff != "" {
					t.Errorf("\n%s\nrecorded: -want, +got:\n%s", tc.reason, diff)
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
	// Two replicas record the same events.
	for range 2 {
		e := NewEventRecorder(c, c)
		if err := e.RecordProblem(t.Context(), shop, "asleep"); err != nil {
			t.Fatal(err)
		}
		if err := e.RecordServed(t.Context(), shop); err != nil {
			t.Fatal(err)
		}
		missing := shop
		missing.Name = "gone"
		if err := e.RecordProblem(t.Context(), missing, "asleep"); err != nil {
			t.Errorf("event of a route that does not exist: %v", err)
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
			t.Errorf("involved object: got %+v", o)
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
