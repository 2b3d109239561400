// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
)

// route returns the report of a route that was created at an hour.
func route(kind, name string, hour int, backends ...tailnetv1alpha1.ReportedBackend) tailnetv1alpha1.ReportedRoute {
	at := metav1.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC)
	return tailnetv1alpha1.ReportedRoute{Kind: kind, Namespace: "shop", Name: name, Created: &at, Hostnames: []string{"Shop.example.com"}, Backends: backends}
}

func backend(name string, port int32, policy string) tailnetv1alpha1.ReportedBackend {
	return tailnetv1alpha1.ReportedBackend{Namespace: "shop", Name: name, Port: port, ProtectedBy: policy}
}

func TestBackends(t *testing.T) {
	cases := map[string]struct {
		reason   string
		routes   []tailnetv1alpha1.ReportedRoute
		want     []tailnetv1alpha1.ReportedBackend
		policies map[string]string
	}{
		"Shared": {
			reason: "A port that several routes use is one backend, and protected if one of them says so.",
			routes: []tailnetv1alpha1.ReportedRoute{
				route("HTTPRoute", "a", 1, backend("cart", 80, ""), backend("cart", 443, "")),
				route("HTTPRoute", "b", 2, backend("cart", 80, "SecurityPolicy shop/login")),
			},
			want:     []tailnetv1alpha1.ReportedBackend{backend("cart", 80, ""), backend("cart", 443, "")},
			policies: map[string]string{"Service/shop/cart": "SecurityPolicy shop/login"},
		},
		"UDP": {
			reason:   "No Tailscale Service leads to a backend of UDP.",
			routes:   []tailnetv1alpha1.ReportedRoute{route(KindUDPRoute, "a", 1, backend("dns", 53, ""))},
			policies: map[string]string{"Service/shop/dns": ""},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Backends(tc.routes)); diff != "" {
				t.Errorf("\n%s\nBackends(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.policies, Policies(tc.routes)); diff != "" {
				t.Errorf("\n%s\nPolicies(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	older, newer := route("HTTPRoute", "older", 1, backend("cart", 80, "")), route("HTTPRoute", "newer", 2, backend("cart", 80, ""))
	first := quota.Request{Owner: "shop", UID: "HTTPRoute/shop/older", Created: older.Created.Time}
	second := quota.Request{Owner: "shop", UID: "HTTPRoute/shop/newer", Created: newer.Created.Time}
	cases := map[string]struct {
		reason    string
		report    *tailnetv1alpha1.GatewayReportSpec
		services  map[string]quota.Request
		hostnames map[string]quota.Request
	}{
		"Oldest": {
			reason:    "A backend and a hostname are of the oldest of their routes.",
			report:    &tailnetv1alpha1.GatewayReportSpec{Routes: []tailnetv1alpha1.ReportedRoute{newer, older}},
			services:  map[string]quota.Request{"HTTPRoute/shop/older": first, "HTTPRoute/shop/newer": second, "Service/shop/cart": first},
			hostnames: map[string]quota.Request{"shop.example.com": first},
		},
		"NoReport": {
			reason:   "Without a report nothing is asked for.",
			services: map[string]quota.Request{}, hostnames: map[string]quota.Request{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.services, ServiceRequests(tc.report)); diff != "" {
				t.Errorf("\n%s\nServiceRequests(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.hostnames, HostnameRequests(tc.report)); diff != "" {
				t.Errorf("\n%s\nHostnameRequests(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
