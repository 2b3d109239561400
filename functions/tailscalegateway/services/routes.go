// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// A summary is what a report says of routes, for all tailnets.
type summary struct {
	// routes are sorted. They are empty unless routes are shared.
	routes []tailnetv1alpha1.ReportedRoute

	// backends are the ports to which routes send requests, and policies those that protect Services,
	// by target. They are empty unless backends are published.
	backends []tailnetv1alpha1.ReportedBackend
	policies map[string]string
}

// read returns what the report says of the routes and backends that are shared.
func read(f Facts) summary {
	var out summary
	sorted := routes.Sorted(f.Report)
	if f.Sharing == gatewayv1alpha1.RouteSharingRoute {
		out.routes = sorted
	}
	if f.publishes() {
		out.backends, out.policies = routes.Backends(sorted), routes.Policies(sorted)
	}
	return out
}

// routeServices returns the services of a tailnet: one for each route if routes are shared, and one
// for each Service behind them if those are published.
func routeServices(f Facts, t *tailnets.Tailnet, s summary) []*Service {
	var out []*Service
	for _, r := range s.routes {
		out = append(out, routeService(f, t, r))
	}
	return append(out, backendServices(f, t, s)...)
}

// routeService returns the service of a route.
func routeService(f Facts, t *tailnets.Tailnet, r tailnetv1alpha1.ReportedRoute) *Service {
	v := &Service{Tailnet: t, Target: routes.Target(r)}
	v.parts = []string{"route-" + r.Name, r.Namespace}
	if r.Kind == routes.KindUDPRoute {
		v.omitted = "A Tailscale Service has no ports of UDP; reach the route's backends by proxies with Kernel networking"
		return v
	}
	answer(f, v, slices.DeleteFunc(slices.Clone(t.Shared), func(l tailnets.Listener) bool { return !slices.Contains(r.Ports, l.Port) }))
	if len(v.Backends) == 0 && v.mistake == "" {
		v.lost = !slices.ContainsFunc(f.Gateway.Ports(), func(p int32) bool { return slices.Contains(r.Ports, p) })
		v.omitted = "None of its listeners is shared with the tailnet"
	}
	return v
}

// backendServices returns the services of the Services behind routes, by namespace and name.
// Each has the ports to which any route sends requests.
func backendServices(f Facts, t *tailnets.Tailnet, s summary) []*Service {
	var out []*Service
	for _, b := range s.backends {
		target := routes.BackendTarget(b)
		if len(out) == 0 || out[len(out)-1].Target != target {
			out = append(out, &Service{Tailnet: t, Target: target, parts: []string{b.Name, b.Namespace}, omitted: ungranted(f, b)})
		}
		v := out[len(out)-1]
		v.Backends = append(v.Backends, published(f, b))
	}
	for _, v := range out {
		v.limit()
		if v.omitted = cmp.Or(unpublished(f, s.policies[v.Target]), v.omitted); v.omitted != "" {
			v.mistake = ""
		}
	}
	return out
}

// unpublished returns why a Service has no separate Tailscale Service, given the policy that
// protects it, if any. It is empty if the Service may have one.
func unpublished(f Facts, policy string) string {
	switch {
	case f.Publish == gatewayv1alpha1.PublishBackendsAll:
		return ""
	case policy != "":
		return policy + " is for requests by the Gateway, and does not apply to requests to a separate Tailscale Service; set publishBackends: All to publish the backend anyway"
	case !f.Report.PoliciesKnown:
		return "Whether a policy protects it is not known; " + string(meta.TypeServicesReady) + " says why"
	}
	return ""
}

// ungranted returns that no ReferenceGrant lets the proxies connect to a Service of another namespace.
// The function of the composed TailscaleServices would refuse the Service. It is empty for one that
// they may connect to.
func ungranted(f Facts, b tailnetv1alpha1.ReportedBackend) string {
	referrer := refgrant.TailscaleServices(f.Owner.Namespace)
	if f.Grants.PermitService(referrer, types.NamespacedName{Namespace: b.Namespace, Name: b.Name}) {
		return ""
	}
	return fmt.Sprintf("No ReferenceGrant in namespace %s permits it. Make one there, from group %s, kind %s, namespace %s, to group \"\", kind Service, name %s",
		b.Namespace, referrer.Group, referrer.Kind, referrer.Namespace, b.Name)
}

// published returns a backend of a route as a backend of a Tailscale Service. It sets the protocol
// like listenerBackend does.
func published(f Facts, b tailnetv1alpha1.ReportedBackend) gatewayv1alpha1.Backend {
	out := gatewayv1alpha1.Backend{
		Kind: gatewayv1alpha1.BackendKindService, Name: b.Name,
		Port: b.Port, VIPPort: ptr.To(b.Port), Protocol: gatewayv1alpha1.BackendProtocolTCP,
	}
	if b.Namespace != f.Owner.Namespace {
		out.Kind, out.Host = gatewayv1alpha1.BackendKindExternal, address.ServiceHost(b.Namespace, b.Name)
	}
	return out
}

// listenerBackend returns the backend of a Tailscale Service that leads to a listener. It names the host:
// otherwise the service would require the TailscaleGateway, whose status changes with each service,
// and which does not exist in a step. It also sets the protocol to the default, because a default
// that the API server sets in an atomic list makes each apply a write.
func listenerBackend(f Facts, l tailnets.Listener) gatewayv1alpha1.Backend {
	b := gatewayv1alpha1.Backend{
		Kind: gatewayv1alpha1.BackendKindGateway, Name: names.Child(f.Owner.Name),
		Host: address.ServiceHost(f.Gateway.Found.Service.Namespace, f.Gateway.Found.Service.Name),
		Port: l.Port, VIPPort: ptr.To(l.VIPPort), Protocol: gatewayv1alpha1.BackendProtocolTCP,
	}
	switch l.Identity {
	case gatewayv1alpha1.ClientIdentityProxyProtocol:
		b.ProxyProtocol = gatewayv1alpha1.ProxyProtocolV2
	case gatewayv1alpha1.ClientIdentityHeaders:
		b.Protocol = gatewayv1alpha1.BackendProtocolHTTP
	case gatewayv1alpha1.ClientIdentityNone:
	}
	return b
}
