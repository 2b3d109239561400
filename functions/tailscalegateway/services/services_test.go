// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A brief is what a test compares of a service.
type brief struct {
	Target, VIP, Omitted, Mistake string
	Ports                         []int32
	Keep                          bool
}

func briefs(p Plan) []brief {
	var out []brief
	for _, v := range p.Services {
		b := brief{Target: v.Target, VIP: v.vip, Omitted: v.omitted, Mistake: v.mistake, Keep: v.keep}
		for _, backend := range v.Backends {
			b.Ports = append(b.Ports, *backend.VIPPort)
		}
		out = append(out, b)
	}
	return out
}

// existing returns an observed TailscaleServices.
func existing(vip string) *gatewayv1alpha1.TailscaleServices {
	o := &gatewayv1alpha1.TailscaleServices{}
	o.Spec.VIPService.Name = gatewayv1alpha1.ServiceName(vip)
	return o
}

func TestNew(t *testing.T) {
	shop := reportedRoute("shop", "cart", 1)
	shop.Backends = []tailnetv1alpha1.ReportedBackend{{Namespace: "edge", Name: "cart", Port: 8080}}
	far := reportedRoute("edge", "far", 1)
	far.Backends = []tailnetv1alpha1.ReportedBackend{{Namespace: "shop", Name: "cart", Port: 8080}}
	protected := reportedRoute("shop", "cart", 1)
	protected.Backends = []tailnetv1alpha1.ReportedBackend{{Namespace: "edge", Name: "cart", Port: 8080, ProtectedBy: "SecurityPolicy shop/login"}}
	elsewhere := reportedRoute("shop", "cart", 1)
	elsewhere.Ports = []int32{443}
	udp := reportedRoute("shop", "dns", 1)
	udp.Kind = "UDPRoute"
	conflicting := existing("svc:route-cart-shop")
	conflicting.Status.SetConditions(xpv2.Condition{Type: meta.TypeVIPServiceReady, Status: corev1.ConditionFalse, Reason: meta.ReasonNameTaken})

	cases := map[string]struct {
		reason string
		facts  func(*Facts)
		routes []tailnetv1alpha1.ReportedRoute
		want   []brief
	}{
		"Gateway": {
			reason: "The Gateway's own service has the ports of its listeners.",
			facts: func(f *Facts) {
				f.Sharing, f.Publish = gatewayv1alpha1.RouteSharingGateway, gatewayv1alpha1.PublishBackendsNone
			},
			want: []brief{{Target: "Gateway/edge/web", VIP: "svc:web", Ports: []int32{80}}},
		},
		"Route": {
			reason: "A route's service has the listeners of the route.",
			facts:  func(f *Facts) { f.Publish = gatewayv1alpha1.PublishBackendsNone },
			routes: []tailnetv1alpha1.ReportedRoute{shop},
			want:   []brief{{Target: "HTTPRoute/shop/cart", VIP: "svc:route-cart-shop", Ports: []int32{80}}},
		},
		"Elsewhere": {
			reason: "A route of listeners that the tailnet does not reach has no service, nor has one of UDP.",
			facts:  func(f *Facts) { f.Publish = gatewayv1alpha1.PublishBackendsNone },
			routes: []tailnetv1alpha1.ReportedRoute{elsewhere, udp},
			want: []brief{
				{Target: "HTTPRoute/shop/cart", Omitted: "None of its listeners is shared with the tailnet"},
				{Target: "UDPRoute/shop/dns", Omitted: "A Tailscale Service has no ports of UDP; reach the route's backends by proxies with Kernel networking"},
			},
		},
		"Backend": {
			reason: "A Service behind a route is shared with the ports that routes use.",
			facts:  func(f *Facts) { f.Sharing = gatewayv1alpha1.RouteSharingNone },
			routes: []tailnetv1alpha1.ReportedRoute{shop},
			want:   []brief{{Target: "Service/edge/cart", VIP: "svc:cart-edge", Ports: []int32{8080}}},
		},
		"Protected": {
			reason: "One that a policy protects is not, because the policy does not apply there.",
			facts:  func(f *Facts) { f.Sharing = gatewayv1alpha1.RouteSharingNone },
			routes: []tailnetv1alpha1.ReportedRoute{protected},
			want: []brief{{Target: "Service/edge/cart", Ports: []int32{8080},
				Omitted: "SecurityPolicy shop/login is for requests by the Gateway, and does not apply to requests to a separate Tailscale Service; set publishBackends: All to publish the backend anyway"}},
		},
		"ProtectedAll": {
			reason: "The user may publish it anyway.",
			facts: func(f *Facts) {
				f.Sharing, f.Publish = gatewayv1alpha1.RouteSharingNone, gatewayv1alpha1.PublishBackendsAll
			},
			routes: []tailnetv1alpha1.ReportedRoute{protected},
			want:   []brief{{Target: "Service/edge/cart", VIP: "svc:cart-edge", Ports: []int32{8080}}},
		},
		"Ungranted": {
			reason: "One of another namespace needs a ReferenceGrant there.",
			facts:  func(f *Facts) { f.Sharing = gatewayv1alpha1.RouteSharingNone },
			routes: []tailnetv1alpha1.ReportedRoute{far},
			want: []brief{{Target: "Service/shop/cart", Ports: []int32{8080},
				Omitted: "No ReferenceGrant in namespace shop permits it. Make one there, from group gateway.tailscale.com, kind TailscaleServices, namespace edge, to group \"\", kind Service, name cart"}},
		},
		"Unknown": {
			reason: "Without a report existing services of routes stay, and none is added.",
			facts: func(f *Facts) {
				f.Report, f.Observed[PrefixService+"corp/HTTPRoute/shop/cart"] = nil, existing("svc:route-cart-shop")
			},
			want: []brief{{Target: "HTTPRoute/shop/cart", VIP: "svc:route-cart-shop", Keep: true}},
		},
		"Lost": {
			reason: "A service whose listener is gone stays, because its address would be lost.",
			facts: func(f *Facts) {
				f.Publish, f.Observed[PrefixService+"corp/HTTPRoute/shop/cart"] = gatewayv1alpha1.PublishBackendsNone, existing("svc:route-cart-shop")
			},
			routes: []tailnetv1alpha1.ReportedRoute{elsewhere},
			want:   []brief{{Target: "HTTPRoute/shop/cart", VIP: "svc:route-cart-shop", Keep: true}},
		},
		"NameTaken": {
			reason: "A service gets another name if another object of the cluster has its name.",
			facts: func(f *Facts) {
				f.Publish, f.Observed[PrefixService+"corp/HTTPRoute/shop/cart"] = gatewayv1alpha1.PublishBackendsNone, conflicting
			},
			routes: []tailnetv1alpha1.ReportedRoute{shop},
			want:   []brief{{Target: "HTTPRoute/shop/cart", VIP: "svc:route-cart-shop-httproute-edge-web-6df42edb", Ports: []int32{80}}},
		},
		"Ungiven": {
			reason: "A Gateway that may not be shared has no services, not even existing ones.",
			facts: func(f *Facts) {
				f.Gateway.Ungranted, f.Observed[PrefixService+"corp/HTTPRoute/shop/cart"] = "edge", existing("svc:route-cart-shop")
			},
			routes: []tailnetv1alpha1.ReportedRoute{shop},
		},
		"Ambiguous": {
			reason: "While the Gateway is to be chosen, only existing services stay.",
			facts: func(f *Facts) {
				f.Gateway.Choices, f.Gateway.Found, f.Observed[PrefixService+"corp/HTTPRoute/shop/cart"] = []string{"a", "b"}, nil, existing("svc:route-cart-shop")
			},
			routes: []tailnetv1alpha1.ReportedRoute{shop},
			want:   []brief{{Target: "HTTPRoute/shop/cart", VIP: "svc:route-cart-shop", Keep: true}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := crowd(0)
			f.Report.Routes = tc.routes
			tc.facts(&f)
			if diff := cmp.Diff(tc.want, briefs(New(f))); diff != "" {
				t.Errorf("\n%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
