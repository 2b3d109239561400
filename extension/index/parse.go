// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

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
)

// Kinds that references name.
const (
	kindService            = "Service"
	kindGateway            = "Gateway"
	kindListenerSet        = "ListenerSet"
	kindTailscaleServices  = "TailscaleServices"
	kindTailscaleEndpoints = "TailscaleEndpoints"
	kindRoutePolicy        = "TailscaleRoutePolicy"
	kindTrafficPolicy      = "BackendTrafficPolicy"
	groupEnvoyGateway      = "gateway.envoyproxy.io"
)

// routeKinds by the kind in manifests.
var routeKinds = map[string]RouteKind{ //nolint:gochecknoglobals // A constant map.
	"HTTPRoute": KindHTTPRoute,
	"GRPCRoute": KindGRPCRoute,
	"TCPRoute":  KindTCPRoute,
	"UDPRoute":  KindUDPRoute,
	"TLSRoute":  KindTLSRoute,
}

// What Envoy Gateway takes for any service and any method of gRPC
// (internal/gatewayapi/route.go).
const (
	anyGRPCService = `(?i)\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*`
	anyGRPCMethod  = `[A-Za-z_][A-Za-z_0-9]*`
)

// A parent that a route attaches to.
type parent struct {
	listenerSet bool
	types.NamespacedName

	// section is one listener of it. Empty means all.
	section string
}

// A parsedRoute is what is kept of a route.
type parsedRoute struct {
	route   Route
	labels  map[string]string
	parents []parent
}

// ours reports whether a rule names one of our kinds.
func (p *parsedRoute) ours() bool { return slices.ContainsFunc(p.route.Rules, Rule.Ours) }

// ParseRoute of any kind, without its Gateways: only a Store knows those of ListenerSets.
// It returns nil for what is no route.
func ParseRoute(o client.Object) *Route {
	p := parseRoute(o)
	if p == nil {
		return nil
	}
	return &p.route
}

// parseRoute returns nil for what is no route.
func parseRoute(o client.Object) *parsedRoute {
	p := &parsedRoute{labels: o.GetLabels(), route: Route{
		Key:        RouteKey{NamespacedName: client.ObjectKeyFromObject(o)},
		Generation: o.GetGeneration(),
		About:      About{Created: o.GetCreationTimestamp().UTC()},
	}}
	ns := o.GetNamespace()
	var parents []gwapiv1.ParentReference
	var hosts []gwapiv1.Hostname
	switch r := o.(type) {
	case *gwapiv1.HTTPRoute:
		p.route.Key.Kind, parents, hosts = KindHTTPRoute, r.Spec.ParentRefs, r.Spec.Hostnames
		for _, rule := range r.Spec.Rules {
			p.route.Rules = append(p.route.Rules, parseHTTPRule(ns, rule))
		}
	case *gwapiv1.GRPCRoute:
		p.route.Key.Kind, parents, hosts = KindGRPCRoute, r.Spec.ParentRefs, r.Spec.Hostnames
		for _, rule := range r.Spec.Rules {
			p.route.Rules = append(p.route.Rules, parseGRPCRule(ns, rule))
		}
	case *gwapiv1.TCPRoute:
		p.route.Key.Kind, parents = KindTCPRoute, r.Spec.ParentRefs
		for _, rule := range r.Spec.Rules {
			p.addL4(ns, rule.Name, rule.BackendRefs)
		}
	case *gwapiv1.UDPRoute:
		p.route.Key.Kind, parents = KindUDPRoute, r.Spec.ParentRefs
		for _, rule := range r.Spec.Rules {
			p.addL4(ns, rule.Name, rule.BackendRefs)
		}
	case *gwapiv1.TLSRoute:
		p.route.Key.Kind, parents, hosts = KindTLSRoute, r.Spec.ParentRefs, r.Spec.Hostnames
		for _, rule := range r.Spec.Rules {
			p.addL4(ns, rule.Name, rule.BackendRefs)
		}
	default:
		return nil
	}
	p.parents = parseParents(ns, parents)
	for _, h := range hosts {
		p.route.About.Hostnames = append(p.route.About.Hostnames, string(h))
	}
	p.route.About.Listeners = listenerNames(ns, parents)
	return p
}

// listenerNames are what people call the listeners that a route attaches to.
func listenerNames(ns string, refs []gwapiv1.ParentReference) []string {
	var out []string
	for _, r := range refs {
		if ptr.Deref(r.Group, gwapiv1.GroupName) != gwapiv1.GroupName {
			continue
		}
		name := fmt.Sprintf("%s %s/%s", ptr.Deref(r.Kind, kindGateway), ptr.Deref(r.Namespace, gwapiv1.Namespace(ns)), r.Name)
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

// addL4 adds the backends of a rule to the one that an L4 route has. Several rules have
// one cluster together, which no share of one of them could stand for.
func (p *parsedRoute) addL4(ns string, name *gwapiv1.SectionName, refs []gwapiv1.BackendRef) {
	if len(p.route.Rules) == 0 {
		p.route.Rules = []Rule{{Name: string(ptr.Deref(name, ""))}}
	}
	r := &p.route.Rules[0]
	r.Own = len(r.Backends) > 0
	for _, b := range refs {
		r.Backends = append(r.Backends, parseBackend(ns, b, len(r.Backends), nil))
	}
}

func parseParents(ns string, refs []gwapiv1.ParentReference) []parent {
	var out []parent
	for _, r := range refs {
		if ptr.Deref(r.Group, gwapiv1.GroupName) != gwapiv1.GroupName {
			continue
		}
		n := types.NamespacedName{Namespace: string(ptr.Deref(r.Namespace, gwapiv1.Namespace(ns))), Name: string(r.Name)}
		switch ptr.Deref(r.Kind, kindGateway) {
		case kindGateway:
			out = append(out, parent{NamespacedName: n, section: string(ptr.Deref(r.SectionName, ""))})
		case kindListenerSet:
			out = append(out, parent{NamespacedName: n, section: string(ptr.Deref(r.SectionName, "")), listenerSet: true})
		}
	}
	return out
}

func parseHTTPRule(ns string, in gwapiv1.HTTPRouteRule) Rule {
	r := Rule{Name: string(ptr.Deref(in.Name, "")), Own: in.SessionPersistence != nil}
	for _, m := range in.Matches {
		out := Match{Method: string(ptr.Deref(m.Method, ""))}
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
	for i, b := range in.BackendRefs {
		r.Backends = append(r.Backends, parseBackend(ns, b.BackendRef, i, httpChanges(b.Filters)))
	}
	for i, f := range in.Filters {
		if f.RequestMirror != nil {
			r.Mirrors = append(r.Mirrors, parseBackend(ns, gwapiv1.BackendRef{BackendObjectReference: f.RequestMirror.BackendRef}, i, nil))
		}
	}
	return r
}

// condition on a header or a parameter, as Match has it.
func condition(name, value string, regular bool) string {
	if regular {
		return name + "=~" + value
	}
	return name + "=" + value
}

func parseGRPCRule(ns string, in gwapiv1.GRPCRouteRule) Rule {
	r := Rule{Name: string(ptr.Deref(in.Name, "")), Own: in.SessionPersistence != nil}
	for _, m := range in.Matches {
		out := parseGRPCMethod(m.Method)
		for _, h := range m.Headers {
			out.Headers = append(out.Headers, condition(strings.ToLower(string(h.Name)), h.Value, ptr.Deref(h.Type, "") == gwapiv1.GRPCHeaderMatchRegularExpression))
		}
		slices.Sort(out.Headers)
		r.Matches = append(r.Matches, out)
	}
	for i, b := range in.BackendRefs {
		r.Backends = append(r.Backends, parseBackend(ns, b.BackendRef, i, grpcChanges(b.Filters)))
	}
	for i, f := range in.Filters {
		if f.RequestMirror != nil {
			r.Mirrors = append(r.Mirrors, parseBackend(ns, gwapiv1.BackendRef{BackendObjectReference: f.RequestMirror.BackendRef}, i, nil))
		}
	}
	return r
}

// parseGRPCMethod makes of a method what Envoy Gateway does
// (internal/gatewayapi/route.go, processGRPCRouteMethodExact and
// processGRPCRouteMethodRegularExpression).
func parseGRPCMethod(m *gwapiv1.GRPCMethodMatch) Match {
	if m == nil || m.Service == nil && m.Method == nil {
		return Match{}
	}
	regular := ptr.Deref(m.Type, gwapiv1.GRPCMethodMatchExact) == gwapiv1.GRPCMethodMatchRegularExpression
	switch {
	case regular:
		return Match{
			Path:     "/" + ptr.Deref(m.Service, anyGRPCService) + "/" + ptr.Deref(m.Method, anyGRPCMethod),
			PathType: string(gwapiv1.PathMatchRegularExpression),
		}
	case m.Method == nil:
		return Match{Path: "/" + *m.Service, PathType: string(gwapiv1.PathMatchPathPrefix)}
	case m.Service == nil:
		// A path cannot be matched by its end: a header is.
		return Match{Headers: []string{":path=*/" + *m.Method}}
	}
	return Match{Path: "/" + *m.Service + "/" + *m.Method, PathType: string(gwapiv1.PathMatchExact)}
}

func parseBackend(ns string, b gwapiv1.BackendRef, i int, changes *Changes) BackendRef {
	return BackendRef{
		Kind: backendKind(string(ptr.Deref(b.Group, "")), string(ptr.Deref(b.Kind, kindService))),
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

func backendKind(group, kind string) BackendKind {
	switch {
	case group == "" && kind == kindService:
		return BackendService
	case group == gatewayv1alpha1.Group && kind == kindTailscaleServices:
		return BackendServices
	case group == gatewayv1alpha1.Group && kind == kindTailscaleEndpoints:
		return BackendEndpoints
	}
	return BackendOther
}
