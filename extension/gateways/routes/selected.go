// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	targets "github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/selector"
)

// Parts of the names of routes to selected objects.
const (
	selectedEndpoint = "endpoint"
	selectedService  = "service"
)

// portHTTP is the preferred port of a TailscaleServices with several.
const portHTTP = 80

// exclusions are the discovered endpoints without a route.
type exclusions struct {
	// looping holds those that lead back to the Gateway, by DNS name.
	looping map[string]types.NamespacedName

	// selectedRoutes are the routes to objects that a selector selects.
	selectedRoutes []*Desired
}

// isSelected reports whether a selector also selects a discovered endpoint.
func (l exclusions) isSelected(d gatewayv1alpha1.DiscoveredEndpoint) bool {
	return slices.ContainsFunc(l.selectedRoutes, func(w *Desired) bool {
		return w.alias != "" && w.alias == d.Name || w.fqdn != "" && DNSName(w.fqdn) == DNSName(d.TailscaleFQDN)
	})
}

// HasSelector reports whether a tailnet of a TailscaleGateway generates routes to the objects
// that a selector selects.
func HasSelector(t gatewayv1alpha1.GatewayTailnet) bool {
	return t.RouteGeneration.Egress != nil && t.RouteGeneration.Egress.Selector != nil
}

// refOf returns the name of the TailscaleTailnet of an entry.
func refOf(t gatewayv1alpha1.GatewayTailnet) string {
	if t.TailscaleTailnetRef != nil {
		return t.TailscaleTailnetRef.Name
	}
	return t.Name
}

// selected returns the routes to the objects that the selector of a tailnet selects in the
// namespace.
func selected(inputs Input, t gatewayv1alpha1.GatewayTailnet) []*Desired {
	if !HasSelector(t) {
		return nil
	}
	g := t.RouteGeneration.Egress
	matching, err := selector.Of(g.Selector)
	if err != nil {
		return retainSelected(inputs, t, err)
	}
	var out []*Desired
	for _, e := range inputs.Local.Endpoints {
		if e.TailnetName() != refOf(t) || !matching.Matches(labels.Set(e.Labels)) {
			continue
		}
		for _, ep := range targets.Expand(e.Spec.Endpoints) {
			if w := routeToEndpoint(inputs, t, e, &ep); w != nil {
				out = append(out, w)
			}
		}
	}
	for _, s := range inputs.Local.Services {
		if matching.Matches(labels.Set(s.Labels)) && inputs.Local.isIn(s, refOf(t)) {
			out = append(out, routeToServices(inputs, t, s))
		}
	}
	for _, w := range out {
		if r := inputs.existing(w); r != nil && w.State == tailnetv1alpha1.GeneratedRoutePending {
			w.retain(r)
		}
	}
	slices.SortFunc(out, func(a, b *Desired) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// retainSelected returns the routes for an invalid selector: the error, and the existing
// routes, which stay.
func retainSelected(inputs Input, t gatewayv1alpha1.GatewayTailnet, err error) []*Desired {
	w := selectedRoute(inputs, t, "selector", "")
	w.fail(tailnetv1alpha1.GeneratedRouteRefused, "routeGeneration.egress.selector: %s", err)
	out := []*Desired{w}
	for _, o := range inputs.Generated {
		r, ok := o.(*gwapiv1.HTTPRoute)
		_, found := o.GetLabels()[meta.LabelEndpoint]
		if !ok || found || r.Labels[meta.LabelGatewayTailnet] != t.Name || r.Labels[meta.LabelGenerated] != directionLabel(tailnetv1alpha1.DirectionEgress) {
			continue
		}
		w := selectedRoute(inputs, t, r.Name, r.Name)
		w.retain(r)
		out = append(out, w)
	}
	return out
}

// selectedRoute returns a route to a selected object, without a host and a path.
func selectedRoute(inputs Input, t gatewayv1alpha1.GatewayTailnet, service, name string) *Desired {
	return &Desired{
		ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{
			Kind: KindHTTPRoute, Namespace: inputs.Object.Namespace, Name: name,
			Tailnet: t.Name, Direction: tailnetv1alpha1.DirectionEgress, Service: service,
		},
		protocol: gwapiv1.ProtocolType(cmp.Or(t.RouteGeneration.Egress.Protocol, gatewayv1alpha1.EndpointProtocolHTTP)),
		target:   service,
	}
}

// existing returns the existing HTTPRoute of a desired route, and nil if there is none.
func (inputs Input) existing(w *Desired) *gwapiv1.HTTPRoute {
	for _, o := range inputs.Generated {
		if r, ok := o.(*gwapiv1.HTTPRoute); ok && client.ObjectKeyFromObject(r) == w.Key() {
			return r
		}
	}
	return nil
}

// routeToEndpoint returns the route to an endpoint of a TailscaleEndpoints, through the Service
// that is composed for it. It returns nil if the endpoint has no protocol that an HTTPRoute
// supports.
func routeToEndpoint(inputs Input, t gatewayv1alpha1.GatewayTailnet, e *gatewayv1alpha1.TailscaleEndpoints, ep *gatewayv1alpha1.Endpoint) *Desired {
	port, protocol := requestPort(e, ep)
	if port == 0 {
		return nil
	}
	g := t.RouteGeneration.Egress
	w := selectedRoute(inputs, t, ep.Name, names.Child(inputs.Object.Name, t.Name, directionLabel(tailnetv1alpha1.DirectionEgress), selectedEndpoint, e.Name, ep.Name))
	w.target = fmt.Sprintf("endpoint %s of TailscaleEndpoints %s", ep.Name, client.ObjectKeyFromObject(e))
	w.fqdn, w.TLS = strings.TrimSuffix(ep.TailscaleFQDN, "."), protocol == gatewayv1alpha1.EndpointProtocolHTTPS
	w.place(variables{service: ep.Name, tailnet: t.Name, namespace: inputs.Object.Namespace, domain: domain(append(inputs.endpointsIn(t.Name), e))}, g.HostPattern, g.PathPrefix)
	if w.TLS && w.fqdn == "" {
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "It uses HTTPS, and the name in its certificate is unknown; set tailscaleFQDN")
	}
	service := ""
	for _, s := range e.Status.EgressTargets {
		if s.Name == ep.Name+"/"+strconv.Itoa(int(port)) {
			service = s.Service
		}
	}
	if !w.setBackend(e.Namespace, service) {
		w.fail(tailnetv1alpha1.GeneratedRoutePending, "Waiting for proxies to carry traffic to it")
	}
	return w
}

// requestPort returns the lowest port of an endpoint with HTTP, HTTPS or gRPC, and zero if
// there is none.
func requestPort(e *gatewayv1alpha1.TailscaleEndpoints, ep *gatewayv1alpha1.Endpoint) (int32, gatewayv1alpha1.EndpointProtocol) {
	ports := e.Spec.Ports
	switch {
	case ep.ExternalTarget != "":
		_, p, _ := net.SplitHostPort(ep.ExternalTarget) // The schema validates it.
		n, _ := strconv.ParseUint(p, 10, 16)
		ports = []gatewayv1alpha1.EndpointsPort{{Port: int32(n), Protocol: ep.Protocol}}
	case ep.Port != nil:
		ports = []gatewayv1alpha1.EndpointsPort{{Port: *ep.Port, Protocol: ep.Protocol}}
	case len(ep.Ports) > 0:
		ports = ep.Ports
	}
	var port int32
	var protocol gatewayv1alpha1.EndpointProtocol
	for _, p := range ports {
		switch p.Protocol {
		case gatewayv1alpha1.EndpointProtocolHTTP, gatewayv1alpha1.EndpointProtocolHTTPS, gatewayv1alpha1.EndpointProtocolGRPC:
			if port == 0 || p.Port < port {
				port, protocol = p.Port, p.Protocol
			}
		case gatewayv1alpha1.EndpointProtocolTCP, gatewayv1alpha1.EndpointProtocolUDP, gatewayv1alpha1.EndpointProtocolTLS:
		}
	}
	return port, protocol
}

// routeToServices returns the route to a TailscaleServices. The backend is the
// TailscaleServices itself, as in routes of users.
func routeToServices(inputs Input, t gatewayv1alpha1.GatewayTailnet, s *gatewayv1alpha1.TailscaleServices) *Desired {
	g := t.RouteGeneration.Egress
	name := strings.TrimPrefix(string(s.Spec.VIPService.Name), "svc:")
	name = cmp.Or(name, s.Name)
	w := selectedRoute(inputs, t, name, names.Child(inputs.Object.Name, t.Name, directionLabel(tailnetv1alpha1.DirectionEgress), selectedService, s.Name))
	w.target = "TailscaleServices " + client.ObjectKeyFromObject(s).String()
	w.services, w.alias = true, names.ServiceEndpoint("svc:"+name)
	w.place(variables{service: name, tailnet: t.Name, namespace: inputs.Object.Namespace, domain: domain(inputs.endpointsIn(t.Name))}, g.HostPattern, g.PathPrefix)
	w.Backend = tailnetv1alpha1.ReportedBackend{Namespace: s.Namespace, Name: s.Name, Port: servicePort(s)}
	switch {
	case LeadsToGateway(s):
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "It leads to a Gateway, which could create a routing loop; select the backends of that Gateway instead")
	case w.Backend.Port == 0:
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "It serves all ports, so no port can be selected; create a route that specifies one")
	}
	return w
}

// LeadsToGateway reports whether a TailscaleServices has a Gateway as backend.
func LeadsToGateway(s *gatewayv1alpha1.TailscaleServices) bool {
	return slices.ContainsFunc(s.Spec.Backends, func(b gatewayv1alpha1.Backend) bool { return b.Kind == gatewayv1alpha1.BackendKindGateway })
}

// servicePort returns the port of a route to a TailscaleServices: 80 if there is one, else the
// lowest. It returns zero if all ports are served.
func servicePort(s *gatewayv1alpha1.TailscaleServices) int32 {
	var out int32
	for _, p := range s.Spec.VIPService.Ports {
		n, err := strconv.ParseUint(strings.TrimPrefix(string(p), "tcp:"), 10, 16)
		if err != nil {
			continue
		}
		if n == portHTTP {
			return portHTTP
		}
		if out == 0 || int32(n) < out {
			out = int32(n)
		}
	}
	return out
}

// isIn reports whether a TailscaleServices is in a tailnet, by its template or by a
// TailscaleEndpoints that it selects.
func (l Local) isIn(s *gatewayv1alpha1.TailscaleServices, tailnet string) bool {
	if s.Spec.EndpointTemplate != nil && s.Spec.EndpointTemplate.Tailnet == tailnet {
		return true
	}
	matching, err := selector.Of(&s.Spec.Selector)
	return err == nil && slices.ContainsFunc(l.Endpoints, func(e *gatewayv1alpha1.TailscaleEndpoints) bool {
		return e.TailnetName() == tailnet && matching.Matches(labels.Set(e.Labels))
	})
}
