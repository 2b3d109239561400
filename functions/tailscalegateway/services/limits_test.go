// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// reportedRoute returns the report of a route with a port and a creation time.
func reportedRoute(namespace, name string, hour int) tailnetv1alpha1.ReportedRoute {
	at := metav1.Date(2026, 11, 1+hour/24, hour%24, 0, 0, 0, time.UTC)
	return tailnetv1alpha1.ReportedRoute{Kind: "HTTPRoute", Namespace: namespace, Name: name, Created: &at, Ports: []int32{80}}
}

// crowd returns the facts of a TailscaleGateway whose existing services are those of routes in many
// namespaces.
func crowd(existing int) Facts {
	g := &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "web"}}
	g.Spec.Listeners = []gwapiv1.Listener{{Name: "http", Port: 80, Protocol: gwapiv1.HTTPProtocolType}}
	s := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "envoy"}}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http-80", Port: 80, Protocol: corev1.ProtocolTCP}}
	gateway := front.New(gatewayv1alpha1.GatewayRef{Namespace: "edge", Name: "web"}, g, []corev1.Service{s}, nil, nil)
	f := Facts{
		Owner: compose.Owner{Namespace: "edge", Name: "web"}, Sharing: gatewayv1alpha1.RouteSharingRoute,
		Gateway: gateway, Report: &tailnetv1alpha1.GatewayReportSpec{PoliciesKnown: true},
		Observed: map[string]*gatewayv1alpha1.TailscaleServices{},
	}
	f.Tailnets = tailnets.New(tailnets.Facts{
		Owner: f.Owner, Spec: []gatewayv1alpha1.GatewayTailnet{{Name: "corp"}}, Sharing: f.Sharing, Gateway: f.Gateway,
		Verdicts: []compose.TailnetVerdict{{Accepted: true}},
	}).Tailnets
	for i := range existing {
		r := reportedRoute(fmt.Sprint("team", i%50), fmt.Sprintf("m%04d", i), 20)
		f.Report.Routes = append(f.Report.Routes, r)
		f.Observed[PrefixService+"corp/"+routes.Target(r)] = &gatewayv1alpha1.TailscaleServices{}
	}
	return f
}

func TestLimitServices(t *testing.T) {
	cases := map[string]struct {
		reason   string
		existing int
		routes   []tailnetv1alpha1.ReportedRoute
		want     []string // The omitted targets.
	}{
		"Newcomer": {reason: "A newcomer removes no service that exists, whatever its name and age are.", existing: maxServices,
			routes: []tailnetv1alpha1.ReportedRoute{reportedRoute("a", "a", 1)}, want: []string{"HTTPRoute/a/a"}},
		"Oldest": {reason: "The oldest newcomer gets the last place.", existing: maxServices - 1,
			routes: []tailnetv1alpha1.ReportedRoute{reportedRoute("edge", "a", 3), reportedRoute("edge", "b", 2)}, want: []string{"HTTPRoute/edge/a", "HTTPRoute/edge/b"}},
		"Share": {reason: "A namespace leaves a quarter of the free places to others.", existing: maxServices - 4,
			routes: []tailnetv1alpha1.ReportedRoute{reportedRoute("a", "a", 4), reportedRoute("a", "b", 3), reportedRoute("a", "c", 2), reportedRoute("a", "d", 1)}, want: []string{"HTTPRoute/a/a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := crowd(tc.existing)
			f.Report.Routes = append(f.Report.Routes, tc.routes...)
			var got []string
			for _, v := range New(f).Services {
				if v.omitted != "" {
					got = append(got, v.Target)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nomitted: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLimitServicesCondition verifies that a service that has no place is reported.
func TestLimitServicesCondition(t *testing.T) {
	f := crowd(maxServices)
	f.Report.Routes = append(f.Report.Routes, reportedRoute("a", "a", 1))
	p := New(f)
	for _, v := range p.Services {
		if v.omitted != "" && v.omitted != fullServices() {
			t.Errorf("%s: %s", v.Target, v.omitted)
		}
	}
	if c := p.Ready(); c.Status == compose.True {
		t.Errorf("ServicesReady: want not True, got %+v", c)
	}
}
