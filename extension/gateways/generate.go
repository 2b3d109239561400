// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

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

// servicePrefix is what the names of endpoints begin with that are services, and not
// devices.
const servicePrefix = "svc-"

// A wanted route.
type wanted struct {
	// what is told of it. Its name is that of the route even where none is made.
	tailnetv1alpha1.ReportedGeneratedRoute

	// what it leads to, for people.
	what string

	// protocol of the listeners, and those that there are for its host.
	protocol  gwapiv1.ProtocolType
	listeners []listener

	// backend is a Service, or a TailscaleServices if services is set. Its name is empty
	// while it is not there.
	backend  tailnetv1alpha1.ReportedBackend
	services bool

	// endpoint that was discovered, as the TailscaleEndpoints calls it, and whether it is
	// a device.
	endpoint string
	device   bool

	// alias is what the target would be called if it were discovered. Empty if that is not
	// known.
	alias string

	// fqdn that the backend is asked by, and whether by TLS.
	fqdn string
	tls  bool

	// made reports that there is to be a route.
	made bool

	// kept is there already and stays as it is: nobody can say whether its target is
	// still there, or at which Service and port it is.
	kept bool
}

func (w *wanted) key() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
}

// id of the route.
func (w *wanted) id() routeID { return routeID{kind: w.Kind, NamespacedName: w.key()} }

// A routeID is the kind and name of a generated route.
type routeID struct {
	kind string
	types.NamespacedName
}

// idOf a generated route.
func idOf(o client.Object) routeID {
	kind, _ := statusOf(o)
	return routeID{kind: kind, NamespacedName: client.ObjectKeyFromObject(o)}
}

// hosts of the route. None stands for any.
func (w *wanted) hosts() []string {
	if w.Hostname == anyHost {
		return nil
	}
	return []string{w.Hostname}
}

// fail says why no route is made. The first reason counts.
func (w *wanted) fail(s tailnetv1alpha1.GeneratedRouteState, format string, args ...any) {
	if w.State == "" {
		w.State, w.Message = s, fmt.Sprintf(format, args...)
	}
}

// place a route by patterns.
func (w *wanted) place(v variables, host gatewayv1alpha1.HostPattern, prefix gatewayv1alpha1.PathPattern) {
	var err error
	if w.Hostname, err = v.host(string(host)); err != nil {
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "%s", err)
	}
	if w.PathPrefix, err = v.path(string(prefix)); err != nil {
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "%s", err)
	}
}

// generated routes that are wanted, in the order in which they take hosts and paths.
func generated(in input, people []*route) []*wanted {
	var out []*wanted
	circular := in.circular()
	for _, t := range in.object.Spec.Tailnets {
		of := in.of(t.Name)
		if g := t.RouteGeneration.Ingress; g != nil {
			out = append(out, ingress(in, t.Name, g, of, people)...)
		}
		picked := selected(in, t)
		out = append(out, picked...)
		if generatesEgress(t) {
			out = append(out, egress(in, t, t.RouteGeneration.Egress, of, leaveOut{circular: circular, picked: picked})...)
		}
	}
	// Users choose how their devices are called: these take no host and path of a service.
	slices.SortStableFunc(out, func(a, b *wanted) int {
		switch {
		case a.device == b.device:
			return 0
		case a.device:
			return 1
		}
		return -1
	})
	return out
}

// of a tailnet are the TailscaleEndpoints that discover in it, by name.
func (in input) of(tailnet string) []*gatewayv1alpha1.TailscaleEndpoints {
	var out []*gatewayv1alpha1.TailscaleEndpoints
	for _, e := range in.endpoints {
		if e.Labels[meta.LabelGatewayTailnet] == tailnet {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *gatewayv1alpha1.TailscaleEndpoints) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// domain of the tailnet that TailscaleEndpoints are in.
func domain(of []*gatewayv1alpha1.TailscaleEndpoints) string {
	for _, e := range of {
		for _, d := range e.Status.Devices {
			if n := domainOf(d.TailscaleFQDN); n != "" {
				return n
			}
		}
		for _, d := range e.Status.DiscoveredEndpoints {
			if n := domainOf(d.TailscaleFQDN); n != "" {
				return n
			}
		}
	}
	return ""
}

// published are the endpoints that the TailscaleGateway's own Tailscale Services become
// where its tailnet is searched. A route to one would lead in a circle.
func (in input) published(tailnet string) map[string]bool {
	out := map[string]bool{}
	for _, s := range in.services {
		if s.Labels[meta.LabelTailnet] == tailnet {
			out[names.ServiceEndpoint(string(s.Spec.VIPService.Name))] = true
		}
	}
	return out
}

// egress routes to what was discovered in a tailnet, and does not lead in a circle.
func egress(in input, t gatewayv1alpha1.GatewayTailnet, g *gatewayv1alpha1.EgressRoutes, of []*gatewayv1alpha1.TailscaleEndpoints, except leaveOut) []*wanted {
	found := map[string]*wanted{}
	searched, own := len(of) > 0, map[string]bool{}
	for _, e := range of {
		maps.Copy(own, in.published(e.Spec.Tailnet))
		searched = searched && e.Status.GetCondition(meta.TypeDiscoverySuccessful).Status == corev1.ConditionTrue
		targets := map[string]string{}
		for _, s := range e.Status.EgressTargets {
			targets[s.Name] = s.Service
		}
		for _, d := range e.Status.DiscoveredEndpoints {
			if own[d.Name] || except.isPicked(d) {
				continue
			}
			w := discovered(in, t, g, d, domain(of))
			if to, ok := except.circular[dnsNameOf(w.fqdn)]; ok {
				w.fail(tailnetv1alpha1.GeneratedRouteRefused, "%s", circle(to, gatewayOf(in.object)))
			}
			to := targets[d.Name+"/"+strconv.Itoa(int(t.ServiceDiscovery.Port))]
			if !w.leadTo(in.object.Namespace, to) {
				w.fail(tailnetv1alpha1.GeneratedRoutePending, "Waiting for proxies to carry traffic to it")
			}
			if w.tls && w.fqdn == "" {
				w.fail(tailnetv1alpha1.GeneratedRoutePending, "Waiting for its name in the tailnet, which its certificate is for")
			}
			// Of one that several TailscaleEndpoints found, the first that leads there.
			if was := found[d.Name]; was == nil || was.State != "" && w.State == "" {
				found[d.Name] = w
			}
		}
	}
	// A target is gone if a search that worked did not find it. One that is found, and has
	// no Service at the port for now, is not.
	for _, o := range in.generated {
		w := kept(in, t, g, o, domain(of))
		if w == nil || own[w.endpoint] || except.isPicked(endpointOf(o)) {
			continue
		}
		if is := found[w.endpoint]; is == nil && !searched || is != nil && is.State == tailnetv1alpha1.GeneratedRoutePending {
			found[w.endpoint] = w
		}
	}
	out := make([]*wanted, 0, len(found))
	for _, w := range found {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *wanted) int { return cmp.Compare(a.endpoint, b.endpoint) })
	return out
}

// discovered is the route to a service or a device.
func discovered(in input, t gatewayv1alpha1.GatewayTailnet, g *gatewayv1alpha1.EgressRoutes, d gatewayv1alpha1.DiscoveredEndpoint, domain string) *wanted {
	service, _ := called(d)
	w := &wanted{
		ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{
			Kind:      kindHTTPRoute,
			Namespace: in.object.Namespace,
			Name:      names.Child(in.object.Name, t.Name, directionLabel(tailnetv1alpha1.DirectionEgress), d.Name),
			Tailnet:   t.Name, Direction: tailnetv1alpha1.DirectionEgress, Service: service,
		},
		what:     discoveredIn(d, t.Name),
		protocol: gwapiv1.ProtocolType(cmp.Or(g.Protocol, gatewayv1alpha1.EndpointProtocolHTTP)),
		endpoint: d.Name,
		device:   d.Source != string(tailnetv1alpha1.DiscoverServices),
		fqdn:     strings.TrimSuffix(d.TailscaleFQDN, "."),
		tls:      t.ServiceDiscovery.Protocol == gatewayv1alpha1.EndpointProtocolHTTPS,
	}
	w.place(variables{service: service, tailnet: t.Name, namespace: in.object.Namespace, domain: domain}, g.HostPattern, g.PathPrefix)
	return w
}

// called is the name of what was discovered, and of what kind that is.
func called(d gatewayv1alpha1.DiscoveredEndpoint) (name, kind string) {
	if d.Source == string(tailnetv1alpha1.DiscoverServices) {
		return strings.TrimPrefix(d.Name, servicePrefix), "the service"
	}
	return d.Name, "the device"
}

// discoveredIn says what was discovered, for people.
func discoveredIn(d gatewayv1alpha1.DiscoveredEndpoint, tailnet string) string {
	name, kind := called(d)
	return fmt.Sprintf("%s %s of tailnet %s", kind, name, tailnet)
}

// endpointOf a generated route, as its label tells. It has no name if there is none.
func endpointOf(r client.Object) gatewayv1alpha1.DiscoveredEndpoint {
	d := gatewayv1alpha1.DiscoveredEndpoint{Name: r.GetLabels()[meta.LabelEndpoint]}
	if strings.HasPrefix(d.Name, servicePrefix) {
		d.Source = string(tailnetv1alpha1.DiscoverServices)
	}
	return d
}

// leadTo a Service, NAME:PORT. False if that is none.
func (w *wanted) leadTo(namespace, service string) bool {
	name, p, ok := strings.Cut(service, ":")
	port, err := strconv.ParseUint(p, 10, 16)
	if !ok || err != nil {
		return false
	}
	w.backend = tailnetv1alpha1.ReportedBackend{Namespace: namespace, Name: name, Port: int32(port)}
	return true
}

// kept is a route that is there already. Nil if it is none of the tailnet's.
func kept(in input, t gatewayv1alpha1.GatewayTailnet, g *gatewayv1alpha1.EgressRoutes, o client.Object, domain string) *wanted {
	r, ok := o.(*gwapiv1.HTTPRoute)
	if !ok || r.Labels[meta.LabelGenerated] != directionLabel(tailnetv1alpha1.DirectionEgress) || r.Labels[meta.LabelGatewayTailnet] != t.Name {
		return nil
	}
	w := discovered(in, t, g, endpointOf(r), domain)
	if w.Name != r.Name {
		return nil
	}
	w.keep(r)
	return w
}

// keep a route that is there as it is.
func (w *wanted) keep(r *gwapiv1.HTTPRoute) {
	w.kept = true
	w.placeAs(r)
}

// placeAs a route that is there, whatever patterns say meanwhile.
func (w *wanted) placeAs(r *gwapiv1.HTTPRoute) {
	if len(r.Spec.Rules) == 0 || len(r.Spec.Rules[0].Matches) == 0 {
		return
	}
	if p := r.Spec.Rules[0].Matches[0].Path; p != nil && p.Value != nil {
		w.Hostname, w.PathPrefix = anyHost, trimPath(*p.Value)
		if len(r.Spec.Hostnames) > 0 {
			w.Hostname = string(r.Spec.Hostnames[0])
		}
		w.State, w.Message = "", ""
	}
}

// ingress routes to the Services behind people's routes, each of the kind of these.
func ingress(in input, tailnet string, g *gatewayv1alpha1.IngressRoutes, of []*gatewayv1alpha1.TailscaleEndpoints, people []*route) []*wanted {
	found := map[types.NamespacedName]*wanted{}
	for _, r := range people {
		if r.Key.Kind != ir.KindHTTPRoute && r.Key.Kind != ir.KindGRPCRoute {
			continue
		}
		for _, b := range r.backends(in.permitted) {
			w := &wanted{
				ReportedGeneratedRoute: tailnetv1alpha1.ReportedGeneratedRoute{
					Kind:      r.kind,
					Namespace: r.Key.Namespace,
					Name:      names.Child(in.object.Name, in.object.Namespace, tailnet, directionLabel(tailnetv1alpha1.DirectionIngress), b.Namespace, b.Name),
					Tailnet:   tailnet, Direction: tailnetv1alpha1.DirectionIngress, Service: b.Name,
				},
				what:     fmt.Sprintf("Service %s", b.NamespacedName),
				protocol: gwapiv1.ProtocolType(cmp.Or(g.Protocol, gatewayv1alpha1.EndpointProtocolHTTPS)),
				backend:  tailnetv1alpha1.ReportedBackend{Namespace: b.Namespace, Name: b.Name, Port: b.Port},
			}
			if was := found[b.NamespacedName]; was == nil || w.rank() < was.rank() {
				found[b.NamespacedName] = w
			}
		}
	}
	out := make([]*wanted, 0, len(found))
	for n, w := range found {
		w.place(variables{service: n.Name, tailnet: tailnet, namespace: n.Namespace, domain: domain(of)}, g.HostPattern, g.PathPrefix)
		if w.Kind == kindGRPCRoute && w.PathPrefix != "/" {
			w.fail(tailnetv1alpha1.GeneratedRouteRefused, "It is behind GRPCRoutes, and these take no path prefix; set pathPrefix of routeGeneration.ingress to /, or write a route for it")
		}
		if gw := gatewayOf(in.object).Namespace; in.object.Namespace != gw && w.Namespace != in.object.Namespace {
			// Who may make a TailscaleGateway here may not make routes there.
			w.fail(tailnetv1alpha1.GeneratedRouteRefused, "Routes of namespace %s are generated for TailscaleGateways of namespace %s or %s alone", w.Namespace, gw, w.Namespace)
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *wanted) int {
		return cmp.Or(cmp.Compare(a.backend.Namespace, b.backend.Namespace), cmp.Compare(a.backend.Name, b.backend.Name))
	})
	return out
}

// rank of the routes that could be made for one Service: that in its own namespace comes
// first, then the lowest port, and of one port an HTTPRoute, which takes what a GRPCRoute
// does.
func (w *wanted) rank() string {
	return fmt.Sprintf("%t %s %05d %t", w.Namespace != w.backend.Namespace, w.Namespace, w.backend.Port, w.Kind == kindGRPCRoute)
}
