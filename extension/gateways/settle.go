// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
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

// settle which wanted routes are made: each needs listeners, and a host and a path that
// nobody else has. People's routes come first, and then those that are wanted in order.
func settle(of []*wanted, ls []listener, gateway types.NamespacedName, people []*route) {
	claims := claimed(people)
	for _, w := range of {
		w.listen(ls, gateway)
		if w.State != "" && w.State != tailnetv1alpha1.GeneratedRoutePending {
			continue
		}
		mine := w.claims()
		if i := slices.IndexFunc(mine, func(c claim) bool { return claims[c] != "" }); i >= 0 {
			w.State, w.Message = tailnetv1alpha1.GeneratedRouteConflict, capital(claims[mine[i]])+" has "+w.Hostname+w.PathPrefix+" already, so "+w.what+" gets no route"
			continue
		}
		for _, c := range mine {
			claims[c] = w.what
		}
	}
}

// listen at the Gateway's own listeners of the protocol and for the host.
func (w *wanted) listen(ls []listener, gateway types.NamespacedName) {
	k := keyOf(kindGateway, gateway)
	own := slices.ContainsFunc(ls, func(l listener) bool { return l.parent == k })
	for _, l := range ls {
		if l.parent == k && l.protocol == w.protocol && l.meets([]string{w.Hostname}) && len(w.listeners) < maxParents {
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
		for _, h := range l.hosts([]string{w.Hostname}) {
			out = append(out, claim{parent: l.parent, listener: l.name, host: h, prefix: w.PathPrefix})
		}
	}
	return out
}

// claimed by people's HTTPRoutes and GRPCRoutes, with who does: Envoy Gateway sorts both
// together. Rules that ask for more than a path leave the rest to others. The first of
// several is told of.
func claimed(people []*route) map[claim]string {
	out := map[claim]string{}
	for _, r := range people {
		if r.Key.Kind != index.KindHTTPRoute && r.Key.Kind != index.KindGRPCRoute {
			continue
		}
		for _, c := range r.claims() {
			if out[c] == "" {
				out[c] = r.kind + " " + r.Key.String()
			}
		}
	}
	return out
}

// claims of a route at its listeners.
func (r *route) claims() []claim {
	var out []claim
	for _, prefix := range prefixes(r) {
		for _, l := range r.listeners {
			for _, h := range l.hosts(r.About.Hostnames) {
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

// stand tells how a route does that is there, by what Envoy Gateway says of it. It
// answers if one listener has accepted it, unless its Service cannot be used.
func stand(r *gwapiv1.HTTPRoute) (tailnetv1alpha1.GeneratedRouteState, string) {
	if r == nil {
		return tailnetv1alpha1.GeneratedRoutePending, waiting
	}
	var refusals []string
	answers, broken := false, false
	for _, p := range r.Status.Parents {
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
