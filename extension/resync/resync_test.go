// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile/reconciletest"
)

var gw = types.NamespacedName{Namespace: "infra", Name: "gw"}

func route() *gwapiv1.TCPRoute {
	return &gwapiv1.TCPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec: gwapiv1.TCPRouteSpec{
			CommonRouteSpec: gwapiv1.CommonRouteSpec{ParentRefs: []gwapiv1.ParentReference{{Namespace: ptr.To[gwapiv1.Namespace]("infra"), Name: "gw"}}},
			Rules: []gwapiv1.TCPRouteRule{{BackendRefs: []gwapiv1.BackendRef{{BackendObjectReference: gwapiv1.BackendObjectReference{
				Group: ptr.To[gwapiv1.Group](v1alpha1.Group), Kind: ptr.To[gwapiv1.Kind](v1alpha1.TailscaleServicesKind), Name: "db", Port: ptr.To[int32](5432),
			}}}}},
		},
	}
}

// admits returns the Gateway, which admits routes of all namespaces.
func admits() *gwapiv1.Gateway {
	return &gwapiv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: gw.Namespace, Name: gw.Name},
		Spec: gwapiv1.GatewaySpec{Listeners: []gwapiv1.Listener{{AllowedRoutes: &gwapiv1.AllowedRoutes{
			Namespaces: &gwapiv1.RouteNamespaces{From: ptr.To(gwapiv1.NamespacesFromAll)},
		}}}},
	}
}

// services returns a TailscaleServices whose health check has an interval in seconds.
func services(interval int) *v1alpha1.TailscaleServices {
	return &v1alpha1.TailscaleServices{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec: v1alpha1.TailscaleServicesSpec{
			VIPService: v1alpha1.VIPServiceTemplate{Ports: []v1alpha1.ServicePort{"tcp:5432"}},
			Backends:   []v1alpha1.Backend{{Kind: v1alpha1.BackendKindService, Name: "db", Port: 5432}},
			LoadBalancing: &v1alpha1.LoadBalancing{HealthCheck: &v1alpha1.HealthCheck{
				Interval: metav1.Duration{Duration: time.Duration(interval) * time.Second},
			}},
		},
	}
}

func apply(t *testing.T, s *index.Store, cs ...index.Change) {
	t.Helper()
	if err := s.Apply(cs...); err != nil {
		t.Fatal(err)
	}
}

// A written holds the revision and the attempt of a written TailscaleRevision.
type written struct {
	Revision string
	Attempt  int64
}

func get(t *testing.T, a *reconciletest.API) *written {
	t.Helper()
	r := &v1alpha1.TailscaleRevision{}
	err := a.Get(t.Context(), gw, r)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Spec.TargetRefs) != 1 || r.Spec.TargetRefs[0].Name != "gw" || r.Spec.TargetRefs[0].Kind != "Gateway" {
		t.Errorf("targetRefs: want Gateway gw, got %v", r.Spec.TargetRefs)
	}
	return &written{Revision: r.Spec.Revision, Attempt: r.Spec.Attempt}
}

func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestController follows the TailscaleRevision of a Gateway through changes of objects, a
// lagging replica and the removal of the last route.
func TestController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := reconciletest.New(t, &v1alpha1.TailscaleRevision{})
		ctx, stop := context.WithCancel(t.Context())
		s := index.NewStore()
		apply(t, s, index.Change{Object: admits()}, index.Change{Object: route()}, index.Change{Object: services(5)})
		tr := New(api, s, logging.NewNopLogger())
		done := make(chan error, 1)
		go func() { done <- tr.Run(ctx, api) }()

		check := func(reason string, want *written) {
			t.Helper()
			if diff := cmp.Diff(want, get(t, api)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", reason, diff)
			}
		}
		digest := func() string { return s.Snapshot().GatewayDigest(gw) }

		after(time.Millisecond)
		first := digest()
		check("A Gateway with a route to a Tailscale backend has a TailscaleRevision", &written{Revision: first})

		after(time.Second)
		apply(t, s, index.Change{Object: services(6)})
		after(time.Millisecond)
		second := digest()
		if first == second {
			t.Fatal("the digest does not depend on the health check")
		}
		check("A change is written at once", &written{Revision: second})

		if tr.RecordAnswer(gw, first, second) {
			t.Error("RecordAnswer reports a lag for an answer from newer objects than requested")
		}
		after(time.Hour)
		check("Without changes, the controller does not write", &written{Revision: second})

		// Another replica is ahead, and Envoy Gateway calls this one.
		apply(t, s, index.Change{Object: services(7)})
		third := digest()
		apply(t, s, index.Change{Object: services(6)})
		after(time.Second)
		lag := index.NewStore()
		apply(t, lag, index.Change{Object: admits()}, index.Change{Object: route()}, index.Change{Object: services(6)})
		lagging := New(api, lag, logging.NewNopLogger())
		lagDone := make(chan error, 1)
		go func() { lagDone <- lagging.Run(ctx, api) }()
		synctest.Wait()
		if err := api.Notify(ctx, gw); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		previous := get(t, api)
		apply(t, s, index.Change{Object: services(7)})
		after(time.Millisecond)
		check("The replica that observes the change first writes it", &written{Revision: third})
		if !lagging.RecordAnswer(gw, third, second) {
			t.Error("RecordAnswer reports no lag for an answer from older objects than requested")
		}
		if lagging.RecordAnswer(gw, third, second) {
			t.Error("RecordAnswer reports the same lag twice")
		}
		after(time.Second)
		check("The lagging replica does not write", &written{Revision: third})
		apply(t, lag, index.Change{Object: services(7)})
		after(time.Second)
		check("The replica resyncs the Gateway once it has caught up", &written{Revision: third, Attempt: 1})
		if previous.Revision != second {
			t.Errorf("revision before the change: want %s, got %v", second, previous)
		}
		lagging.RecordAnswer(gw, third, third)
		after(time.Hour)
		check("A replica that answered from the requested revision does not resync", &written{Revision: third, Attempt: 1})

		// Delete the last route.
		apply(t, s, index.Change{Object: route(), Deleted: true})
		after(time.Millisecond)
		check("A Gateway without such a route has no TailscaleRevision", nil)
		apply(t, lag, index.Change{Object: route(), Deleted: true})
		after(time.Hour)
		check("The lagging replica does not create the TailscaleRevision again", nil)

		stop()
		for _, c := range []chan error{done, lagDone} {
			if err := <-c; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestStartAndEnd checks that a replica resyncs the Gateway when it starts, because the answers
// of earlier processes are unknown, and when it stops, because another replica answers next.
func TestStartAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := index.NewStore()
		apply(t, s, index.Change{Object: admits()}, index.Change{Object: route()}, index.Change{Object: services(5)})
		digest := s.Snapshot().GatewayDigest(gw)
		api := reconciletest.New(t, &v1alpha1.TailscaleRevision{}, &v1alpha1.TailscaleRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: gw.Namespace, Name: gw.Name},
			Spec: v1alpha1.TailscaleRevisionSpec{
				TargetRefs: []gwapiv1.LocalPolicyTargetReference{{Group: gwapiv1.GroupName, Kind: "Gateway", Name: "gw"}},
				Revision:   digest, Attempt: 7,
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		tr := New(api, s, logging.NewNopLogger())
		observe(ctx, t, tr, api)
		done := make(chan error, 1)
		go func() { done <- tr.Run(ctx, api) }()
		after(time.Hour)
		if diff := cmp.Diff(&written{Revision: digest, Attempt: 8}, get(t, api)); diff != "" {
			t.Errorf("after the start: -want, +got:\n%s", diff)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := tr.HandOver(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(&written{Revision: digest, Attempt: 9}, get(t, api)); diff != "" {
			t.Errorf("after HandOver: -want, +got:\n%s", diff)
		}
	})
}

// observe passes the existing TailscaleRevision to the controller, as an informer does.
func observe(ctx context.Context, t *testing.T, tr *Controller, api *reconciletest.API) {
	t.Helper()
	r := &v1alpha1.TailscaleRevision{}
	if err := api.Get(ctx, gw, r); err != nil {
		t.Fatal(err)
	}
	tr.reconciler.Observe(gw, reconcile.NewObserved(r, state(r)))
}

func TestState(t *testing.T) {
	named := func(name string) *v1alpha1.TailscaleRevision {
		return &v1alpha1.TailscaleRevision{ObjectMeta: metav1.ObjectMeta{Name: "gw"}, Spec: v1alpha1.TailscaleRevisionSpec{
			TargetRefs: []gwapiv1.LocalPolicyTargetReference{{Name: gwapiv1.ObjectName(name)}}, Revision: "0123456789abcdef",
		}}
	}
	cases := map[string]struct {
		reason string
		object *v1alpha1.TailscaleRevision
		want   string
	}{
		"Ours":   {reason: "The state is the revision.", object: named("gw"), want: "0123456789abcdef"},
		"Others": {reason: "The extension does not manage a TailscaleRevision of another Gateway.", object: named("other")},
		"Empty":  {reason: "The extension does not manage a TailscaleRevision without a Gateway.", object: &v1alpha1.TailscaleRevision{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := state(tc.object); got != tc.want {
				t.Errorf("\n%s\nstate(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
