// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Expressions that Envoy Gateway uses for any service and any method of gRPC
// (internal/gatewayapi/route.go).
const (
	anyGRPCService = `(?i)\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*`
	anyGRPCMethod  = `[A-Za-z_][A-Za-z_0-9]*`
)

// A Parent is a Gateway or ListenerSet that a route attaches to.
type Parent struct {
	ListenerSet bool
	types.NamespacedName

	// Section is the listener that the route attaches to. Empty means all.
	Section string
}

// A RouteObject is a route with its labels and parents.
type RouteObject struct {
	Route   ir.Route
	Labels  map[string]string
	Parents []Parent
}

// NamesOurs reports whether a rule names one of our kinds.
func (p *RouteObject) NamesOurs() bool { return p.Route.Ours() }

// ParseRoute parses a route of any kind, without its Gateways: only a Store knows the
// Gateways of ListenerSets. It returns nil for an object that is not a route.
func ParseRoute(o client.Object) *ir.Route {
	p := ParseRouteObject(o)
	if p == nil {
		return nil
	}
	return &p.Route
}

// ParseRouteObject parses a route of any kind. It returns nil for an object that is not a
// route.
func ParseRouteObject(o client.Object) *RouteObject {
	p := &RouteObject{Labels: o.GetLabels(), Route: ir.Route{
		Key:        ir.RouteKey{NamespacedName: client.ObjectKeyFromObject(o)},
		Generation: o.GetGeneration(),
		Info:       ir.RouteInfo{Created: o.GetCreationTimestamp().UTC()},
	}}
	ns := o.GetNamespace()
	var parents []gwapiv1.ParentReference
	var hosts []gwapiv1.Hostname
	switch r := o.(type) {
	case *gwapiv1.HTTPRoute:
		p.Route.Key.Kind, parents, hosts = ir.KindHTTPRoute, r.Spec.ParentRefs, r.Spec.Hostnames
		for _, rule := range r.Spec.Rules {
			p.Route.Rules = append(p.Route.Rules, parseHTTPRule(ns, rule))
		}
	case *gwapiv1.GRPCRoute:
		p.Route.Key.Kind, parents, hosts = ir.KindGRPCRoute, r.Spec.ParentRefs, r.Spec.Hostnames
		for _, rule := range r.Spec.Rules {
			p.Route.Rules = append(p.Route.Rules, parseGRPCRule(ns, rule))
		}
	case *gwapiv1.TCPRoute:
		p.Route.Key.Kind, parents = ir.KindTCPRoute, r.Spec.ParentRefs
		for _, rule := range r.Spec.Rules {
			p.addL4(ns, rule.Name, rule.BackendRefs)
		}
	case *gwapiv1.UDPRoute:
		p.Route.Key.Kind, parents = ir.KindUDPRoute, r.Spec.ParentRefs
		for _, rule := range r.Spec.Rules {
			p.addL4(ns, rule.Name, rule.BackendRefs)
		}
	case *gwapiv1.TLSRoute:
		p.Route.Key.Kind, parents, hosts = ir.KindTLSRoute, r.Spec.ParentRefs, r.Spec.Hostnames
		for _, rule := range r.Spec.Rules {
			p.addL4(ns, rule.Name, rule.BackendRefs)
		}
	default:
		return nil
	}
	p.Parents = parseParents(ns, parents)
	for _, h := range hosts {
		p.Route.Info.Hostnames = append(p.Route.Info.Hostnames, string(h))
	}
	p.Route.Info.Listeners = listenerNames(ns, parents)
	return p
}

// listenerNames returns the names, for people, of the listeners that a route attaches to.
func listenerNames(ns string, refs []gwapiv1.ParentReference) []string {
	var out []string
	for _, r := range refs {
		if ptr.Deref(r.Group, gwapiv1.GroupName) != gwapiv1.GroupName {
			continue
		}
		name := fmt.Sprintf("%s %s/%s", ptr.Deref(r.Kind, KindGateway), ptr.Deref(r.Namespace, gwapiv1.Namespace(ns)), r.Name)
		if r.SectionName != nil {
			name += " " + string(*r.SectionName)
		}
		if r.Port != nil {
			name += " port " + strconv.Itoa(int(*r.Port))
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// addL4 adds the backends of a rule to the only rule of an L4 route. Envoy Gateway makes one
// cluster of several rules, so none of them can share a cluster with other routes.
func (p *RouteObject) addL4(ns string, name *gwapiv1.SectionName, refs []gwapiv1.BackendRef) {
	if len(p.Route.Rules) == 0 {
		p.Route.Rules = []ir.Rule{{Name: string(ptr.Deref(name, ""))}}
	}
	r := &p.Route.Rules[0]
	r.Exclusive = len(r.Backends) > 0
	for _, b := range refs {
		r.Backends = append(r.Backends, parseBackend(ns, b, len(r.Backends), nil))
	}
}

// parseParents returns the Gateways and ListenerSets that a route attaches to.
func parseParents(ns string, refs []gwapiv1.ParentReference) []Parent {
	var out []Parent
	for _, r := range refs {
		if ptr.Deref(r.Group, gwapiv1.GroupName) != gwapiv1.GroupName {
			continue
		}
		n := types.NamespacedName{Namespace: string(ptr.Deref(r.Namespace, gwapiv1.Namespace(ns))), Name: string(r.Name)}
		switch ptr.Deref(r.Kind, KindGateway) {
		case KindGateway:
			out = append(out, Parent{NamespacedName: n, Section: string(ptr.Deref(r.SectionName, ""))})
		case kindListenerSet:
			out = append(out, Parent{NamespacedName: n, Section: string(ptr.Deref(r.SectionName, "")), ListenerSet: true})
		}
	}
	return out
}

// parseHTTPRule parses a rule of an HTTPRoute.
func parseHTTPRule(ns string, rule gwapiv1.HTTPRouteRule) ir.Rule {
	r := ir.Rule{Name: string(ptr.Deref(rule.Name, "")), Exclusive: rule.SessionPersistence != nil}
	for _, m := range rule.Matches {
		out := ir.Match{Method: string(ptr.Deref(m.Method, ""))}
		if m.Path != nil {
			out.PathType = string(ptr.Deref(m.Path.Type, gwapiv1.PathMatchPathPrefix))
			out.Path = ptr.Deref(m.Path.Value, "/")
		}
		for _, h := range m.Headers {
			out.Headers = append(out.Headers, condition(strings.ToLower(string(h.Name)), h.Value, ptr.Deref(h.Type, "") == gwapiv1.HeaderMatchRegularExpression))
		}
		for _, q := range m.QueryParams {
			out.Query = append(out.Query, condition(string(q.Name), q.Value, ptr.Deref(q.Type, "") == gwapiv1.QueryParamMatchRegularExpression))
		}
		slices.Sort(out.Headers)
		slices.Sort(out.Query)
		r.Matches = append(r.Matches, out)
	}
	for i, b := range rule.BackendRefs {
		r.Backends = append(r.Backends, parseBackend(ns, b.BackendRef, i, httpChanges(b.Filters)))
	}
	for i, f := range rule.Filters {
		if f.RequestMirror != nil {
			r.Mirrors = append(r.Mirrors, parseBackend(ns, gwapiv1.BackendRef{BackendObjectReference: f.RequestMirror.BackendRef}, i, nil))
		}
	}
	return r
}

// condition returns a condition on a header or query parameter in the form of ir.Match.
func condition(name, value string, regular bool) string {
	if regular {
		return name + "=~" + value
	}
	return name + "=" + value
}

// parseGRPCRule parses a rule of a GRPCRoute.
func parseGRPCRule(ns string, rule gwapiv1.GRPCRouteRule) ir.Rule {
	r := ir.Rule{Name: string(ptr.Deref(rule.Name, "")), Exclusive: rule.SessionPersistence != nil}
	for _, m := range rule.Matches {
		out := parseGRPCMethod(m.Method)
		for _, h := range m.Headers {
			out.Headers = append(out.Headers, condition(strings.ToLower(string(h.Name)), h.Value, ptr.Deref(h.Type, "") == gwapiv1.GRPCHeaderMatchRegularExpression))
		}
		slices.Sort(out.Headers)
		r.Matches = append(r.Matches, out)
	}
	for i, b := range rule.BackendRefs {
		r.Backends = append(r.Backends, parseBackend(ns, b.BackendRef, i, grpcChanges(b.Filters)))
	}
	for i, f := range rule.Filters {
		if f.RequestMirror != nil {
			r.Mirrors = append(r.Mirrors, parseBackend(ns, gwapiv1.BackendRef{BackendObjectReference: f.RequestMirror.BackendRef}, i, nil))
		}
	}
	return r
}

// parseGRPCMethod converts a method match as Envoy Gateway does
// (internal/gatewayapi/route.go, processGRPCRouteMethodExact and
// processGRPCRouteMethodRegularExpression).
func parseGRPCMethod(m *gwapiv1.GRPCMethodMatch) ir.Match {
	if m == nil || m.Service == nil && m.Method == nil {
		return ir.Match{}
	}
	regular := ptr.Deref(m.Type, gwapiv1.GRPCMethodMatchExact) == gwapiv1.GRPCMethodMatchRegularExpression
	switch {
	case regular:
		return ir.Match{
			Path:     "/" + ptr.Deref(m.Service, anyGRPCService) + "/" + ptr.Deref(m.Method, anyGRPCMethod),
			PathType: string(gwapiv1.PathMatchRegularExpression),
		}
	case m.Method == nil:
		return ir.Match{Path: "/" + *m.Service, PathType: string(gwapiv1.PathMatchPathPrefix)}
	case m.Service == nil:
		// A path cannot be matched by its suffix, but a header can.
		return ir.Match{Headers: []string{":path=*/" + *m.Method}}
	}
	return ir.Match{Path: "/" + *m.Service + "/" + *m.Method, PathType: string(gwapiv1.PathMatchExact)}
}

// parseBackend parses a backendRef with its index among the references of the rule.
func parseBackend(ns string, b gwapiv1.BackendRef, i int, changes *ir.Changes) ir.BackendRef {
	return ir.BackendRef{
		Kind: BackendKind(string(ptr.Deref(b.Group, "")), string(ptr.Deref(b.Kind, KindService))),
		NamespacedName: types.NamespacedName{
			Namespace: string(ptr.Deref(b.Namespace, gwapiv1.Namespace(ns))),
			Name:      string(b.Name),
		},
		Port:    ptr.Deref(b.Port, 0),
		Weight:  uint32(max(ptr.Deref(b.Weight, 1), 0)),
		Changes: changes,
		Index:   i,
	}
}

// BackendKind returns the kind of backend that a group and kind stand for.
func BackendKind(group, kind string) ir.BackendKind {
	switch {
	case group == "" && kind == KindService:
		return ir.BackendService
	case group == gatewayv1alpha1.Group && kind == KindTailscaleServices:
		return ir.BackendServices
	case group == gatewayv1alpha1.Group && kind == KindTailscaleEndpoints:
		return ir.BackendEndpoints
	}
	return ir.BackendOther
}
