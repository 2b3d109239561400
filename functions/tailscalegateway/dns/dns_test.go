// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/services"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// tailnet returns a tailnet that lists example.com, and resolves hostnames below domains.
func tailnet(t *testing.T, domains ...gatewayv1alpha1.DomainName) *tailnets.Tailnet {
	t.Helper()
	grant, err := allow.Of(&tailnetv1alpha1.AllowedNamespaces{From: tailnetv1alpha1.NamespacesFromAll, Domains: []tailnetv1alpha1.GrantedDomain{"example.com"}}, nil, "edge", nil)
	if err != nil {
		t.Fatal(err)
	}
	out := &tailnets.Tailnet{Ref: "corp", Verdict: compose.TailnetVerdict{Accepted: true, Grant: grant}, Ingress: &tailnets.Proxies{}}
	out.Name, out.SplitDNS = "corp", &gatewayv1alpha1.GatewaySplitDNS{Domains: domains}
	return out
}

// route returns the report of a route of the namespace shop with hostnames.
func route(name string, hosts ...string) tailnetv1alpha1.ReportedRoute {
	return tailnetv1alpha1.ReportedRoute{Kind: "HTTPRoute", Namespace: "shop", Name: name, Hostnames: hosts}
}

// answering returns the service of a route, with an address.
func answering(t *tailnets.Tailnet, r tailnetv1alpha1.ReportedRoute, address string) *services.Service {
	o := &gatewayv1alpha1.TailscaleServices{}
	o.Status.VIPServiceStatus = &gatewayv1alpha1.ServiceVIPStatus{Addresses: []string{address}}
	return &services.Service{Tailnet: t, Target: routes.Target(r), Observed: o}
}

func TestNew(t *testing.T) {
	shop, wild, foreign := route("shop", "Shop.example.com"), route("wild", "*.example.com"), route("foreign", "github.com")
	addresses := []netip.Addr{netip.MustParseAddr("100.64.0.1")}
	cases := map[string]struct {
		reason  string
		domains []gatewayv1alpha1.DomainName
		route   tailnetv1alpha1.ReportedRoute
		pending bool
		want    Zone
	}{
		"Hostname": {
			reason: "A hostname is a separate domain if the spec names none.", route: shop,
			want: Zone{zone: zone.Zone{
				Domains: []zone.Domain{{Name: "shop.example.com"}}, Names: []zone.Name{{Name: "shop.example.com", Addresses: addresses}},
			}},
		},
		"Pending": {
			reason: "A hostname is not resolved before its service has an address.", route: shop, pending: true,
			want: Zone{waiting: true},
		},
		"Domain": {
			reason: "A domain of the spec covers a wildcard.", domains: []gatewayv1alpha1.DomainName{"example.com"}, route: wild,
			want: Zone{zone: zone.Zone{
				Domains: []zone.Domain{{Name: "example.com"}}, Names: []zone.Name{{Name: "*.example.com", Addresses: addresses}},
			}},
		},
		"Wildcard": {
			reason: "A wildcard without a domain is reported.", route: wild,
			want: Zone{uncovered: []string{"*.example.com"}},
		},
		"Beyond": {
			reason: "The tailnet must list the domain of a hostname, which the author of a route chooses.", route: foreign,
			want: Zone{beyond: &allow.ViolationError{Field: "hostname github.com", Problem: "the tailnet does not list a domain of \"github.com\"; use another, or ask who manages the TailscaleTailnet to add it to spec.allowedNamespaces.domains"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			corp := tailnet(t, tc.domains...)
			v := answering(corp, tc.route, addresses[0].String())
			if tc.pending {
				v.Observed = nil
			}
			p := New(Facts{
				Owner: compose.Owner{Namespace: "edge", Name: "web"}, Gateway: &front.Gateway{Found: &gatewayv1alpha1.GatewayStatus{}},
				Report:   &tailnetv1alpha1.GatewayReportSpec{Routes: []tailnetv1alpha1.ReportedRoute{tc.route}},
				Tailnets: []*tailnets.Tailnet{corp}, Services: []*services.Service{v},
			})
			if diff := cmp.Diff([]*Zone{&tc.want}, p.Zones, cmp.AllowUnexported(Zone{}), cmpopts.IgnoreFields(Zone{}, "Tailnet", "name"), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("\n%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLimitHostnames(t *testing.T) {
	report := &tailnetv1alpha1.GatewayReportSpec{}
	add := func(namespace, name string, hour int) string {
		r := route(name, name+".example.com")
		at := metav1.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC)
		r.Namespace, r.Created = namespace, &at
		report.Routes = append(report.Routes, r)
		return r.Hostnames[0]
	}
	previous := zone.Zone{}
	for i := range maxDomains {
		host := add(fmt.Sprint("team", i%50), fmt.Sprintf("m%04d", i), 20)
		previous.Domains = append(previous.Domains, zone.Domain{Name: host})
		previous.Names = append(previous.Names, zone.Name{Name: host})
	}
	domains := []string{add("a", "a", 1)}
	for _, d := range previous.Domains {
		domains = append(domains, d.Name)
	}
	encoded, err := previous.Encode()
	if err != nil {
		t.Fatal(err)
	}
	v := &Zone{Tailnet: tailnet(t), config: &corev1.ConfigMap{Data: map[string]string{zone.ConfigMapKey: encoded}}}
	got := v.limit(domains, routes.HostnameRequests(report), v.observedZone())
	if diff := cmp.Diff(domains[1:], got); diff != "" || !v.full {
		t.Errorf("A new hostname removes none that resolves, and is reported: full %t, -want, +got:\n%s", v.full, diff)
	}
}

func TestNameservers(t *testing.T) {
	device := func(address string, online bool) gatewayv1alpha1.DeviceStatus {
		return gatewayv1alpha1.DeviceStatus{TailscaleIP: address, Online: online}
	}
	many := []gatewayv1alpha1.DeviceStatus{device("100.64.0.1", false)}
	var online []string
	for i := range maxNameservers {
		online = append(online, fmt.Sprintf("100.64.1.%d", i))
		many = append(many, device(online[i], true))
	}
	cases := map[string]struct {
		reason  string
		devices []gatewayv1alpha1.DeviceStatus
		want    []string
	}{
		"Few":       {reason: "Devices that are offline stay nameservers, because each change is a write.", devices: many[:2], want: []string{"100.64.0.1", "100.64.1.0"}},
		"Many":      {reason: "Online devices come first where there are more than a tailnet asks.", devices: many, want: online},
		"NoAddress": {reason: "A device without an address is omitted.", devices: []gatewayv1alpha1.DeviceStatus{device("", true)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &gatewayv1alpha1.TailscaleEndpoints{}
			o.Spec.Tailnet, o.Status.Devices = "corp", tc.devices
			p := tailnets.New(tailnets.Facts{
				Owner: compose.Owner{Namespace: "edge", Name: "web"}, Sharing: gatewayv1alpha1.RouteSharingRoute,
				Spec:     []gatewayv1alpha1.GatewayTailnet{{Name: "corp"}},
				Gateway:  &front.Gateway{},
				Verdicts: []compose.TailnetVerdict{{Accepted: true}},
				Observed: map[string]*gatewayv1alpha1.TailscaleEndpoints{tailnets.PrefixIngress + "corp": o},
			})
			if diff := cmp.Diff(tc.want, nameservers(p.Tailnets[0].Ingress)); diff != "" {
				t.Errorf("\n%s\nnameservers(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
