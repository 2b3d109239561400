// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A route that a Gateway has accepted.
type route struct {
	*ir.Route

	// kind is the kind in the API.
	kind string

	labels map[string]string

	// uid is the UID of the object.
	uid types.UID

	// listeners that the route is attached to.
	listeners []listener

	// filters that may protect the backends of rules, by the index of the rule.
	filters map[int]string
}

// statusOf returns the kind and the status of a route, and a nil status for other objects.
func statusOf(o client.Object) (string, *gwapiv1.RouteStatus) {
	switch r := o.(type) {
	case *gwapiv1.HTTPRoute:
		return "HTTPRoute", &r.Status.RouteStatus
	case *gwapiv1.GRPCRoute:
		return "GRPCRoute", &r.Status.RouteStatus
	case *gwapiv1.TCPRoute:
		return "TCPRoute", &r.Status.RouteStatus
	case *gwapiv1.TLSRoute:
		return "TLSRoute", &r.Status.RouteStatus
	case *gwapiv1.UDPRoute:
		return "UDPRoute", &r.Status.RouteStatus
	}
	return "", nil
}

// isGenerated reports whether the extension generated an object for a TailscaleGateway.
func isGenerated(o metav1.Object) bool {
	_, ok := o.GetLabels()[meta.LabelGenerated]
	return ok
}

// accepted returns the routes of users that the Gateway has accepted, sorted.
func accepted(objs []client.Object, ls []listener) []*route {
	var out []*route
	for _, o := range objs {
		if ir.IsPlaceholder(o) || isGenerated(o) {
			continue
		}
		kind, status := statusOf(o)
		if status == nil {
			continue
		}
		r := &route{Route: parse.ParseRoute(o), kind: kind, labels: o.GetLabels(), uid: o.GetUID(), filters: protectingFilters(o)}
		if r.attach(status.Parents, ls) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *route) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return out
}

// attach attaches a route to the listeners that accepted it. It returns false if no parent
// accepted the route.
func (r *route) attach(parents []gwapiv1.RouteParentStatus, ls []listener) bool {
	found := false
	attached := make([]bool, len(ls))
	for _, p := range parents {
		k, ok := parentOf(p.ParentRef, r.Key.Namespace)
		if !ok || !conditionIs(p.Conditions, gwapiv1.RouteConditionAccepted, metav1.ConditionTrue) {
			continue
		}
		for i, l := range ls {
			if l.parent != k {
				continue
			}
			found = true
			ref := p.ParentRef
			if ptr.Deref(ref.SectionName, l.name) == l.name && ptr.Deref(ref.Port, l.port) == l.port && l.acceptsRoute(r) {
				attached[i] = true
			}
		}
	}
	for i, l := range ls {
		if attached[i] {
			r.listeners = append(r.listeners, l)
		}
	}
	return found
}

// conditionIs reports whether a condition has a status.
func conditionIs(conditions []metav1.Condition, t gwapiv1.RouteConditionType, s metav1.ConditionStatus) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Type == string(t) && c.Status == s })
}

// backends returns the backends of a route that are permitted Services.
func (r *route) backends(permitted func(ir.RouteKey, ir.BackendRef) bool) []ir.BackendRef {
	return r.backendsOf(permitted, func(int) bool { return true })
}

// backendsOf returns the backends of the rules that match a filter, by their index.
func (r *route) backendsOf(permitted func(ir.RouteKey, ir.BackendRef) bool, matches func(rule int) bool) []ir.BackendRef {
	var out []ir.BackendRef
	for i := range r.Rules {
		if !matches(i) {
			continue
		}
		for _, b := range r.Rules[i].Backends {
			if b.Kind == ir.BackendService && b.Port != 0 && permitted(r.Key, b) {
				out = append(out, b)
			}
		}
	}
	return out
}

// hostnames returns the hosts of requests that reach a route, sorted. It returns none if the
// route accepts any host.
func (r *route) hostnames() []string {
	var out []string
	for _, l := range r.listeners {
		out = append(out, slices.DeleteFunc(l.hosts(r.Info.Hostnames), func(h string) bool { return h == "" })...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// narrower returns the more specific one of two overlapping host patterns.
func narrower(a, b string) string {
	wildA, wildB := strings.HasPrefix(a, "*"), strings.HasPrefix(b, "*")
	if a != "" && wildB && (!wildA || len(a) > len(b)) {
		return a
	}
	return b
}

// needsHostnames reports whether a tailnet of the TailscaleGateway resolves host names.
// Otherwise the report has no host names, because each change of the report runs a function.
func needsHostnames(o *gatewayv1alpha1.TailscaleGateway) bool {
	return slices.ContainsFunc(o.Spec.Tailnets, func(t gatewayv1alpha1.GatewayTailnet) bool { return t.SplitDNS != nil })
}

// openFilters are the types of filters that protect nothing. Others do, such as ExternalAuth, and
// those of other API groups, which ExtensionRef names.
var openFilters = map[string]bool{
	string(gwapiv1.HTTPRouteFilterRequestHeaderModifier):  true,
	string(gwapiv1.HTTPRouteFilterResponseHeaderModifier): true,
	string(gwapiv1.HTTPRouteFilterRequestRedirect):        true,
	string(gwapiv1.HTTPRouteFilterURLRewrite):             true,
	string(gwapiv1.HTTPRouteFilterRequestMirror):          true,
	string(gwapiv1.HTTPRouteFilterCORS):                   true,
}

// protectingFilters returns the first filter of each rule of a route, or of one of its backendRefs,
// that may protect the rule's backends.
func protectingFilters(o client.Object) map[int]string {
	out := map[int]string{}
	add := func(rule int, filter string) {
		if !openFilters[filter] && out[rule] == "" {
			out[rule] = filter
		}
	}
	switch o := o.(type) {
	case *gwapiv1.HTTPRoute:
		for i, rule := range o.Spec.Rules {
			for _, f := range rule.Filters {
				add(i, string(f.Type))
			}
			for _, b := range rule.BackendRefs {
				for _, f := range b.Filters {
					add(i, string(f.Type))
				}
			}
		}
	case *gwapiv1.GRPCRoute:
		for i, rule := range o.Spec.Rules {
			for _, f := range rule.Filters {
				add(i, string(f.Type))
			}
			for _, b := range rule.BackendRefs {
				for _, f := range b.Filters {
					add(i, string(f.Type))
				}
			}
		}
	}
	return out
}
