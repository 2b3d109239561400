// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// reportWith returns a report with routes.
func reportWith(routes ...tailnetv1alpha1.ReportedRoute) earlier {
	return earlierOf(&tailnetv1alpha1.GatewayReport{Spec: tailnetv1alpha1.GatewayReportSpec{Routes: routes}})
}

// heavy returns reports of routes whose size is about a thousandth of a report, times a factor.
func heavy(prefix string, n, factor int) []tailnetv1alpha1.ReportedRoute {
	var out []tailnetv1alpha1.ReportedRoute
	for i := range n {
		r := tailnetv1alpha1.ReportedRoute{Kind: routes.KindHTTPRoute, Namespace: fmt.Sprint(prefix, i%40), Name: fmt.Sprintf("%s%04d", prefix, i), Ports: []int32{80}}
		for h := range factor * 5 {
			r.Hostnames = append(r.Hostnames, fmt.Sprintf("h%d.%s.example.com", h, strings.Repeat("n", 200)))
		}
		out = append(out, r)
	}
	return out
}

// TestReportKeeps verifies that no report loses a route that it has, or a part of one, because of a
// newcomer or because another route grows.
func TestReportKeeps(t *testing.T) {
	served := heavy("m", 1110, 1)
	grown := heavy("m", 1110, 1)
	grown[0] = heavy("m", 1, 12)[0]
	cases := map[string]struct {
		reason  string
		routes  []tailnetv1alpha1.ReportedRoute
		want    []tailnetv1alpha1.ReportedRoute
		omitted tailnetv1alpha1.ReportedOmissions
	}{
		"Same":     {reason: "An earlier report fits.", routes: served, want: served},
		"Newcomer": {reason: "A newcomer that is first by name removes no other.", routes: append(heavy("a", 1, 12), served...), want: served, omitted: tailnetv1alpha1.ReportedOmissions{Routes: 1}},
		"Growth":   {reason: "A route that grows too much keeps what it had.", routes: grown, want: served, omitted: tailnetv1alpha1.ReportedOmissions{TruncatedRoutes: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Content{routes: tc.routes, previous: reportWith(served...)}.Spec(nil)
			if diff := cmp.Diff(tc.want, got.Routes); diff != "" {
				t.Errorf("\n%s\nRoutes: -want, +got:\n%.2000s", tc.reason, diff)
			}
			var omitted tailnetv1alpha1.ReportedOmissions
			if got.Omitted != nil {
				omitted = *got.Omitted
			}
			if diff := cmp.Diff(tc.omitted, omitted); diff != "" {
				t.Errorf("\n%s\nOmitted: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReportKeepsRoutes verifies that a newcomer takes neither the place of a route at the limit,
// nor that of a route's hostname.
func TestReportKeepsRoutes(t *testing.T) {
	anyBackend := func(ir.RouteKey, ir.BackendRef) bool { return true }
	var served []*routes.Route
	for i := range maxRoutes {
		served = append(served, wide(fmt.Sprintf("m%04d", i), 1, 1, 1))
	}
	first, _ := reportRoutes(served, anyBackend, true, reportWith())
	all := reportWith()
	for _, r := range served {
		v := tailnetv1alpha1.ReportedRoute{Kind: r.Kind, Namespace: r.Key.Namespace, Name: r.Key.Name}
		all.routes[nameOfRoute(v)] = v
	}
	got, _ := reportRoutes(append([]*routes.Route{wide("a", 1, 1, 1)}, served...), anyBackend, true, all)
	if len(first) == maxRoutes || len(got) != maxRoutes || got[0].Name != "m0000" {
		t.Errorf("%d of one namespace's new routes are reported, and then %d from %s", len(first), len(got), got[0].Name)
	}
	previous := wide("m", 1, maxHosts, 1)
	reported, _ := reportRoutes([]*routes.Route{previous}, anyBackend, true, reportWith())
	more := wide("m", 1, maxHosts, 1)
	more.Info.Hostnames = append([]string{"a.example.com"}, more.Info.Hostnames...)
	updated, _ := reportRoutes([]*routes.Route{more}, anyBackend, true, reportWith(reported...))
	if diff := cmp.Diff(reported, updated); diff != "" {
		t.Errorf("A new hostname removes none: -want, +got:\n%s", diff)
	}
}
