// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package placeholder

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile/reconciletest"
)

var name = types.NamespacedName{Namespace: "shop", Name: "tailscale-placeholder-infra-gw"}

func ref(kind, namespace, name string) gwapiv1.BackendRef {
	out := gwapiv1.BackendRef{BackendObjectReference: gwapiv1.BackendObjectReference{
		Group: ptr.To[gwapiv1.Group](v1alpha1.Group), Kind: ptr.To(gwapiv1.Kind(kind)), Name: gwapiv1.ObjectName(name), Port: ptr.To[int32](5432),
	}}
	if namespace != "" {
		out.Namespace = ptr.To(gwapiv1.Namespace(namespace))
	}
	return out
}

func tcp(route, gateway string, refs ...gwapiv1.BackendRef) *gwapiv1.TCPRoute {
	return &gwapiv1.TCPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: route},
		Spec: gwapiv1.TCPRouteSpec{
			CommonRouteSpec: gwapiv1.CommonRouteSpec{ParentRefs: []gwapiv1.ParentReference{{Namespace: ptr.To[gwapiv1.Namespace]("infra"), Name: gwapiv1.ObjectName(gateway)}}},
			Rules:           []gwapiv1.TCPRouteRule{{BackendRefs: refs}},
		},
	}
}

func http() *gwapiv1.HTTPRoute {
	return &gwapiv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: gwapiv1.HTTPRouteSpec{
			CommonRouteSpec: gwapiv1.CommonRouteSpec{ParentRefs: []gwapiv1.ParentReference{{Name: "gw"}}},
			Rules:           []gwapiv1.HTTPRouteRule{{BackendRefs: []gwapiv1.HTTPBackendRef{{BackendRef: ref("TailscaleServices", "", "web")}}}},
		},
	}
}

func storeOf(t *testing.T, objects ...client.Object) *index.Store {
	t.Helper()
	s := index.NewStore()
	for _, o := range objects {
		if err := s.Apply(index.Change{Object: o}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestWanted(t *testing.T) {
	many := make([]gwapiv1.BackendRef, 0, maxRules*maxBackends+1)
	names := make([]string, 0, cap(many))
	for i := range cap(many) {
		n := fmt.Sprintf("db%03d", i)
		many = append(many, ref("TailscaleServices", "", n))
		names = append(names, "TailscaleServices/"+n)
	}
	cases := map[string]struct {
		reason string
		routes []client.Object
		want   map[types.NamespacedName]string
	}{
		"None": {
			reason: "An HTTPRoute needs no placeholder route.",
			routes: []client.Object{http()},
			want:   map[types.NamespacedName]string{},
		},
		"Several": {
			reason: "Routes to one Gateway share a placeholder route with one reference to each object. Routes to another Gateway have another placeholder route.",
			routes: []client.Object{
				tcp("a", "gw", ref("TailscaleServices", "", "db"), ref("TailscaleEndpoints", "", "edge")),
				tcp("b", "gw", ref("TailscaleServices", "", "db"), ref("TailscaleServices", "", "cache")),
				tcp("c", "other", ref("TailscaleServices", "", "db")),
			},
			want: map[types.NamespacedName]string{
				name: "infra/gw TailscaleEndpoints/edge TailscaleServices/cache TailscaleServices/db",
				{Namespace: "shop", Name: "tailscale-placeholder-infra-other"}: "infra/other TailscaleServices/db",
			},
		},
		"Elsewhere": {
			reason: "A placeholder route has no references to other namespaces, which Envoy Gateway refuses anyway.",
			routes: []client.Object{tcp("a", "gw", ref("TailscaleServices", "other", "db"))},
			want:   map[types.NamespacedName]string{},
		},
		"Many": {
			reason: "References that exceed the limits of one route are in another.",
			routes: []client.Object{tcp("a", "gw", many...)},
			want: map[types.NamespacedName]string{
				name: "infra/gw " + strings.Join(names[:256], " "),
				{Namespace: "shop", Name: "tailscale-placeholder-infra-gw-1"}: "infra/gw " + names[256],
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := desired(storeOf(t, tc.routes...).Snapshot())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ndesired(...): -want, +got:\n%s", tc.reason, diff)
			}
			for n, s := range got {
				u, err := build(n, s)
				if err != nil {
					t.Fatal(err)
				}
				r := &gwapiv1.HTTPRoute{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
					t.Fatal(err)
				}
				if len(r.Spec.Rules) > maxRules {
					t.Errorf("\n%s\n%s has %d rules", tc.reason, n, len(r.Spec.Rules))
				}
				if diff := cmp.Diff(s, state(r)); diff != "" {
					t.Errorf("\n%s\nstate of the built route: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestController checks that a placeholder route is created with the first route that needs it,
// restored after a change, and deleted with the last route.
func TestController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := reconciletest.New(t, &gwapiv1.HTTPRoute{}, http())
		s := storeOf(t, http(), tcp("a", "gw", ref("TailscaleServices", "", "db")))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- New(api, s, logging.NewNopLogger()).Run(ctx, api) }()

		check := func(reason, want string) {
			t.Helper()
			<-time.After(time.Minute)
			synctest.Wait()
			r := &gwapiv1.HTTPRoute{}
			got := ""
			if err := api.Get(ctx, name, r); err == nil {
				got = state(r)
			} else if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", reason, diff)
			}
		}
		check("A TCPRoute has a placeholder route", "infra/gw TailscaleServices/db")

		r := &gwapiv1.HTTPRoute{}
		if err := api.Get(ctx, name, r); err != nil {
			t.Fatal(err)
		}
		r.Spec.ParentRefs[0].SectionName = nil
		if err := api.Update(ctx, r); err != nil {
			t.Fatal(err)
		}
		if err := api.Notify(ctx, name); err != nil {
			t.Fatal(err)
		}
		check("A placeholder route that another client attached to listeners is restored", "infra/gw TailscaleServices/db")

		if err := s.Apply(index.Change{Object: tcp("a", "gw"), Deleted: true}); err != nil {
			t.Fatal(err)
		}
		check("The placeholder route is deleted with the last route", "")
		if err := api.Get(ctx, client.ObjectKeyFromObject(http()), r); err != nil {
			t.Errorf("a route that is no placeholder route: %v", err)
		}
		if got := api.Writes(); got != 3 {
			t.Errorf("want 3 writes, got %d", got)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
