// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// led has the routes of a test, by TailscaleServices.
type led struct {
	mu     sync.Mutex
	routes map[types.NamespacedName][]ir.RouteKey
}

func (l *led) RoutesTo(wanted func(types.NamespacedName) bool, most int) map[types.NamespacedName][]ir.RouteKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[types.NamespacedName][]ir.RouteKey{}
	for n, routes := range l.routes {
		if wanted == nil || wanted(n) {
			out[n] = routes[:min(len(routes), most)]
		}
	}
	return out
}

// set replaces the routes to TailscaleServices shop/web.
func (l *led) set(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.routes = map[types.NamespacedName][]ir.RouteKey{}
	for _, n := range names {
		web := types.NamespacedName{Namespace: "shop", Name: "web"}
		l.routes[web] = append(l.routes[web], ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "shop", Name: n}})
	}
}

// TestWriterRoutes checks that a report has the routes, also of an object of which nothing is probed.
func TestWriterRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, web())
		d.led.set("first")
		d.start(t)
		defer d.stop()
		routes := func() []string {
			r := &tailnetv1alpha1.HealthReport{}
			if err := d.kube.Get(t.Context(), ObjectOf(keyOf("web", 80)).report(), r); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			return r.Spec.Routes
		}
		for i, names := range [][]string{{"first"}, {"first", "second"}, nil} {
			d.led.set(names...)
			d.w.changes.AddServices([]types.NamespacedName{{Namespace: "shop", Name: "web"}})
			after(warmUp + pause)
			var want []string
			for _, n := range names {
				want = append(want, "HTTPRoute/shop/"+n)
			}
			if diff := cmp.Diff(want, routes()); diff != "" {
				t.Errorf("change %d: -want, +got\n%s", i, diff)
			}
		}
		if n := d.writes(); n != 2 {
			t.Errorf("%d writes, want one for each change, and none for the end", n)
		}
	})
}
