// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

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
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// reportedRoute returns the report of a route with a port, hostnames and a creation time.
func reportedRoute(namespace, name string, hour int, hosts ...string) tailnetv1alpha1.ReportedRoute {
	at := metav1.Date(2026, 11, 1+hour/24, hour%24, 0, 0, 0, time.UTC)
	return tailnetv1alpha1.ReportedRoute{Kind: "HTTPRoute", Namespace: namespace, Name: name, Created: &at, Ports: []int32{80}, Hostnames: hosts}
}

// crowd returns the facts of a TailscaleGateway whose existing services are those of routes in many
// namespaces.
func crowd(existing int) facts {
	f := facts{observed: observed{services: map[string]*gatewayv1alpha1.TailscaleServices{}}, report: &tailnetv1alpha1.GatewayReportSpec{PoliciesKnown: true}}
	f.owner.Namespace, f.owner.Name = "edge", "web"
	f.spec = gatewayv1alpha1.TailscaleGatewaySpec{RouteSharing: gatewayv1alpha1.RouteSharingRoute, Tailnets: []gatewayv1alpha1.GatewayTailnet{{Name: "corp"}}}
	g := &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "web"}}
	g.Spec.Listeners = []gwapiv1.Listener{{Name: "http", Port: 80, Protocol: gwapiv1.HTTPProtocolType}}
	s := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "envoy"}}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http-80", Port: 80, Protocol: corev1.ProtocolTCP}}
	f.gateway = &gateway{ref: gatewayv1alpha1.GatewayRef{Namespace: "edge", Name: "web"}, gateway: g, services: []corev1.Service{s}}
	for i := range existing {
		r := reportedRoute(fmt.Sprint("team", i%50), fmt.Sprintf("m%04d", i), 20)
		f.report.Routes = append(f.report.Routes, r)
		f.observed.services[prefixService+"corp/"+routeTarget(r)] = &gatewayv1alpha1.TailscaleServices{}
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
			f.report.Routes = append(f.report.Routes, tc.routes...)
			var got []string
			for _, v := range newGatewayPlan(f).services {
				if v.omitted != "" {
					got = append(got, v.target)
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
	f.report.Routes = append(f.report.Routes, reportedRoute("a", "a", 1))
	gp := newGatewayPlan(f)
	for _, v := range gp.services {
		if v.omitted != "" && v.omitted != fullServices() {
			t.Errorf("%s: %s", v.target, v.omitted)
		}
	}
	if c := servicesReady(gp); c.Status == compose.True {
		t.Errorf("ServicesReady: want not True, got %+v", c)
	}
}

func TestLimitHostnames(t *testing.T) {
	f := crowd(0)
	previous := zone.Zone{}
	for i := range maxDomains {
		r := reportedRoute(fmt.Sprint("team", i%50), fmt.Sprintf("m%04d", i), 20, fmt.Sprintf("m%04d.example.com", i))
		f.report.Routes = append(f.report.Routes, r)
		previous.Domains = append(previous.Domains, zone.Domain{Name: r.Hostnames[0]})
		previous.Names = append(previous.Names, zone.Name{Name: r.Hostnames[0]})
	}
	f.report.Routes = append(f.report.Routes, reportedRoute("a", "a", 1, "a.example.com"))
	gp := outline(f)
	v := &tailnetZone{tailnet: gp.tailnets[0], config: &corev1.ConfigMap{}}
	v.tailnet.SplitDNS = &gatewayv1alpha1.GatewaySplitDNS{}
	encoded, err := previous.Encode()
	if err != nil {
		t.Fatal(err)
	}
	v.config.Data = map[string]string{zone.ConfigMapKey: encoded}
	domains := []string{"a.example.com"}
	for _, d := range previous.Domains {
		domains = append(domains, d.Name)
	}
	got := v.limit(domains, gp.hostnameRequests())
	if diff := cmp.Diff(domains[1:], got); diff != "" || !v.full {
		t.Errorf("A new hostname removes none that resolves, and is reported: full %t, -want, +got:\n%s", v.full, diff)
	}
}
