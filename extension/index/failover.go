// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// failoverObjects are the requests of TailscaleGateways that routes to Kubernetes Services fail over to
// other clusters, and what these requests concern.
type failoverObjects struct {
	// failovers are the namespaces of the TailscaleGateways that ask for failover, by Gateway.
	failovers       group[string]
	failoverGateway map[types.NamespacedName]types.NamespacedName

	// serviceRoutes are the routes that name a Service and none of our kinds. They hold the objects
	// of the cache, so that a route without failover costs no more than its place in the map.
	serviceRoutes map[ir.RouteKey]*serviceRoute

	// publishers are the TailscaleServices whose backend is a Service, by that Service.
	publishers group[types.NamespacedName]
}

// A serviceRoute is a route that names a Service and none of our kinds.
type serviceRoute struct {
	object  client.Object
	parents []parse.Parent

	// parsed is the route once it fails over.
	parsed *parse.RouteObject
}

func newFailoverObjects() failoverObjects {
	return failoverObjects{
		failovers:       group[string]{},
		failoverGateway: map[types.NamespacedName]types.NamespacedName{},
		serviceRoutes:   map[ir.RouteKey]*serviceRoute{},
		publishers:      group[types.NamespacedName]{},
	}
}

// putServiceRoute stores a route that names a Service and none of our kinds.
func putServiceRoute(all *objects, change *input, deleted bool, p *pending) {
	r := change.route
	k := r.Route.Key
	if old := all.serviceRoutes[k]; old != nil && old.parsed != nil {
		p.mark(routeEntry(k))
	}
	if deleted || r.NamesOurs() || !namesService(r) {
		delete(all.serviceRoutes, k)
		return
	}
	all.serviceRoutes[k] = &serviceRoute{object: change.Object, parents: r.Parents}
	if len(all.failovers) > 0 {
		p.mark(routeEntry(k))
	}
}

// namesService reports whether a backend of a route may fail over.
func namesService(r *parse.RouteObject) bool {
	return slices.ContainsFunc(r.Route.Rules, func(rule ir.Rule) bool {
		return slices.ContainsFunc(rule.Backends, func(b ir.BackendRef) bool {
			_, ok := b.Failover(r.Route.Key.Kind)
			return ok
		})
	})
}

// putFailover stores the request of a TailscaleGateway. A ReferenceGrant may permit requests for
// Gateways of other namespaces. It reports whether the object is one of these.
func putFailover(all *objects, change *input, p *pending) bool {
	switch o := change.Object.(type) {
	case *gwapiv1beta1.ReferenceGrant:
		for n, g := range all.failoverGateway {
			if n.Namespace != g.Namespace && g.Namespace == change.name.Namespace {
				markFailover(all, g, p)
			}
		}
	case *gatewayv1alpha1.TailscaleGateway:
		old, exists := all.failoverGateway[change.name]
		g := o.GatewayName()
		wanted := !change.Deleted && o.Spec.Failover != nil && g.Name != ""
		if exists == wanted && old == g {
			return true
		}
		previous := map[types.NamespacedName]bool{old: all.failsOver(old), g: all.failsOver(g)}
		if exists {
			all.failovers.unset(old, change.name)
			delete(all.failoverGateway, change.name)
		}
		if wanted {
			all.failovers.set(g, change.name, change.name.Namespace)
			all.failoverGateway[change.name] = g
		}
		for gateway, failedOver := range previous {
			// A TailscaleGateway without permission costs nothing, however many routes the Gateway has.
			if all.failsOver(gateway) != failedOver {
				markFailover(all, gateway, p)
			}
		}
	default:
		return false
	}
	return true
}

// failsOver reports whether a TailscaleGateway that may share a Gateway asks for failover.
func (all *objects) failsOver(gateway types.NamespacedName) bool {
	for _, namespace := range all.failovers[gateway] {
		if all.grants.PermitGateway(namespace, gateway) {
			return true
		}
	}
	return false
}

// withFailover returns the Gateways with failover.
func withFailover(all *objects, gateways []types.NamespacedName) []types.NamespacedName {
	var out []types.NamespacedName
	for _, g := range gateways {
		if all.failsOver(g) {
			out = append(out, g)
		}
	}
	return out
}

// failoverRoute returns a route that names a Service and none of our kinds. Nil if none of its Gateways
// has failover.
func failoverRoute(all *objects, k ir.RouteKey) *parse.RouteObject {
	r := all.serviceRoutes[k]
	if r == nil || len(all.failovers) == 0 && r.parsed == nil {
		return nil
	}
	switch failsOver := len(withFailover(all, all.gateways(r.parents))) > 0; {
	case !failsOver:
		r.parsed = nil
	case r.parsed == nil:
		r.parsed = parse.ParseRouteObject(r.object)
	}
	return r.parsed
}

// markFailover marks the routes of a Gateway whose failover may have changed.
func markFailover(all *objects, gateway types.NamespacedName, p *pending) {
	for k, r := range all.routes {
		if all.attaches(r.Parents, gateway) {
			p.mark(routeEntry(k))
		}
	}
	for k, r := range all.serviceRoutes {
		if all.attaches(r.parents, gateway) {
			p.mark(routeEntry(k))
		}
	}
}

// markServiceRoutes marks the routes to Services whose parents match, if any route may fail over.
func markServiceRoutes(all *objects, p *pending, match func(parents []parse.Parent) bool) {
	if len(all.failovers) == 0 {
		return
	}
	for k, r := range all.serviceRoutes {
		if match(r.parents) {
			p.mark(routeEntry(k))
		}
	}
}

// publishedServices returns the Services that a TailscaleServices may share: those of its namespace. A
// tenant must not answer for the Services of another namespace, so a grant for these does not count.
func publishedServices(n types.NamespacedName, spec *gatewayv1alpha1.TailscaleServicesSpec) []types.NamespacedName {
	if len(spec.Backends) == 0 {
		return []types.NamespacedName{n}
	}
	var out []types.NamespacedName
	for _, b := range spec.Backends {
		if s := ir.Sibling(n, b.Name); isService(b) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func isService(b gatewayv1alpha1.Backend) bool {
	return b.Kind == "" || b.Kind == gatewayv1alpha1.BackendKindService
}

// buildFailover builds the target for a Service in other clusters: the egress proxies that lead to the
// clusters that share it. Of several TailscaleServices with the Service as their backend, the first by
// name that other clusters share counts.
func (v *view) buildFailover(t *ir.Target, n types.NamespacedName) {
	t.Missing, t.Problem = true, fmt.Sprintf("no other cluster shares Service %s; look at the TailscaleServices that has it as its backend", n)
	for _, publisher := range v.publishers.sorted(v.lookup(refPublishers, n)) {
		spec := v.services[v.lookup(refServices, publisher)]
		if spec == nil {
			continue
		}
		spec, problem := v.filled(publisher, t.Key.Port, spec)
		if problem != "" {
			continue
		}
		port, ok := publishedPort(spec, n.Name, t.Key)
		if !ok {
			continue
		}
		shared := &ir.Target{Key: ir.TargetKey{Kind: ir.TargetServices, Namespace: publisher.Namespace, Name: publisher.Name, Port: port, Protocol: t.Key.Protocol}}
		sources, problem := v.remoteSources(shared, publisher, spec, nil)
		if len(sources) == 0 {
			t.Problem = cmp.Or(problem, t.Problem)
			continue
		}
		v.creation = v.created[ref{kind: refServices, NamespacedName: publisher}]
		shape := parse.ServicesShape(shared.Key, spec)
		// Balancing and health checks are those of Envoy Gateway's cluster for the Service.
		t.Shape = ir.Shape{HealthThreshold: shape.HealthThreshold, OutlierDetection: shape.OutlierDetection, HTTP2: shape.HTTP2, RemoteTLS: shared.Shape.RemoteTLS}
		t.Missing, t.Problem = false, ""
		v.locate(t, sources)
		if empty(t.Localities) {
			t.Problem = fmt.Sprintf("TailscaleServices %s: %s", publisher, cmp.Or(v.beyond, problem, "no egress proxy to other clusters is ready"))
		}
		t.Vacant, t.Publisher = v.vacantPort(n, t.Key.Port), publisher
		return
	}
}

// publishedPort returns the port of a Tailscale Service that leads to a port of a Service alone.
func publishedPort(spec *gatewayv1alpha1.TailscaleServicesSpec, name string, k ir.TargetKey) (int32, bool) {
	ports := []int32{k.Port}
	if !service.AllPorts(*spec) {
		var err error
		if ports, err = service.Numbers(spec.VIPService.Ports); err != nil {
			return 0, false
		}
	}
	for _, port := range ports {
		backends, problem := answering(spec, ir.TargetKey{Kind: ir.TargetServices, Port: port, Protocol: k.Protocol})
		if problem == "" && !slices.ContainsFunc(backends, func(b gatewayv1alpha1.Backend) bool {
			return weight(spec.LoadBalancing, b) > 0 && (!isService(b) || b.Name != name || b.Port != k.Port)
		}) {
			return port, true
		}
	}
	return 0, false
}

// vacantPort returns a port of a Service if it has no ready endpoint.
func (v *view) vacantPort(n types.NamespacedName, port int32) *ir.VacantPort {
	endpoints, _, _ := v.serviceEndpoints(n, port, corev1.ProtocolTCP)
	s := v.kubeServices[n]
	if s == nil || s.External || usable(endpoints) > 0 {
		return nil
	}
	for _, p := range s.Ports {
		if p.Port == port && p.Protocol == corev1.ProtocolTCP {
			return &ir.VacantPort{Name: p.Name, IPv6: s.Family == discoveryv1.AddressTypeIPv6}
		}
	}
	return nil
}

// vacantPort returns the vacant port of a target, which may be nil.
func vacantPort(t *ir.Target) *ir.VacantPort {
	if t == nil {
		return nil
	}
	return t.Vacant
}
