// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// strippedReader reads what a cache holds, which parse.Strip leaves.
type strippedReader struct {
	client.Client
	cache.Cache
}

func (r strippedReader) List(ctx context.Context, l client.ObjectList, _ ...client.ListOption) error {
	if err := r.Client.List(ctx, l); err != nil {
		return err
	}
	list, ok := l.(*gwapiv1.BackendTLSPolicyList)
	for i := range list.Items {
		if !ok {
			break
		}
		if _, err := parse.Strip(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r strippedReader) Get(ctx context.Context, n client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return r.Client.Get(ctx, n, o)
}

// A tlsFixture is a TLSWriter for one policy of default/web.
type tlsFixture struct {
	*TLSWriter
	t       *testing.T
	kube    client.Client
	patches int
}

func newTLSFixture(t *testing.T, gateway *types.NamespacedName, previous ...gwapiv1.PolicyAncestorStatus) *tlsFixture {
	t.Helper()
	s, err := parse.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	f := &tlsFixture{t: t}
	p := &gwapiv1.BackendTLSPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "a"}, Status: gwapiv1.PolicyStatus{Ancestors: previous}}
	f.kube = fake.NewClientBuilder().WithScheme(s).WithObjects(p).WithStatusSubresource(p).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			f.patches++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	store := index.NewStore()
	if gateway != nil {
		store.Serve(func(n types.NamespacedName) bool { return n == *gateway })
	}
	f.TLSWriter = NewTLSWriter(store, strippedReader{Client: f.kube}, f.kube, Options{Gateway: gateway, Log: logging.NewNopLogger()})
	return f
}

// ancestors returns the ancestors of the policy: CONTROLLER GATEWAY, and reasons of conditions.
func (f *tlsFixture) ancestors() []string {
	f.t.Helper()
	p := &gwapiv1.BackendTLSPolicy{}
	if err := f.kube.Get(f.t.Context(), nn("web"), p); err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, a := range p.Status.Ancestors {
		words := []string{string(a.ControllerName), string(a.AncestorRef.Name)}
		for _, c := range a.Conditions {
			words = append(words, fmt.Sprintf("%s=%s/%s@%d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// replace replaces the status as Envoy Gateway does.
func (f *tlsFixture) replace(as ...gwapiv1.PolicyAncestorStatus) {
	f.t.Helper()
	p := &gwapiv1.BackendTLSPolicy{}
	if err := f.kube.Get(f.t.Context(), nn("web"), p); err != nil {
		f.t.Fatal(err)
	}
	p.Status.Ancestors = as
	if err := f.kube.Status().Update(f.t.Context(), p); err != nil {
		f.t.Fatal(err)
	}
}

func ancestorBy(controller gwapiv1.GatewayController, gateway string) gwapiv1.PolicyAncestorStatus {
	return gwapiv1.PolicyAncestorStatus{
		AncestorRef: targetRef(ir.PolicyTarget{NamespacedName: nn(gateway)}), ControllerName: controller,
		Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Unix(1, 0)}},
	}
}

// unappliedAt returns a snapshot of a route of Gateways whose backend has policies that are not applied.
func unappliedAt(gateways []string, unapplied ...ir.UnappliedTLSPolicy) *ir.Snapshot {
	b := ir.BackendRef{Kind: ir.BackendServices, NamespacedName: nn("web"), Port: 80, Weight: 1}
	r := &ir.Route{Key: ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: nn("web")}, Rules: []ir.Rule{{Backends: []ir.BackendRef{b}}}}
	for _, g := range gateways {
		r.Gateways = append(r.Gateways, nn(g))
	}
	return ir.NewSnapshot(ir.Contents{Routes: []*ir.Route{r}, Targets: []*ir.Target{{Key: b.Target(ir.KindHTTPRoute), TLSPolicies: unapplied}}})
}

const envoyGateway gwapiv1.GatewayController = "gateway.envoyproxy.io/gatewayclass-controller"

func TestTLSWriter(t *testing.T) {
	secret := ir.UnappliedTLSPolicy{Name: nn("web"), Generation: 3, Accepted: "NoValidCACertificate", ResolvedRefs: "InvalidKind", Message: "has a Secret"}
	conflict := ir.UnappliedTLSPolicy{Name: nn("web"), Generation: 3, Accepted: "Conflicted", Message: "conflicts"}
	other := secret
	other.Name = nn("other")
	const refused = " Accepted=False/NoValidCACertificate@3 ResolvedRefs=False/InvalidKind@3"
	const accepted = string(envoyGateway) + " gw Accepted=True/Accepted@0"
	var many []gwapiv1.PolicyAncestorStatus
	var manyAccepted []string
	for i := range maxAncestors - 1 {
		many = append(many, ancestorBy(envoyGateway, fmt.Sprintf("g%d", i)))
		manyAccepted = append(manyAccepted, fmt.Sprintf("%s g%d Accepted=True/Accepted@0", envoyGateway, i))
	}
	team := nn("team")
	cases := map[string]struct {
		reason   string
		gateway  *types.NamespacedName
		previous []gwapiv1.PolicyAncestorStatus
		snapshot *ir.Snapshot
		want     []string
		patches  int
	}{
		"Unapplied": {
			reason: "The ancestor says why, beside the one of Envoy Gateway, which accepts the policy.", previous: []gwapiv1.PolicyAncestorStatus{ancestorBy(envoyGateway, "gw")},
			snapshot: unappliedAt([]string{"gw"}, secret), want: []string{accepted, string(ControllerName) + " gw" + refused}, patches: 1,
		},
		"Gateways": {
			reason: "Each Gateway of the route is an ancestor.", snapshot: unappliedAt([]string{"gw", "b"}, secret),
			want: []string{string(ControllerName) + " b" + refused, string(ControllerName) + " gw" + refused}, patches: 1,
		},
		"Conflict": {
			reason: "A policy that another one replaces has no condition about references.", snapshot: unappliedAt([]string{"gw"}, conflict),
			want: []string{string(ControllerName) + " gw Accepted=False/Conflicted@3"}, patches: 1,
		},
		"Worst": {
			reason: "Unanswered requests come before a conflict.", snapshot: unappliedAt([]string{"gw"}, conflict, secret),
			want: []string{string(ControllerName) + " gw" + refused}, patches: 1,
		},
		"Applied": {
			reason: "A policy that is applied is not written.", previous: []gwapiv1.PolicyAncestorStatus{ancestorBy(envoyGateway, "gw")},
			snapshot: unappliedAt([]string{"gw"}), want: []string{accepted},
		},
		"Corrected": {
			reason: "The ancestor is removed when the policy is applied, and those of others stay.", previous: []gwapiv1.PolicyAncestorStatus{ancestorBy(ControllerName, "gw"), ancestorBy(envoyGateway, "gw")},
			snapshot: unappliedAt([]string{"gw"}, other), want: []string{accepted}, patches: 1,
		},
		"Unused": {
			reason: "A policy of a target that no route names has no ancestor.", snapshot: ir.NewSnapshot(ir.Contents{}),
		},
		"Full": {
			reason: "The ancestors of others leave room for one, and are not removed.", previous: many, snapshot: unappliedAt([]string{"gw", "b"}, secret),
			want: append(slices.Clone(manyAccepted), string(ControllerName)+" b"+refused), patches: 1,
		},
		"NoRoom": {
			reason: "Without room nothing is written.", previous: append(slices.Clone(many), ancestorBy(envoyGateway, "gw")), snapshot: unappliedAt([]string{"gw"}, secret),
			want: append(slices.Clone(manyAccepted), accepted),
		},
		"Dedicated": {
			reason: "A dedicated extension reports its Gateway only, and leaves those of the installed extension.", gateway: &team, previous: []gwapiv1.PolicyAncestorStatus{ancestorBy(ControllerName, "gw")},
			snapshot: unappliedAt([]string{"gw", "team"}, secret), want: []string{string(ControllerName) + " gw Accepted=True/Accepted@0", string(ControllerName) + "-team team" + refused}, patches: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newTLSFixture(t, tc.gateway, tc.previous...)
			// The second finds nothing to write.
			for range 2 {
				if wait := f.write(t.Context(), tc.snapshot, time.Now()); wait != 0 {
					t.Errorf("\n%s\nwrite(...): got a retry after %s", tc.reason, wait)
				}
			}
			if diff := cmp.Diff(tc.want, f.ancestors()); diff != "" {
				t.Errorf("\n%s\nancestors: -want, +got:\n%s", tc.reason, diff)
			}
			if f.patches != tc.patches {
				t.Errorf("\n%s\n%d writes, want %d", tc.reason, f.patches, tc.patches)
			}
		})
	}
}

// TestTLSWriterBackoff checks that an ancestor that another controller removes is restored, ever less
// often.
func TestTLSWriterBackoff(t *testing.T) {
	f := newTLSFixture(t, nil)
	s := unappliedAt([]string{"gw"}, ir.UnappliedTLSPolicy{Name: nn("web"), Accepted: "Invalid", Message: "x"})
	at := time.Unix(1000, 0)
	var waits []time.Duration
	for range 12 {
		f.replace(ancestorBy(envoyGateway, "gw"))
		wait := f.write(t.Context(), s, at)
		waits = append(waits, wait)
		at = at.Add(wait)
		if f.write(t.Context(), s, at); len(f.ancestors()) != 2 {
			t.Fatalf("the ancestor was not restored after %s: %v", wait, f.ancestors())
		}
	}
	sec := time.Second
	want := []time.Duration{0, sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 32 * sec, 64 * sec, 128 * sec, 256 * sec, 300 * sec, 300 * sec}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("delays of writes: -want, +got:\n%s", diff)
	}
	f.replace()
	if wait := f.write(t.Context(), s, at.Add(2*maxBackoff)); wait != 0 || len(f.ancestors()) != 1 {
		t.Errorf("after a long time, an ancestor should be restored at once: got a retry after %s", wait)
	}
	f.replace()
	other := unappliedAt([]string{"gw"}, ir.UnappliedTLSPolicy{Name: nn("web"), Accepted: "Invalid", Message: "y"})
	if wait := f.write(t.Context(), other, at.Add(2*maxBackoff)); wait != 0 || len(f.ancestors()) != 1 {
		t.Errorf("another reason should be written at once: got a retry after %s", wait)
	}
}

// TestTLSWriterConflict checks that a write fails if another controller wrote the policy meanwhile.
func TestTLSWriterConflict(t *testing.T) {
	f := newTLSFixture(t, nil)
	racing := interceptor.NewClient(f.kube.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			f.replace(ancestorBy(envoyGateway, "gw")) //nolint:contextcheck // It has the context of the test.
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	f.TLSWriter.kube = racing
	s := unappliedAt([]string{"gw"}, ir.UnappliedTLSPolicy{Name: nn("web"), Accepted: "Invalid", Message: "x"})
	if wait := f.write(t.Context(), s, time.Now()); wait != debounce {
		t.Errorf("write(...): got a retry after %s, want %s", wait, debounce)
	}
	f.TLSWriter.kube = f.kube
	f.write(t.Context(), s, time.Now())
	want := []string{string(envoyGateway) + " gw Accepted=True/Accepted@0", string(ControllerName) + " gw Accepted=False/Invalid@0"}
	if diff := cmp.Diff(want, f.ancestors()); diff != "" {
		t.Errorf("ancestors: -want, +got:\n%s", diff)
	}
}
