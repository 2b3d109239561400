// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"slices"

	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// certificateRefs holds the state of the Secrets that the rules of a policy reference.
type certificateRefs struct {
	// reason and message explain why a Secret cannot be used. They are empty if all can be
	// used.
	reason, message string
}

// certificateRefsOf returns the state of the Secrets of a policy. It returns nil if the rules
// reference no Secret, or another extension reads the Secrets.
func certificateRefsOf(p *ir.RoutePolicy) *certificateRefs {
	if len(p.Served) == 0 {
		return nil
	}
	var out *certificateRefs
	for _, r := range p.Rules {
		switch c := r.Certificate; {
		case c == nil || r.Problem != "":
		case c.Problem != "":
			return &certificateRefs{reason: c.Reason, message: fmt.Sprintf("Rule %s: %s", r.Name, c.Problem)}
		default:
			out = &certificateRefs{}
		}
	}
	return out
}

// setCondition sets the ResolvedRefs condition, or removes it if there are no Secrets.
func (r *certificateRefs) setCondition(conditions *[]metav1.Condition, generation int64) {
	if r == nil {
		kmeta.RemoveStatusCondition(conditions, string(gwapiv1.RouteConditionResolvedRefs))
		return
	}
	c := metav1.Condition{
		Type: string(gwapiv1.RouteConditionResolvedRefs), Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: string(gwapiv1.RouteReasonResolvedRefs), Message: "All client certificates can be presented",
	}
	if r.reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, r.reason, r.message
	}
	kmeta.SetStatusCondition(conditions, c)
}

// plaintextBackend returns a message if a rule's certificate cannot be presented to a backend,
// because the backend does not use TLS. Otherwise it returns an empty string.
func plaintextBackend(s *ir.Snapshot, p *ir.RoutePolicy, r *ir.PolicyRule) string {
	if r.Certificate == nil || r.Certificate.Problem != "" || len(p.Served) == 0 {
		return ""
	}
	targets := p.Targets
	if n := r.Named; n != nil {
		if n.Problem != "" {
			return ""
		}
		targets = []ir.Attachment{{PolicyTarget: n.PolicyTarget}}
	}
	plain := func(k ir.RouteKind, b ir.BackendRef) string {
		t := s.Target(b.Target(k))
		switch {
		case b.Weight == 0:
		case !b.Ours():
			return fmt.Sprintf("Requests for %s get a 503 response: it is no TailscaleServices or TailscaleEndpoints, and only Envoy Gateway presents certificates to other backends", b.NamespacedName)
		case t != nil && !t.Missing && t.Shape.TLS == nil && t.Problem == "":
			return fmt.Sprintf("Requests for %s, port %d, get a 503 response: it does not use TLS; attach a BackendTLSPolicy to it", b.NamespacedName, b.Port)
		}
		return ""
	}
	for _, t := range targets {
		for _, b := range r.Backends {
			if message := plain(cmp.Or(t.Route, ir.KindHTTPRoute), b); message != "" {
				return message
			}
		}
		if len(r.Backends) > 0 {
			continue
		}
		routes := routesOf(s, t)
		if t.Route != "" && len(routes) == 0 {
			return fmt.Sprintf("Requests get a 503 response: %s references no TailscaleServices or TailscaleEndpoints, and only Envoy Gateway presents certificates to other backends", t.NamespacedName)
		}
		for _, route := range routes {
			for _, rule := range route.Rules {
				if t.Route != "" && t.Section != "" && rule.Name != t.Section {
					continue
				}
				for _, b := range rule.Backends {
					if message := plain(route.Key.Kind, b); message != "" {
						return message
					}
				}
			}
		}
	}
	return ""
}

// routesOf returns the routes that a policy is attached to by a target, sorted by kind and
// name. It contains only routes with Tailscale backends.
func routesOf(s *ir.Snapshot, t ir.Attachment) []*ir.Route {
	if t.Route != "" {
		if r := s.Route(ir.RouteKey{Kind: t.Route, NamespacedName: t.NamespacedName}); r != nil {
			return []*ir.Route{r}
		}
		return nil
	}
	var out []*ir.Route
	for r := range s.Routes() {
		http := r.Key.Kind == ir.KindHTTPRoute || r.Key.Kind == ir.KindGRPCRoute
		if http && slices.Contains(r.Gateways, t.NamespacedName) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *ir.Route) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return out
}
