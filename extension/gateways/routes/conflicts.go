// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// maxParents is the limit of Gateway API for a route.
const maxParents = 32

// A location is a host and a path prefix at a listener.
type location struct {
	parent   ParentKey
	listener gwapiv1.SectionName
	host     string
	prefix   string
}

// A holder is the route that occupies a host and a path.
type holder struct {
	// description is the description of the route in messages.
	description string

	// service reports that the route is generated, and peer that it is generated for another
	// TailscaleGateway.
	service, peer bool
}

// resolveConflicts determines which desired routes are generated: each needs listeners, and a
// host and a path that no other route occupies. Routes of users come first, then those of
// TailscaleGateways with higher precedence, then the desired routes in order.
func resolveConflicts(inputs Input, desired []*Desired, ls []Listener, userRoutes []*Route) {
	locations := occupied(userRoutes)
	for _, r := range inputs.Preceding(ls) {
		locations.add(r.locations(), holder{description: r.owner, service: true, peer: true})
	}
	for _, w := range desired {
		w.attachListeners(ls, inputs.Object.GatewayName())
		if w.State != "" && w.State != tailnetv1alpha1.GeneratedRoutePending {
			continue
		}
		own := w.locations()
		if i := slices.IndexFunc(own, locations.has); i >= 0 {
			w.setConflict(locations[own[i]], inputs.Object)
			continue
		}
		locations.add(own, holder{description: w.target, service: true})
	}
}

// setConflict records which route occupies the host and the path.
func (w *Desired) setConflict(occupant holder, o *gatewayv1alpha1.TailscaleGateway) {
	target := w.target
	if occupant.peer {
		target = w.withGateway(o)
	}
	w.State, w.ConflictsWithGenerated = tailnetv1alpha1.GeneratedRouteConflict, occupant.service
	w.Message = capitalize(occupant.description) + " has " + w.Hostname + w.PathPrefix + " already; no route is generated for " + target
}

// attachListeners attaches the route to the Gateway's own listeners for its protocol and host.
func (w *Desired) attachListeners(ls []Listener, gateway types.NamespacedName) {
	k := KeyOf(KindGateway, gateway)
	own := slices.ContainsFunc(ls, func(l Listener) bool { return l.Parent == k })
	for _, l := range ls {
		if l.Parent == k && l.Protocol == w.protocol && l.accepts(w.hosts()) && len(w.listeners) < maxParents {
			w.listeners = append(w.listeners, l)
		}
	}
	switch {
	case !own:
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "Gateway %s does not exist", gateway)
	case len(w.listeners) == 0:
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "Gateway %s has no listener with protocol %s for host %s; add one, or change routeGeneration", gateway, w.protocol, w.Hostname)
	}
}

// locations returns the locations of the route at its listeners.
func (w *Desired) locations() []location {
	out := make([]location, 0, len(w.listeners))
	for _, l := range w.listeners {
		for _, h := range l.hosts(w.hosts()) {
			out = append(out, location{parent: l.Parent, listener: l.Name, host: h, prefix: w.PathPrefix})
		}
	}
	return out
}

// holders maps locations to the routes that occupy them.
type holders map[location]holder

// has reports whether a location is occupied.
func (h holders) has(c location) bool {
	_, ok := h[c]
	return ok
}

// add adds a holder. The first holder of a location stays.
func (h holders) add(locations []location, occupant holder) {
	for _, c := range locations {
		if !h.has(c) {
			h[c] = occupant
		}
	}
}

// occupied returns the locations of the HTTPRoutes and GRPCRoutes of users, which Envoy Gateway
// sorts together. Rules with more conditions than a path leave the other requests to further
// routes.
func occupied(userRoutes []*Route) holders {
	out := holders{}
	for _, r := range userRoutes {
		if r.Key.Kind == ir.KindHTTPRoute || r.Key.Kind == ir.KindGRPCRoute {
			out.add(r.locations(), holder{description: r.Kind + " " + r.Key.String()})
		}
	}
	return out
}

// locations returns the locations of a route at its listeners.
func (r *Route) locations() []location {
	var out []location
	for _, prefix := range prefixes(r) {
		for _, l := range r.Listeners {
			for _, h := range l.hosts(r.Info.Hostnames) {
				out = append(out, location{parent: l.Parent, listener: l.Name, host: h, prefix: prefix})
			}
		}
	}
	return out
}

// prefixes returns the path prefixes that a route occupies without further conditions. A
// GRPCRoute without a method occupies all paths, and one with a service the paths of that
// service.
func prefixes(r *Route) []string {
	var out []string
	for _, rule := range r.Rules {
		if len(rule.Matches) == 0 {
			out = append(out, "/")
		}
		for _, m := range rule.Matches {
			if m.Method != "" || len(m.Headers) > 0 || len(m.Query) > 0 {
				continue
			}
			if m.PathType == "" || m.PathType == string(gwapiv1.PathMatchPathPrefix) {
				out = append(out, trimPath(m.Path))
			}
		}
	}
	return out
}

// capitalize returns the text with an upper-case first letter.
func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
