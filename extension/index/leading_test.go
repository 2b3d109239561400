// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// routeAbroad names the TailscaleServices of another namespace, as grant permits.
const routeAbroad = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: abroad, generation: 1}
spec:
  parentRefs: [{name: gw, namespace: infra}]
  rules:
  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, namespace: other, port: 80}]
`

func TestRoutesTo(t *testing.T) {
	web := name("web")
	route := func(n string) ir.RouteKey { return ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name(n)} }
	abroad := types.NamespacedName{Namespace: "other", Name: "web"}
	elsewhere := []string{servicesWeb, serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge}
	many := make([]string, 0, 5)
	for i := range 5 {
		many = append(many, strings.Replace(routeToWeb, "{name: web,", fmt.Sprintf("{name: web-%d,", 4-i), 1))
	}
	type change struct {
		objects []string
		deleted bool

		// notified are the TailscaleServices to which other routes may lead.
		notified []types.NamespacedName
	}
	cases := map[string]struct {
		reason  string
		changes []change
		want    map[types.NamespacedName][]ir.RouteKey
	}{
		"Names": {
			reason:  "A route leads to what it names.",
			changes: []change{{objects: []string{servicesWeb, routeToWeb}, notified: []types.NamespacedName{web}}},
			want:    map[types.NamespacedName][]ir.RouteKey{web: {route("web")}},
		},
		"Gone": {
			reason: "A route that is gone leads nowhere.",
			changes: []change{
				{objects: []string{servicesWeb, routeToWeb}, notified: []types.NamespacedName{web}},
				{objects: []string{routeToWeb}, deleted: true, notified: []types.NamespacedName{web}},
			},
		},
		"Edited": {
			reason: "A change that leaves the backends as they are is none.",
			changes: []change{
				{objects: []string{servicesWeb, routeToWeb}, notified: []types.NamespacedName{web}},
				{objects: []string{strings.Replace(routeToWeb, "  - backendRefs", "  - matches: [{path: {value: /a}}]\n    backendRefs", 1), serviceApp, sliceApp}},
			},
			want: map[types.NamespacedName][]ir.RouteKey{web: {route("web")}},
		},
		"FirstByName": {
			reason:  "Of many routes, the first by name count.",
			changes: []change{{objects: append(many, servicesWeb), notified: []types.NamespacedName{web}}},
			want:    map[types.NamespacedName][]ir.RouteKey{web: {route("web-0"), route("web-1"), route("web-2")}},
		},
		"NotPermitted": {
			reason:  "A route of another namespace leads nowhere without a ReferenceGrant: anybody can write one.",
			changes: []change{{objects: []string{routeAbroad}, notified: []types.NamespacedName{abroad}}},
		},
		"Permitted": {
			reason: "With a ReferenceGrant it leads to what it names.",
			changes: []change{
				{objects: []string{routeAbroad}, notified: []types.NamespacedName{abroad}},
				{objects: []string{grant}, notified: []types.NamespacedName{abroad}},
			},
			want: map[types.NamespacedName][]ir.RouteKey{abroad: {route("abroad")}},
		},
		"FailsOver": {
			reason: "A route to a Service leads to the TailscaleServices by which it fails over.",
			changes: []change{
				{objects: append([]string{routeToService}, elsewhere...)},
				{objects: []string{failoverOf("infra")}, notified: []types.NamespacedName{web}},
			},
			want: map[types.NamespacedName][]ir.RouteKey{web: {plainApp}},
		},
		"NotShared": {
			reason: "Without another cluster it does not fail over.",
			changes: []change{
				{objects: append([]string{routeToService, failoverOf("infra")}, elsewhere...), notified: []types.NamespacedName{web}},
				{objects: []string{attachmentWeb}, deleted: true, notified: []types.NamespacedName{web}},
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := NewStore()
			var notified []types.NamespacedName
			NewRoutes(s).Notify(func(names []types.NamespacedName) { notified = append(notified, names...) })
			for i, c := range tc.changes {
				notified = nil
				apply(t, s, c.deleted, c.objects...)
				slices.SortFunc(notified, ir.CompareNames)
				if diff := cmp.Diff(c.notified, slices.Compact(notified)); diff != "" {
					t.Errorf("\n%s\nnotified of change %d: -want, +got:\n%s", tc.reason, i, diff)
				}
			}
			want := tc.want
			if want == nil {
				want = map[types.NamespacedName][]ir.RouteKey{}
			}
			if diff := cmp.Diff(want, NewRoutes(s).RoutesTo(nil, 3)); diff != "" {
				t.Errorf("\n%s\nRoutesTo(...): -want, +got:\n%s", tc.reason, diff)
			}
			if got := NewRoutes(s).RoutesTo(func(types.NamespacedName) bool { return false }, 3); len(got) > 0 {
				t.Errorf("\n%s\nRoutesTo(...): got %v, want only what is wanted", tc.reason, got)
			}
		})
	}
}
