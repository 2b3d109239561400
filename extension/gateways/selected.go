// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

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
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/selector"
)

// Kinds in the names of routes to what a selector picks.
const (
	pickedEndpoint = "endpoint"
	pickedService  = "service"
)

// portHTTP is the port that a route prefers of a TailscaleServices with several.
const portHTTP = 80

// local are objects of one namespace that no TailscaleGateway composed.
type local struct {
	endpoints []*gatewayv1alpha1.TailscaleEndpoints
	services  []*gatewayv1alpha1.TailscaleServices
}

// leaveOut says what of the things that were found gets no route.
type leaveOut struct {
	// circular are those that lead back to the Gateway, by DNS name.
	circular map[string]types.NamespacedName

	// picked have a route for somebody named them by label.
	picked []*wanted
}

// isPicked reports whether somebody named what was found by label, too.
func (l leaveOut) isPicked(d gatewayv1alpha1.DiscoveredEndpoint) bool {
	return slices.ContainsFunc(l.picked, func(w *wanted) bool {
		return w.alias != "" && w.alias == d.Name || w.fqdn != "" && dnsNameOf(w.fqdn) == dnsNameOf(d.TailscaleFQDN)
	})
}

// picks reports whether a tailnet of a TailscaleGateway has routes made for what a selector
// picks.
func picks(t gatewayv1alpha1.GatewayTailnet) bool {
	return t.RouteGeneration.Egress != nil && t.RouteGeneration.Egress.Selector != nil
}

// refOf the TailscaleTailnet that an entry stands for.
func refOf(t gatewayv1alpha1.GatewayTailnet) string {
	if t.TailscaleTailnetRef != nil {
		return t.TailscaleTailnetRef.Name
	}
	return t.Name
}

// selected are the routes to what the selector of a tailnet picks in the namespace.
func selected(in input, t gatewayv1alpha1.GatewayTailnet) []*wanted {
	if !picks(t) {
		return nil
	}
	g := t.RouteGeneration.Egress
	matching, err := selector.Of(g.Selector)
	if err != nil {
		return unselected(in, t, err)
	}
	var out []*wanted
	for _, e := range in.local.endpoints {
		if e.Spec.Tailnet != refOf(t) || !matching.Matches(labels.Set(e.Labels)) {
			continue
		}
		for i := range e.Spec.Endpoints {
			if w := toEndpoint(in, t, e, &e.Spec.Endpoints[i]); w != nil {
				out = append(out, w)
			}
		}
	}
	for _, s := range in.local.services {
		if matching.Matches(labels.Set(s.Labels)) && in.local.isIn(s, refOf(t)) {
			out = append(out, toServices(in, t, s))
		}
	}
	for _, w := range out {
		if r := in.there(w); r != nil && w.State == tailnetv1alpha1.GeneratedRoutePending {
			w.keep(r)
		}
	}
	slices.SortFunc(out, func(a, b *wanted) int { return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Name, b.Name)) })
	return out
}

// unselected is what becomes of a selector that is wrong: it takes no route away.
func unselected(in input, t gatewayv1alpha1.GatewayTailnet, err error) []*wanted {
	w := pickedIn(in, t, "selector", "")
	w.fail(tailnetv1alpha1.GeneratedRouteRefused, "routeGeneration.egress.selector: %s", err)
	out := []*wanted{w}
	for _, o := range in.generated {
		r, ok := o.(*gwapiv1.HTTPRoute)
		_, found := o.GetLabels()[meta.LabelEndpoint]
		if !ok || found || r.Labels[meta.LabelGatewayTailnet] != t.Name || r.Labels[meta.LabelGenerated] != directionLabel(tailnetv1alpha1.DirectionEgress) {
			continue
		}
		w := pickedIn(in, t, r.Name, r.Name)
		w.keep(r)
		out = append(out, w)
	}
	return out
}

// pickedIn is a route to what was picked in a tailnet, without a place.
func pickedIn(in input, t gatewayv1alpha1.GatewayTailnet, service, name string) *wanted {
	return &wanted{
		ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{
			Kind: kindHTTPRoute, Namespace: in.object.Namespace, Name: name,
			Tailnet: t.Name, Direction: tailnetv1alpha1.DirectionEgress, Service: service,
		},
		protocol: gwapiv1.ProtocolType(cmp.Or(t.RouteGeneration.Egress.Protocol, gatewayv1alpha1.EndpointProtocolHTTP)),
		what:     service,
	}
}

// there is the HTTPRoute of a wanted route. Nil if there is none.
func (in input) there(w *wanted) *gwapiv1.HTTPRoute {
	for _, o := range in.generated {
		if r, ok := o.(*gwapiv1.HTTPRoute); ok && client.ObjectKeyFromObject(r) == w.key() {
			return r
		}
	}
	return nil
}

// toEndpoint is the route to an endpoint that somebody wrote, by the Service that its
// TailscaleEndpoints makes of it. Nil if it speaks nothing that an HTTPRoute carries.
func toEndpoint(in input, t gatewayv1alpha1.GatewayTailnet, e *gatewayv1alpha1.TailscaleEndpoints, ep *gatewayv1alpha1.Endpoint) *wanted {
	port, speaks := requestPort(e, ep)
	if port == 0 {
		return nil
	}
	g := t.RouteGeneration.Egress
	w := pickedIn(in, t, ep.Name, names.Child(in.object.Name, t.Name, directionLabel(tailnetv1alpha1.DirectionEgress), pickedEndpoint, e.Name, ep.Name))
	w.what = fmt.Sprintf("endpoint %s of TailscaleEndpoints %s", ep.Name, client.ObjectKeyFromObject(e))
	w.fqdn, w.tls = strings.TrimSuffix(ep.TailscaleFQDN, "."), speaks == gatewayv1alpha1.EndpointProtocolHTTPS
	w.place(variables{service: ep.Name, tailnet: t.Name, namespace: in.object.Namespace, domain: domain(append(in.of(t.Name), e))}, g.HostPattern, g.PathPrefix)
	if w.tls && w.fqdn == "" {
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "It speaks HTTPS, and nothing says the name that its certificate is for; set tailscaleFQDN")
	}
	service := ""
	for _, s := range e.Status.EgressTargets {
		if s.Name == ep.Name+"/"+strconv.Itoa(int(port)) {
			service = s.Service
		}
	}
	if !w.leadTo(e.Namespace, service) {
		w.fail(tailnetv1alpha1.GeneratedRoutePending, "Waiting for proxies to carry traffic to it")
	}
	return w
}

// requestPort of an endpoint is its lowest that speaks HTTP, HTTPS or gRPC. Zero if none
// does.
func requestPort(e *gatewayv1alpha1.TailscaleEndpoints, ep *gatewayv1alpha1.Endpoint) (int32, gatewayv1alpha1.EndpointProtocol) {
	ports := e.Spec.Ports
	switch {
	case ep.ExternalTarget != "":
		_, p, _ := net.SplitHostPort(ep.ExternalTarget) // The schema refuses what is none.
		n, _ := strconv.ParseUint(p, 10, 16)
		ports = []gatewayv1alpha1.EndpointsPort{{Port: int32(n), Protocol: ep.Protocol}}
	case ep.Port != nil:
		ports = []gatewayv1alpha1.EndpointsPort{{Port: *ep.Port, Protocol: ep.Protocol}}
	}
	var port int32
	var speaks gatewayv1alpha1.EndpointProtocol
	for _, p := range ports {
		switch p.Protocol {
		case gatewayv1alpha1.EndpointProtocolHTTP, gatewayv1alpha1.EndpointProtocolHTTPS, gatewayv1alpha1.EndpointProtocolGRPC:
			if port == 0 || p.Port < port {
				port, speaks = p.Port, p.Protocol
			}
		case gatewayv1alpha1.EndpointProtocolTCP, gatewayv1alpha1.EndpointProtocolUDP, gatewayv1alpha1.EndpointProtocolTLS:
		}
	}
	return port, speaks
}

// toServices is the route to a TailscaleServices, which is its backend itself, as in routes
// that people write.
func toServices(in input, t gatewayv1alpha1.GatewayTailnet, s *gatewayv1alpha1.TailscaleServices) *wanted {
	g := t.RouteGeneration.Egress
	name := strings.TrimPrefix(string(s.Spec.VIPService.Name), "svc:")
	name = cmp.Or(name, s.Name)
	w := pickedIn(in, t, name, names.Child(in.object.Name, t.Name, directionLabel(tailnetv1alpha1.DirectionEgress), pickedService, s.Name))
	w.what = "TailscaleServices " + client.ObjectKeyFromObject(s).String()
	w.services, w.alias = true, names.ServiceEndpoint("svc:"+name)
	w.place(variables{service: name, tailnet: t.Name, namespace: in.object.Namespace, domain: domain(in.of(t.Name))}, g.HostPattern, g.PathPrefix)
	w.backend = tailnetv1alpha1.ReportedBackend{Namespace: s.Namespace, Name: s.Name, Port: servicePort(s)}
	switch {
	case front(s) != nil:
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "It leads to a Gateway, which might be a circle; select what is behind it instead")
	case w.backend.Port == 0:
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "No port of it can be told, for it has all; write a route that names one")
	}
	return w
}

// servicePort that a route leads to: 80 if there is one, else the lowest. Zero if all ports
// are served.
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

// isIn reports whether a TailscaleServices is in a tailnet: by its template, or by a
// TailscaleEndpoints that it selects.
func (l local) isIn(s *gatewayv1alpha1.TailscaleServices, tailnet string) bool {
	if s.Spec.EndpointTemplate != nil && s.Spec.EndpointTemplate.Tailnet == tailnet {
		return true
	}
	matching, err := selector.Of(&s.Spec.Selector)
	return err == nil && slices.ContainsFunc(l.endpoints, func(e *gatewayv1alpha1.TailscaleEndpoints) bool {
		return e.Spec.Tailnet == tailnet && matching.Matches(labels.Set(e.Labels))
	})
}
