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

// refs are what is known of the Secrets that a policy's rules name.
type refs struct {
	// reason and message why one cannot be used. Empty if all can.
	reason, message string
}

// refsOf a policy. Nil if its rules name no Secret, or another extension reads them.
func refsOf(p *ir.RoutePolicy) *refs {
	if len(p.Served) == 0 {
		return nil
	}
	var out *refs
	for _, r := range p.Rules {
		switch c := r.Certificate; {
		case c == nil || r.Problem != "":
		case c.Problem != "":
			return &refs{reason: c.Reason, message: fmt.Sprintf("Rule %s: %s", r.Name, c.Problem)}
		default:
			out = &refs{}
		}
	}
	return out
}

// tell of them by a condition, which goes with the last of them.
func (r *refs) tell(to *[]metav1.Condition, generation int64) {
	if r == nil {
		kmeta.RemoveStatusCondition(to, string(gwapiv1.RouteConditionResolvedRefs))
		return
	}
	c := metav1.Condition{
		Type: string(gwapiv1.RouteConditionResolvedRefs), Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: string(gwapiv1.RouteReasonResolvedRefs), Message: "All client certificates can be presented",
	}
	if r.reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, r.reason, r.message
	}
	kmeta.SetStatusCondition(to, c)
}

// withoutTLS tells of a backend that a rule's certificate cannot be presented to, for it
// speaks no TLS. Empty if there is none.
func withoutTLS(s *ir.Snapshot, p *ir.RoutePolicy, r *ir.PolicyRule) string {
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
			return fmt.Sprintf("Requests for %s are answered 503: it is none of our kinds, and Envoy Gateway alone presents certificates to it", b.NamespacedName)
		case t != nil && !t.Missing && t.Shape.TLS == nil && t.Problem == "":
			return fmt.Sprintf("Requests for %s, port %d, are answered 503: it speaks no TLS; attach a BackendTLSPolicy to it", b.NamespacedName, b.Port)
		}
		return ""
	}
	for _, t := range targets {
		for _, b := range r.Backends {
			if said := plain(cmp.Or(t.Route, ir.KindHTTPRoute), b); said != "" {
				return said
			}
		}
		if len(r.Backends) > 0 {
			continue
		}
		routes := routesOf(s, t)
		if t.Route != "" && len(routes) == 0 {
			return fmt.Sprintf("Requests are answered 503: %s names none of our kinds, and Envoy Gateway alone presents certificates to others", t.NamespacedName)
		}
		for _, route := range routes {
			for _, rule := range route.Rules {
				if t.Route != "" && t.Section != "" && rule.Name != t.Section {
					continue
				}
				for _, b := range rule.Backends {
					if said := plain(route.Key.Kind, b); said != "" {
						return said
					}
				}
			}
		}
	}
	return ""
}

// routesOf ours that a policy is attached to by a target, in the order of their names.
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
