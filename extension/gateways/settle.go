// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// maxParents of a route. Gateway API has no more.
	maxParents = 32

	// waiting is said of a route that is there.
	waiting = "Waiting for Envoy Gateway"
)

// A claim is a host and a path prefix at a listener.
type claim struct {
	parent   parentKey
	listener gwapiv1.SectionName
	host     string
	prefix   string
}

// A holder has a host and a path.
type holder struct {
	// who it is, for people.
	who string

	// service reports that it is a route that was generated for one, and peer that this
	// was for another TailscaleGateway.
	service, peer bool
}

// settle which wanted routes are made: each needs listeners, and a host and a path that
// nobody else has. People's routes come first, then those of TailscaleGateways that come
// first, and then those that are wanted in order.
func settle(in input, of []*wanted, ls []listener, people []*route) {
	claims := claimed(people)
	for _, r := range in.before(ls) {
		claims.add(r.claims(), holder{who: r.who, service: true, peer: true})
	}
	for _, w := range of {
		w.listen(ls, gatewayOf(in.object))
		if w.State != "" && w.State != tailnetv1alpha1.GeneratedRoutePending {
			continue
		}
		mine := w.claims()
		if i := slices.IndexFunc(mine, claims.has); i >= 0 {
			w.yield(claims[mine[i]], in.object)
			continue
		}
		claims.add(mine, holder{who: w.what, service: true})
	}
}

// yield to who has the host and the path.
func (w *wanted) yield(to holder, o *gatewayv1alpha1.TailscaleGateway) {
	what := w.what
	if to.peer {
		what = w.inFull(o)
	}
	w.State, w.Collides = tailnetv1alpha1.GeneratedRouteConflict, to.service
	w.Message = capital(to.who) + " has " + w.Hostname + w.PathPrefix + " already, so " + what + " gets no route"
}

// listen at the Gateway's own listeners of the protocol and for the host.
func (w *wanted) listen(ls []listener, gateway types.NamespacedName) {
	k := keyOf(kindGateway, gateway)
	own := slices.ContainsFunc(ls, func(l listener) bool { return l.parent == k })
	for _, l := range ls {
		if l.parent == k && l.protocol == w.protocol && l.meets(w.hosts()) && len(w.listeners) < maxParents {
			w.listeners = append(w.listeners, l)
		}
	}
	switch {
	case !own:
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "There is no Gateway %s", gateway)
	case len(w.listeners) == 0:
		w.fail(tailnetv1alpha1.GeneratedRouteRefused, "Gateway %s has no listener of protocol %s for host %s; add one, or change routeGeneration", gateway, w.protocol, w.Hostname)
	}
}

func (w *wanted) claims() []claim {
	out := make([]claim, 0, len(w.listeners))
	for _, l := range w.listeners {
		for _, h := range l.hosts(w.hosts()) {
			out = append(out, claim{parent: l.parent, listener: l.name, host: h, prefix: w.PathPrefix})
		}
	}
	return out
}

// holders of hosts and paths.
type holders map[claim]holder

func (h holders) has(c claim) bool {
	_, ok := h[c]
	return ok
}

// add a holder. The first of several is told of.
func (h holders) add(of []claim, to holder) {
	for _, c := range of {
		if !h.has(c) {
			h[c] = to
		}
	}
}

// claimed by people's HTTPRoutes and GRPCRoutes: Envoy Gateway sorts both together. Rules
// that ask for more than a path leave the rest to others.
func claimed(people []*route) holders {
	out := holders{}
	for _, r := range people {
		if r.Key.Kind == ir.KindHTTPRoute || r.Key.Kind == ir.KindGRPCRoute {
			out.add(r.claims(), holder{who: r.kind + " " + r.Key.String()})
		}
	}
	return out
}

// claims of a route at its listeners.
func (r *route) claims() []claim {
	var out []claim
	for _, prefix := range prefixes(r) {
		for _, l := range r.listeners {
			for _, h := range l.hosts(r.Info.Hostnames) {
				out = append(out, claim{parent: l.parent, listener: l.name, host: h, prefix: prefix})
			}
		}
	}
	return out
}

// prefixes that a route has whatever else is asked for. That of a GRPCRoute without a
// method is all, and of a service alone that service's.
func prefixes(r *route) []string {
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

// stand says how a route does that is there, by what Envoy Gateway says of it. It
// answers if one listener has accepted it, unless its Service cannot be used.
func stand(o client.Object) (tailnetv1alpha1.GeneratedRouteState, string) {
	_, r := statusOf(o)
	if r == nil {
		return tailnetv1alpha1.GeneratedRoutePending, waiting
	}
	var refusals []string
	answers, broken := false, false
	for _, p := range r.Parents {
		answers = answers || conditionIs(p.Conditions, gwapiv1.RouteConditionAccepted, metav1.ConditionTrue)
		broken = broken || conditionIs(p.Conditions, gwapiv1.RouteConditionResolvedRefs, metav1.ConditionFalse)
		for _, c := range p.Conditions {
			if c.Status == metav1.ConditionFalse {
				refusals = append(refusals, c.Message)
			}
		}
	}
	switch {
	case answers && !broken:
		return tailnetv1alpha1.GeneratedRouteAccepted, told(refusals)
	case len(refusals) > 0:
		return tailnetv1alpha1.GeneratedRouteRefused, told(refusals)
	}
	return tailnetv1alpha1.GeneratedRoutePending, waiting
}

// told is what Envoy Gateway says, once.
func told(refusals []string) string {
	slices.Sort(refusals)
	if len(refusals) == 0 {
		return ""
	}
	return "Envoy Gateway: " + strings.Join(slices.Compact(refusals), "; ")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
