// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// A Guard describes which requests a policy applies to. The actions of the policy do not
// matter, nor does its effect: a policy that Envoy Gateway refuses, or that a more specific one
// replaces, was also meant to protect a backend.
type Guard struct {
	group, kind string
	types.NamespacedName

	targets   []guardTarget
	selectors []guardSelector

	// elsewhere means that the policy has a target of a kind that is unknown here. It counts for all
	// objects of the policy's namespace.
	elsewhere bool
}

// String returns the kind, namespace and name.
func (g *Guard) String() string { return g.kind + " " + g.NamespacedName.String() }

// referrer returns the referrer of the policy's selectors.
func (g *Guard) referrer() refgrant.Referrer {
	return refgrant.Referrer{Group: gwapiv1.Group(g.group), Kind: gwapiv1.Kind(g.kind), Namespace: g.Namespace}
}

// A guardTarget is a target of a policy in its namespace. An empty section means the whole
// object.
type guardTarget struct{ kind, name, section string }

// A guardSelector selects targets of a policy by labels, in other namespaces as well if these
// permit it. The labels of namespaces are unknown here, so a policy that selects namespaces
// selects all.
type guardSelector struct {
	kind     string
	labels   labels.Selector
	anywhere bool
}

// RoutePolicyGuard returns the guard for a TailscaleRoutePolicy.
func RoutePolicyGuard(p *gatewayv1alpha1.TailscaleRoutePolicy) *Guard {
	g := &Guard{
		group: gatewayv1alpha1.Group, kind: gatewayv1alpha1.TailscaleRoutePolicyKind,
		NamespacedName: types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()},
	}
	g.addTargets(p.Spec.TargetRefs)
	return g
}

// PolicyGuard returns the guard for a policy of Envoy Gateway (envoyproxy/gateway v1.9
// api/v1alpha1/policy_helpers.go and internal/gatewayapi/helpers.go).
func PolicyGuard(o *unstructured.Unstructured) (*Guard, error) {
	t := parse.PolicyTargets{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &t); err != nil {
		return nil, errors.Wrapf(err, "cannot decode %s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
	}
	g := &Guard{
		group: parse.GroupEnvoyGateway, kind: o.GetKind(),
		NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()},
	}
	if t.Spec.TargetRef != nil {
		g.addTargets([]gwapiv1.LocalPolicyTargetReferenceWithSectionName{*t.Spec.TargetRef})
	}
	g.addTargets(t.Spec.TargetRefs)
	for _, s := range t.Spec.TargetSelectors {
		l, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions})
		if err != nil {
			l = labels.Everything()
		}
		g.elsewhere = g.elsewhere || !isTarget(ptr.Deref(s.Group, gwapiv1.GroupName), s.Kind)
		g.selectors = append(g.selectors, guardSelector{
			kind: string(s.Kind), labels: l, anywhere: s.Namespaces != nil && s.Namespaces.From != "" && s.Namespaces.From != "Same",
		})
	}
	return g, nil
}

// kindGatewayClass is the kind of a policy's target for all Gateways of a class.
const kindGatewayClass = "GatewayClass"

// targetKinds are the kinds of Gateway API that a policy may target and that are read here.
var targetKinds = map[string]bool{
	kindGatewayClass: true, routes.KindGateway: true, routes.KindListenerSet: true,
	routes.KindHTTPRoute: true, routes.KindGRPCRoute: true, "TCPRoute": true, "TLSRoute": true, "UDPRoute": true,
}

// isTarget reports whether a policy may target objects of a kind that are read here.
func isTarget(group gwapiv1.Group, kind gwapiv1.Kind) bool {
	return group == gwapiv1.GroupName && targetKinds[string(kind)]
}

// addTargets adds references.
func (g *Guard) addTargets(refs []gwapiv1.LocalPolicyTargetReferenceWithSectionName) {
	for _, r := range refs {
		if !isTarget(r.Group, r.Kind) {
			g.elsewhere = true
		} else {
			g.targets = append(g.targets, guardTarget{kind: string(r.Kind), name: string(r.Name), section: string(ptr.Deref(r.SectionName, ""))})
		}
	}
}

// A guarded object is a possible target of a policy.
type guarded struct {
	kind string
	types.NamespacedName

	labels map[string]string
}

// covers reports whether a policy applies to a whole object, or returns the sections that it
// applies to. An unknown section counts as the whole object, because the policy was meant to
// protect a part of it.
func (g *Guard) covers(o guarded, names []string, grants refgrant.Grants) (whole bool, sections []string) {
	if g.elsewhere && g.Namespace == o.Namespace {
		return true, nil
	}
	for _, t := range g.targets {
		if t.kind != o.kind || t.name != o.Name || g.Namespace != o.Namespace {
			continue
		}
		if !slices.Contains(names, t.section) || t.section == "" {
			return true, nil
		}
		sections = append(sections, t.section)
	}
	for _, s := range g.selectors {
		reaches := g.Namespace == o.Namespace || s.anywhere && grants.Permit(g.referrer(), gwapiv1.GroupName, gwapiv1.Kind(o.kind), o.NamespacedName)
		if s.kind == o.kind && reaches && s.labels.Matches(labels.Set(o.labels)) {
			return true, nil
		}
	}
	return false, sections
}

// coversClass reports whether a policy applies to all Gateways of a class. A class has no namespace.
func (g *Guard) coversClass(class gwapiv1.ObjectName) bool {
	return slices.ContainsFunc(g.targets, func(t guardTarget) bool { return t.kind == kindGatewayClass && t.name == string(class) })
}

// Facts are what protection depends on, apart from the routes. The objects are read-only.
type Facts struct {
	// Gateway is nil if it does not exist.
	Gateway *gwapiv1.Gateway
	Sets    []*gwapiv1.ListenerSet

	// Guards are the policies that may protect backends, in any order.
	Guards []*Guard

	// Grants are the ReferenceGrants of all namespaces.
	Grants refgrant.Grants

	// Permitted reports whether a route may reference a Service.
	Permitted func(ir.RouteKey, ir.BackendRef) bool
}

// Protectors returns what protects the Services behind routes: the first policy by kind, namespace
// and name, or else the client certificates that a listener requires, or a filter of a rule. The
// ports of a Service are not distinguished, because several ports may lead to the same port of a
// pod.
func (f Facts) Protectors(userRoutes []*routes.Route, ls []routes.Listener) map[types.NamespacedName]string {
	guards := slices.SortedFunc(slices.Values(f.Guards), func(a, b *Guard) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), ir.CompareNames(a.NamespacedName, b.NamespacedName))
	})
	out := map[types.NamespacedName]string{}
	candidates := newGuardedRoutes(userRoutes)
	for _, g := range guards {
		at := f.guardedListeners(g, ls)
		reached := candidates.reach(g, f.Grants)
		if len(at) > 0 {
			reached = userRoutes
		}
		for _, r := range reached {
			behind := f.guardedBackends(g, r)
			if slices.ContainsFunc(r.Listeners, func(l routes.Listener) bool { return at[key(l)] }) {
				behind = r.Backends(f.Permitted)
			}
			protectAll(out, behind, g.String())
		}
	}
	for _, r := range userRoutes {
		if slices.ContainsFunc(r.Listeners, f.validatesClients) {
			protectAll(out, r.Backends(f.Permitted), "tls.frontend of Gateway "+f.Gateway.Namespace+"/"+f.Gateway.Name)
		}
		// In the order of the rules: of several filters that protect a Service, the first is reported.
		for _, i := range slices.Sorted(maps.Keys(r.Filters)) {
			protectAll(out, r.BackendsWhere(f.Permitted, func(rule int) bool { return rule == i }), "Filter "+r.Filters[i]+" of "+r.Kind+" "+r.Key.String())
		}
	}
	return out
}

// guardedRoutes finds the routes that a policy may apply to: with as many policies as routes, each
// policy cannot look at each route.
type guardedRoutes struct {
	byNamespace map[string][]*routes.Route
	byID        map[routes.ID]*routes.Route
}

func newGuardedRoutes(all []*routes.Route) guardedRoutes {
	out := guardedRoutes{byNamespace: map[string][]*routes.Route{}, byID: map[routes.ID]*routes.Route{}}
	for _, r := range all {
		out.byNamespace[r.Key.Namespace] = append(out.byNamespace[r.Key.Namespace], r)
		out.byID[routes.ID{Kind: r.Kind, NamespacedName: r.Key.NamespacedName}] = r
	}
	return out
}

// reach returns the routes that a policy may apply to by its own targets and selectors.
func (rs guardedRoutes) reach(g *Guard, grants refgrant.Grants) []*routes.Route {
	if slices.ContainsFunc(g.selectors, func(s guardSelector) bool { return s.anywhere }) {
		out := slices.Clone(rs.byNamespace[g.Namespace])
		for n := range grants.Namespaces(g.referrer()) {
			out = append(out, rs.byNamespace[n]...)
		}
		return out
	}
	if g.elsewhere || len(g.selectors) > 0 {
		return rs.byNamespace[g.Namespace]
	}
	var out []*routes.Route
	for _, t := range g.targets {
		r := rs.byID[routes.ID{Kind: t.kind, NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: t.name}}]
		if r != nil && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// protectAll adds what protects backends, except those with an earlier entry.
func protectAll(out map[types.NamespacedName]string, backends []ir.BackendRef, protector string) {
	for _, b := range backends {
		if out[b.NamespacedName] == "" {
			out[b.NamespacedName] = protector
		}
	}
}

// validatesClients reports whether the Gateway requires certificates of the clients of a listener
// (envoyproxy/gateway v1.9 internal/gatewayapi/listener.go).
func (f Facts) validatesClients(l routes.Listener) bool {
	if f.Gateway == nil {
		return false
	}
	tls := f.Gateway.Spec.TLS
	if tls == nil || tls.Frontend == nil || l.Protocol != gwapiv1.HTTPSProtocolType {
		return false
	}
	for _, p := range tls.Frontend.PerPort {
		if p.Port == l.Port {
			return p.TLS.Validation != nil
		}
	}
	return tls.Frontend.Default.Validation != nil
}

// A listenerKey identifies a listener among those of a Gateway and its ListenerSets.
type listenerKey struct {
	parent routes.ParentKey
	name   gwapiv1.SectionName
}

// key returns the key of a listener.
func key(l routes.Listener) listenerKey { return listenerKey{parent: l.Parent, name: l.Name} }

// guardedListeners returns the listeners that a policy applies to. A policy for the Gateway
// applies to all of them.
func (f Facts) guardedListeners(g *Guard, ls []routes.Listener) map[listenerKey]bool {
	if f.Gateway == nil {
		return nil
	}
	parents := []guarded{{
		kind: routes.KindGateway, labels: f.Gateway.Labels,
		NamespacedName: types.NamespacedName{Namespace: f.Gateway.Namespace, Name: f.Gateway.Name},
	}}
	for _, s := range f.Sets {
		parents = append(parents, guarded{
			kind: routes.KindListenerSet, labels: s.Labels,
			NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Name},
		})
	}
	out := map[listenerKey]bool{}
	if g.coversClass(f.Gateway.Spec.GatewayClassName) {
		for _, l := range ls {
			out[key(l)] = true
		}
	}
	for _, p := range parents {
		var names []string
		for _, l := range ls {
			if l.Parent == routes.KeyOf(p.kind, p.NamespacedName) {
				names = append(names, string(l.Name))
			}
		}
		whole, sections := g.covers(p, names, f.Grants)
		for _, l := range ls {
			own := l.Parent == routes.KeyOf(p.kind, p.NamespacedName)
			if own && (whole || slices.Contains(sections, string(l.Name))) || whole && p.kind == routes.KindGateway {
				out[key(l)] = true
			}
		}
	}
	return out
}

// guardedBackends returns the backends of the rules that a policy applies to.
func (f Facts) guardedBackends(g *Guard, r *routes.Route) []ir.BackendRef {
	var names []string
	for _, rule := range r.Rules {
		names = append(names, rule.Name)
	}
	whole, sections := g.covers(guarded{kind: r.Kind, NamespacedName: r.Key.NamespacedName, labels: r.Labels}, names, f.Grants)
	if whole {
		return r.Backends(f.Permitted)
	}
	if len(sections) == 0 {
		return nil
	}
	return r.BackendsWhere(f.Permitted, func(rule int) bool { return slices.Contains(sections, names[rule]) })
}
