// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A Route that a Gateway has accepted.
type Route struct {
	*ir.Route

	// Kind is the kind in the API.
	Kind string

	Labels map[string]string

	// UID is the UID of the object.
	UID types.UID

	// Listeners that the route is attached to.
	Listeners []Listener

	// Filters that may protect the backends of rules, by the index of the rule.
	Filters map[int]string
}

// StatusOf returns the kind and the status of a route, and a nil status for other objects.
func StatusOf(o client.Object) (string, *gwapiv1.RouteStatus) {
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

// IsGenerated reports whether the extension generated an object for a TailscaleGateway.
func IsGenerated(o metav1.Object) bool {
	_, ok := o.GetLabels()[meta.LabelGenerated]
	return ok
}

// IsManaged reports whether the extension generated an object for a TailscaleGateway and manages
// it.
func IsManaged(o client.Object) bool {
	return IsGenerated(o) && o.GetLabels()[ir.ManagedByLabel] == ir.ManagedBy
}

// Owner returns the TailscaleGateway in the labels of an object. Without a label for
// the namespace it is in the object's namespace. The name is empty if there is no label.
func Owner(o client.Object) types.NamespacedName {
	l := o.GetLabels()
	return types.NamespacedName{Namespace: cmp.Or(l[meta.LabelGatewayNamespace], o.GetNamespace()), Name: l[meta.LabelGateway]}
}

// Accepted returns the routes of users that the Gateway has accepted, sorted.
func Accepted(objs []client.Object, ls []Listener) []*Route {
	var out []*Route
	for _, o := range objs {
		if ir.IsPlaceholder(o) || IsGenerated(o) {
			continue
		}
		kind, status := StatusOf(o)
		if status == nil {
			continue
		}
		r := &Route{Route: parse.ParseRoute(o), Kind: kind, Labels: o.GetLabels(), UID: o.GetUID(), Filters: protectingFilters(o)}
		if r.attach(status.Parents, ls) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Route) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return out
}

// attach attaches a route to the listeners that accepted it. It returns false if no parent
// accepted the route.
func (r *Route) attach(parents []gwapiv1.RouteParentStatus, ls []Listener) bool {
	found := false
	attached := make([]bool, len(ls))
	for _, p := range parents {
		k, ok := ParentOf(p.ParentRef, r.Key.Namespace)
		if !ok || !conditionIs(p.Conditions, gwapiv1.RouteConditionAccepted, metav1.ConditionTrue) {
			continue
		}
		for i, l := range ls {
			if l.Parent != k {
				continue
			}
			found = true
			ref := p.ParentRef
			if ptr.Deref(ref.SectionName, l.Name) == l.Name && ptr.Deref(ref.Port, l.Port) == l.Port && l.acceptsRoute(r) {
				attached[i] = true
			}
		}
	}
	for i, l := range ls {
		if attached[i] {
			r.Listeners = append(r.Listeners, l)
		}
	}
	return found
}

// conditionIs reports whether a condition has a status.
func conditionIs(conditions []metav1.Condition, t gwapiv1.RouteConditionType, s metav1.ConditionStatus) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Type == string(t) && c.Status == s })
}

// Backends returns the backends of a route that are permitted Services.
func (r *Route) Backends(permitted func(ir.RouteKey, ir.BackendRef) bool) []ir.BackendRef {
	return r.BackendsWhere(permitted, func(int) bool { return true })
}

// BackendsWhere returns the backends of the rules that match a filter, by their index.
func (r *Route) BackendsWhere(permitted func(ir.RouteKey, ir.BackendRef) bool, matches func(rule int) bool) []ir.BackendRef {
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

// Hostnames returns the hosts of requests that reach a route, sorted. It returns none if the
// route accepts any host.
func (r *Route) Hostnames() []string {
	var out []string
	for _, l := range r.Listeners {
		out = append(out, slices.DeleteFunc(l.hosts(r.Info.Hostnames), func(h string) bool { return h == "" })...)
	}
	slices.Sort(out)
	return slices.Compact(out)
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

// acceptsRoute reports whether a listener accepts a route that its Gateway has accepted. The labels of
// namespaces are unknown here, so a listener that selects namespaces counts as accepting.
func (l Listener) acceptsRoute(r *Route) bool {
	if !slices.Contains(protocols(r.Key.Kind), l.Protocol) || !l.accepts(r.Info.Hostnames) {
		return false
	}
	if l.allowed == nil {
		return l.namespace == r.Key.Namespace
	}
	if k := l.allowed.Kinds; len(k) > 0 && !slices.ContainsFunc(k, func(k gwapiv1.RouteGroupKind) bool {
		return ptr.Deref(k.Group, gwapiv1.GroupName) == gwapiv1.GroupName && string(k.Kind) == r.Kind
	}) {
		return false
	}
	scope := gwapiv1.NamespacesFromSame
	if n := l.allowed.Namespaces; n != nil {
		scope = ptr.Deref(n.From, scope)
	}
	switch scope {
	case gwapiv1.NamespacesFromSame:
		return l.namespace == r.Key.Namespace
	case gwapiv1.NamespacesFromNone:
		return false
	case gwapiv1.NamespacesFromAll, gwapiv1.NamespacesFromSelector:
	}
	return true
}

// protocols returns the protocols of listeners that support a kind of routes.
func protocols(k ir.RouteKind) []gwapiv1.ProtocolType {
	switch k {
	case ir.KindHTTPRoute, ir.KindGRPCRoute:
		return []gwapiv1.ProtocolType{gwapiv1.HTTPProtocolType, gwapiv1.HTTPSProtocolType}
	case ir.KindTLSRoute:
		return []gwapiv1.ProtocolType{gwapiv1.TLSProtocolType}
	case ir.KindTCPRoute:
		return []gwapiv1.ProtocolType{gwapiv1.TCPProtocolType, gwapiv1.TLSProtocolType}
	case ir.KindUDPRoute:
		return []gwapiv1.ProtocolType{gwapiv1.UDPProtocolType}
	}
	return nil
}
