// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// Kinds of services' targets, in addition to those of routes.
const (
	kindGateway = "Gateway"
	kindService = "Service"
)

// anyHost is the host of a generated route without hostnames in a report.
const anyHost = "*"

// kindUDPRoute is the kind of routes to which no Tailscale Service can lead.
const kindUDPRoute = "UDPRoute"

// maxRecorded is the maximum number of routes in a record.
const maxRecorded = 64

// routeServices returns the services of a tailnet: one for each route if routes are shared, and one
// for each Service behind them if those are published.
func routeServices(gp *gatewayPlan, t *tailnet) []*service {
	routes := slices.SortedFunc(slices.Values(gp.report.Routes), func(a, b tailnetv1alpha1.ReportedRoute) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var out []*service
	if gp.sharing() == gatewayv1alpha1.RouteSharingRoute {
		for _, r := range routes {
			out = append(out, routeService(gp, t, r))
		}
	}
	if gp.publishes() {
		out = append(out, backendServices(gp, t, routes)...)
	}
	return out
}

// routeTarget returns the target of a route's service.
func routeTarget(r tailnetv1alpha1.ReportedRoute) string {
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// routeService returns the service of a route.
func routeService(gp *gatewayPlan, t *tailnet, r tailnetv1alpha1.ReportedRoute) *service {
	v := &service{tailnet: t, target: routeTarget(r)}
	v.parts = []string{"route-" + r.Name, r.Namespace}
	if r.Kind == kindUDPRoute {
		v.omitted = "A Tailscale Service has no ports of UDP; reach the route's backends by proxies with Kernel networking"
		return v
	}
	answer(gp, v, slices.DeleteFunc(slices.Clone(t.shared), func(l sharedListener) bool { return !slices.Contains(r.Ports, l.port) }))
	if len(v.backends) == 0 && v.mistake == "" {
		v.lost = !slices.ContainsFunc(gp.gateway.ports(), func(p int32) bool { return slices.Contains(r.Ports, p) })
		v.omitted = "None of its listeners is shared with the tailnet"
	}
	return v
}

// reportedBackends returns the ports to which routes send requests, each once, by namespace, name and
// port of the Service.
func reportedBackends(routes []tailnetv1alpha1.ReportedRoute) []tailnetv1alpha1.ReportedBackend {
	var backends []tailnetv1alpha1.ReportedBackend
	for _, r := range routes {
		if r.Kind == kindUDPRoute {
			continue
		}
		for _, b := range r.Backends {
			b.ProtectedBy = ""
			backends = append(backends, b)
		}
	}
	slices.SortFunc(backends, func(a, b tailnetv1alpha1.ReportedBackend) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(backends)
}

// backendServices returns the services of the Services behind routes, by namespace and name.
// Each has the ports to which any route sends requests.
func backendServices(gp *gatewayPlan, t *tailnet, routes []tailnetv1alpha1.ReportedRoute) []*service {
	var out []*service
	for _, b := range reportedBackends(routes) {
		target := backendTarget(b)
		if len(out) == 0 || out[len(out)-1].target != target {
			out = append(out, &service{tailnet: t, target: target, parts: []string{b.Name, b.Namespace}, omitted: ungranted(gp, b)})
		}
		v := out[len(out)-1]
		v.backends = append(v.backends, published(gp, b))
	}
	policies := protectingPolicies(routes)
	for _, v := range out {
		v.limit()
		if v.omitted = cmp.Or(unpublished(gp, policies[v.target]), v.omitted); v.omitted != "" {
			v.mistake = ""
		}
	}
	return out
}

// protectingPolicies returns the policies that protect Services, by the target of the Service's
// Tailscale Service.
func protectingPolicies(routes []tailnetv1alpha1.ReportedRoute) map[string]string {
	out := map[string]string{}
	for _, r := range routes {
		for _, b := range r.Backends {
			target := backendTarget(b)
			out[target] = cmp.Or(out[target], b.ProtectedBy)
		}
	}
	return out
}

// unpublished returns why a Service has no separate Tailscale Service, given the policy that
// protects it, if any. It is empty if the Service may have one.
func unpublished(gp *gatewayPlan, policy string) string {
	switch {
	case gp.spec.PublishBackends == gatewayv1alpha1.PublishBackendsAll:
		return ""
	case policy != "":
		return policy + " is for requests by the Gateway, and does not apply to requests to a separate Tailscale Service; set publishBackends: All to publish the backend anyway"
	case !gp.report.PoliciesKnown:
		return "Whether a policy protects it is not known; " + string(meta.TypeServicesReady) + " says why"
	}
	return ""
}

// ungranted returns that no ReferenceGrant lets the proxies connect to a Service of another namespace.
// The function of the composed TailscaleServices would refuse the Service. It is empty for one that
// they may connect to.
func ungranted(gp *gatewayPlan, b tailnetv1alpha1.ReportedBackend) string {
	referrer := refgrant.TailscaleServices(gp.owner.Namespace)
	if gp.grants.PermitService(referrer, types.NamespacedName{Namespace: b.Namespace, Name: b.Name}) {
		return ""
	}
	return fmt.Sprintf("No ReferenceGrant in namespace %s permits it. Make one there, from group %s, kind %s, namespace %s, to group \"\", kind Service, name %s",
		b.Namespace, referrer.Group, referrer.Kind, referrer.Namespace, b.Name)
}

// hidesAll reports whether backends are omitted because the policies that protect them are unknown.
func (gp *gatewayPlan) hidesAll() bool {
	return gp.publishes() && gp.spec.PublishBackends != gatewayv1alpha1.PublishBackendsAll && gp.knowsRoutes() && !gp.report.PoliciesKnown &&
		slices.ContainsFunc(gp.services, func(v *service) bool { return v.kind() == strings.ToLower(kindService) })
}

// recordedRoutes returns the routes that lead to a service, for the cluster's record of a shared
// one. A service that is not shared has no record, which saves a write for each route.
func recordedRoutes(gp *gatewayPlan, v *service) []string {
	if v.tailnet.VIPService.Sharing != gatewayv1alpha1.SharingShared {
		return nil
	}
	if gp.report == nil {
		if v.observed == nil {
			return nil
		}
		return v.observed.Spec.VIPService.Routes
	}
	var out, previous []string
	for _, r := range gp.report.Routes {
		if r.Kind != kindUDPRoute && v.answersFor(r) {
			out = append(out, routeTarget(r))
		}
	}
	if v.observed != nil {
		previous = v.observed.Spec.VIPService.Routes
	}
	slices.Sort(out)
	out, _ = quota.Keep(maxRecorded, out, previous)
	return out
}

// answersFor reports whether requests to a service reach a route, or its backend directly.
func (v *service) answersFor(r tailnetv1alpha1.ReportedRoute) bool {
	switch {
	case v.isGateway():
		return slices.ContainsFunc(v.tailnet.shared, func(l sharedListener) bool { return slices.Contains(r.Ports, l.port) })
	case v.kind() == strings.ToLower(kindService):
		return slices.ContainsFunc(r.Backends, func(b tailnetv1alpha1.ReportedBackend) bool { return backendTarget(b) == v.target })
	}
	return routeTarget(r) == v.target
}

// backendTarget returns the target of a backend's service.
func backendTarget(b tailnetv1alpha1.ReportedBackend) string {
	return kindService + "/" + b.Namespace + "/" + b.Name
}

// published returns a backend of a route as a backend of a Tailscale Service. It sets the protocol
// like backend does.
func published(gp *gatewayPlan, b tailnetv1alpha1.ReportedBackend) gatewayv1alpha1.Backend {
	out := gatewayv1alpha1.Backend{
		Kind: gatewayv1alpha1.BackendKindService, Name: b.Name,
		Port: b.Port, VIPPort: ptr.To(b.Port), Protocol: gatewayv1alpha1.BackendProtocolTCP,
	}
	if b.Namespace != gp.owner.Namespace {
		out.Kind, out.Host = gatewayv1alpha1.BackendKindExternal, serviceHost(b.Namespace, b.Name)
	}
	return out
}
