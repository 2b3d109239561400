// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// published returns the endpoint names that the TailscaleGateway's own Tailscale Services have
// when their tailnet is searched. A route to one of them would create a routing loop.
func (inputs Input) published(tailnet string) map[string]bool {
	out := map[string]bool{}
	for _, s := range inputs.Services {
		if s.Labels[meta.LabelTailnet] == tailnet {
			out[names.ServiceEndpoint(string(s.Spec.VIPService.Name))] = true
		}
	}
	return out
}

// egress returns the routes to the endpoints that were discovered in a tailnet, without routing
// loops.
func egress(inputs Input, t gatewayv1alpha1.GatewayTailnet, g *gatewayv1alpha1.EgressRoutes, endpoints []*gatewayv1alpha1.TailscaleEndpoints, exclude exclusions) []*Desired {
	found := map[string]*Desired{}
	searched, own := len(endpoints) > 0, map[string]bool{}
	for _, e := range endpoints {
		maps.Copy(own, inputs.published(e.TailnetName()))
		searched = searched && e.Status.GetCondition(meta.TypeDiscoverySuccessful).Status == corev1.ConditionTrue
		targets := map[string]string{}
		for _, s := range e.Status.EgressTargets {
			targets[s.Name] = s.Service
		}
		for _, d := range e.Status.DiscoveredEndpoints {
			if own[d.Name] || exclude.isSelected(d) {
				continue
			}
			w := discovered(inputs, t, g, d, domain(endpoints))
			if gateway, ok := exclude.looping[DNSName(w.fqdn)]; ok {
				w.fail(tailnetv1alpha1.GeneratedRouteRefused, "%s", loopMessage(gateway, inputs.Object.GatewayName()))
			}
			service := targets[d.Name+"/"+strconv.Itoa(int(t.ServiceDiscovery.Port))]
			if !w.setBackend(inputs.Object.Namespace, service) {
				w.fail(tailnetv1alpha1.GeneratedRoutePending, "Waiting for proxies to carry traffic to it")
			}
			if w.TLS && w.fqdn == "" {
				w.fail(tailnetv1alpha1.GeneratedRoutePending, "Waiting for its DNS name in the tailnet, which its certificate must match")
			}
			// If several TailscaleEndpoints have discovered it, the first with a usable Service
			// counts.
			if previous := found[d.Name]; previous == nil || previous.State != "" && w.State == "" {
				found[d.Name] = w
			}
		}
	}
	// A target is gone if a successful search did not find it. A target that was found and has
	// no Service at the port yet is not gone.
	for _, o := range inputs.Generated {
		w := retainedRoute(inputs, t, g, o, domain(endpoints))
		if w == nil || own[w.endpoint] || exclude.isSelected(endpointOf(o)) {
			continue
		}
		if current := found[w.endpoint]; current == nil && !searched || current != nil && current.State == tailnetv1alpha1.GeneratedRoutePending {
			found[w.endpoint] = w
		}
	}
	out := make([]*Desired, 0, len(found))
	for _, w := range found {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *Desired) int { return cmp.Compare(a.endpoint, b.endpoint) })
	return out
}

// discovered returns the route to a service or a device.
func discovered(inputs Input, t gatewayv1alpha1.GatewayTailnet, g *gatewayv1alpha1.EgressRoutes, d gatewayv1alpha1.DiscoveredEndpoint, domain string) *Desired {
	service, _ := nameAndKind(d)
	w := &Desired{
		ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{
			Kind:      KindHTTPRoute,
			Namespace: inputs.Object.Namespace,
			Name:      names.Child(inputs.Object.Name, t.Name, directionLabel(tailnetv1alpha1.DirectionEgress), d.Name),
			Tailnet:   t.Name, Direction: tailnetv1alpha1.DirectionEgress, Service: service,
		},
		target:   discoveredIn(d, t.Name),
		protocol: gwapiv1.ProtocolType(cmp.Or(g.Protocol, gatewayv1alpha1.EndpointProtocolHTTP)),
		endpoint: d.Name,
		device:   d.Source != string(tailnetv1alpha1.DiscoverServices),
		fqdn:     strings.TrimSuffix(d.TailscaleFQDN, "."),
		TLS:      t.ServiceDiscovery.Protocol == gatewayv1alpha1.EndpointProtocolHTTPS,
	}
	w.place(variables{service: service, tailnet: t.Name, namespace: inputs.Object.Namespace, domain: domain}, g.HostPattern, g.PathPrefix)
	return w
}

// retainedRoute returns the desired route for an existing route. It returns nil if the route
// does not belong to the tailnet.
func retainedRoute(inputs Input, t gatewayv1alpha1.GatewayTailnet, g *gatewayv1alpha1.EgressRoutes, o client.Object, domain string) *Desired {
	r, ok := o.(*gwapiv1.HTTPRoute)
	if !ok || r.Labels[meta.LabelGenerated] != directionLabel(tailnetv1alpha1.DirectionEgress) || r.Labels[meta.LabelGatewayTailnet] != t.Name {
		return nil
	}
	w := discovered(inputs, t, g, endpointOf(r), domain)
	if w.Name != r.Name {
		return nil
	}
	w.retain(r)
	return w
}

// ingress returns the routes to the Services behind routes of users. Each has the kind of the
// user's route.
func ingress(inputs Input, tailnet string, g *gatewayv1alpha1.IngressRoutes, endpoints []*gatewayv1alpha1.TailscaleEndpoints, userRoutes []*Route) []*Desired {
	found := map[types.NamespacedName]*Desired{}
	for _, r := range userRoutes {
		if r.Key.Kind != ir.KindHTTPRoute && r.Key.Kind != ir.KindGRPCRoute {
			continue
		}
		for _, b := range r.Backends(inputs.Permitted) {
			w := &Desired{
				ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{
					Kind:      r.Kind,
					Namespace: r.Key.Namespace,
					Name:      names.Child(inputs.Object.Name, inputs.Object.Namespace, tailnet, directionLabel(tailnetv1alpha1.DirectionIngress), b.Namespace, b.Name),
					Tailnet:   tailnet, Direction: tailnetv1alpha1.DirectionIngress, Service: b.Name,
				},
				target:   fmt.Sprintf("Service %s", b.NamespacedName),
				protocol: gwapiv1.ProtocolType(cmp.Or(g.Protocol, gatewayv1alpha1.EndpointProtocolHTTPS)),
				Backend:  tailnetv1alpha1.ReportedBackend{Namespace: b.Namespace, Name: b.Name, Port: b.Port},
			}
			if previous := found[b.NamespacedName]; previous == nil || w.rank() < previous.rank() {
				found[b.NamespacedName] = w
			}
		}
	}
	out := make([]*Desired, 0, len(found))
	for n, w := range found {
		w.place(variables{service: n.Name, tailnet: tailnet, namespace: n.Namespace, domain: domain(endpoints)}, g.HostPattern, g.PathPrefix)
		if w.Kind == KindGRPCRoute && w.PathPrefix != "/" {
			w.fail(tailnetv1alpha1.GeneratedRouteRefused, "It is a backend of GRPCRoutes, which do not support a path prefix; set pathPrefix of routeGeneration.ingress to /, or create a route for it")
		}
		if gw := inputs.Object.GatewayName().Namespace; inputs.Object.Namespace != gw && w.Namespace != inputs.Object.Namespace {
			// The permission to create a TailscaleGateway does not include routes in other namespaces.
			w.fail(tailnetv1alpha1.GeneratedRouteRefused, "Routes in namespace %s are generated only for TailscaleGateways in namespace %s or %s", w.Namespace, gw, w.Namespace)
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *Desired) int {
		return cmp.Or(cmp.Compare(a.Backend.Namespace, b.Backend.Namespace), cmp.Compare(a.Backend.Name, b.Backend.Name))
	})
	return out
}

// rank returns the precedence of routes that could be generated for one Service: a route in the
// namespace of the Service comes first, then the lowest port, then an HTTPRoute, which also
// accepts the requests of a GRPCRoute.
func (w *Desired) rank() string {
	return fmt.Sprintf("%t %s %05d %t", w.Namespace != w.Backend.Namespace, w.Namespace, w.Backend.Port, w.Kind == KindGRPCRoute)
}
