// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// routeObjects are the routes that name one of our kinds, and the Gateways of ListenerSets.
type routeObjects struct {
	routes       map[ir.RouteKey]*parse.RouteObject
	listenerSets map[types.NamespacedName]types.NamespacedName
}

func newRouteObjects() routeObjects {
	return routeObjects{
		routes:       map[ir.RouteKey]*parse.RouteObject{},
		listenerSets: map[types.NamespacedName]types.NamespacedName{},
	}
}

// putRoute stores a route that names one of our kinds or may fail over, or the Gateway of a ListenerSet. It
// drops other routes and placeholders.
func putRoute(all *objects, change *input, p *pending) (bool, error) {
	if set, ok := change.Object.(*gwapiv1.ListenerSet); ok {
		putListenerSet(all, set, change, p)
		return true, nil
	}
	if change.route == nil {
		return putFailover(all, change, p), nil
	}
	k := change.route.Route.Key
	deleted := change.Deleted || ir.IsPlaceholder(change.Object)
	putServiceRoute(all, change, deleted, p)
	if deleted || !change.route.NamesOurs() {
		if all.routes[k] != nil {
			delete(all.routes, k)
			p.markRoute(k)
		}
		return true, nil
	}
	all.routes[k] = change.route
	p.markRoute(k)
	return true, nil
}

// putListenerSet attaches the routes of a ListenerSet to its Gateway.
func putListenerSet(all *objects, o *gwapiv1.ListenerSet, change *input, p *pending) {
	g := types.NamespacedName{Namespace: change.name.Namespace, Name: string(o.Spec.ParentRef.Name)}
	if ns := o.Spec.ParentRef.Namespace; ns != nil {
		g.Namespace = string(*ns)
	}
	put(all.listenerSets, change.name, g, change.Deleted)
	for k, r := range all.routes {
		if slices.ContainsFunc(r.Parents, func(parent parse.Parent) bool { return parent.ListenerSet && parent.NamespacedName == change.name }) {
			p.markRoute(k)
		}
	}
	markServiceRoutes(all, p, func(parents []parse.Parent) bool {
		return slices.ContainsFunc(parents, func(parent parse.Parent) bool { return parent.ListenerSet && parent.NamespacedName == change.name })
	})
}

// markRoute marks a route and its settings.
func (p *pending) markRoute(k ir.RouteKey) {
	p.mark(routeEntry(k))
	p.markSettings(k)
}

// serveRoutes marks all routes.
func serveRoutes(all *objects, p *pending) {
	for k := range all.routes {
		p.mark(routeEntry(k))
	}
	markServiceRoutes(all, p, func([]parse.Parent) bool { return true })
}

// recomputeRoutes updates the marked routes.
func recomputeRoutes(s *Store, e *edit) {
	for c := range e.marked(routeSection) {
		k := c.route()
		old := e.next.Routes.Get(k)
		var current *ir.Route
		if p, gateways := s.objects.servedRoute(k); p != nil {
			r := p.Route
			r.Gateways, r.Failover = gateways, withFailover(s.objects, gateways)
			current = &r
		}
		if current != nil {
			readmit(s, e, c, s.objects.admitting(current.Gateways, k.Namespace))
		}
		if reflect.DeepEqual(old, current) {
			continue
		}
		e.digest(c, routeSum(old), routeSum(current))
		e.routes[c] = s.ruleNames[c]
		e.next.Routes.Put(e.next, k, current, current == nil)
		delete(s.ruleNames, c)
		if current != nil {
			if names := ruleNames(current); len(names) > 0 {
				s.ruleNames[c] = names
			}
		}
		nameForeign(s, k, old, current)
		oldDependents, newDependents := dependents(old), dependents(current)
		nameDependents(s, e, c, oldDependents, newDependents)
		e.leadChanged(oldDependents, newDependents)
	}
}

// routeSum returns the part of a route in digests. It leaves out the generation and
// information for people, except for the route's age.
func routeSum(r *ir.Route) any {
	if r == nil {
		return nil
	}
	out := *r
	out.Generation, out.Info = 0, ir.RouteInfo{Created: r.Info.Created}
	return out
}

// digestRoute returns the part of a route with its settings, targets and
// permissions, to the Gateways that admit it.
func digestRoute(s *Store, e *edit, c entry) digestPart {
	k := c.route()
	r := e.next.Routes.Get(k)
	if r == nil {
		return digestPart{}
	}
	out := digestPart{gateways: s.objects.admitting(r.Gateways, k.Namespace), sum: ir.Sum(routeSum(r)) + ir.Sum(settingsSum(k, e.next.Settings.Get(k)))}
	for named := range dependents(r) {
		out.sum += s.digests.targets[named.target]
	}
	for _, rule := range r.Rules {
		for _, b := range rule.Backends {
			if b.Namespace != k.Namespace && e.next.Permitted(k, b) {
				out.sum += ir.Sum(struct{ Permitted ir.BackendRef }{b})
			}
		}
	}
	return out
}

// dependents returns the dependents that a route names.
func dependents(r *ir.Route) map[dependent]struct{} {
	out := map[dependent]struct{}{}
	if r == nil {
		return out
	}
	for _, rule := range r.Rules {
		mixed := rule.OursBackend()
		for _, b := range rule.Backends {
			switch {
			case b.Ours():
				out[dependent{target: b.Target(r.Key.Kind)}] = struct{}{}
			case b.Kind == ir.BackendService && mixed:
				out[dependent{service: b.ServicePort(r.Key.Kind)}] = struct{}{}
			case len(r.Failover) > 0:
				if k, ok := b.Failover(r.Key.Kind); ok {
					out[dependent{target: k}] = struct{}{}
				}
			}
		}
		for _, b := range rule.Mirrors {
			if b.Ours() {
				out[dependent{target: b.Target(r.Key.Kind)}] = struct{}{}
			}
		}
	}
	return out
}

// missing returns the problem that a route names an object that does not exist.
func missing(kind string, n types.NamespacedName) string {
	return fmt.Sprintf("%s %s does not exist; make it, or correct the backendRefs of the routes that name it", kind, n)
}
