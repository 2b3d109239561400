// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// Kinds of objects.
const (
	KindGateway          = "Gateway"
	KindListenerSet      = "ListenerSet"
	KindTailscaleGateway = gatewayv1alpha1.TailscaleGatewayKind
	KindHTTPRoute        = "HTTPRoute"
	KindGRPCRoute        = "GRPCRoute"
	KindTLSPolicy        = "BackendTLSPolicy"
	KindServices         = gatewayv1alpha1.TailscaleServicesKind
)

// A ParentKey identifies a parent of routes: KIND/NAMESPACE/NAME.
type ParentKey string

// KeyOf returns the key of a parent.
func KeyOf(kind string, n types.NamespacedName) ParentKey {
	return ParentKey(kind + "/" + n.String())
}

// ParentOf returns the parent of a route's reference. It returns false if the parent is neither
// a Gateway nor a ListenerSet.
func ParentOf(r gwapiv1.ParentReference, namespace string) (ParentKey, bool) {
	if ptr.Deref(r.Group, gwapiv1.GroupName) != gwapiv1.GroupName {
		return "", false
	}
	n := types.NamespacedName{Namespace: string(ptr.Deref(r.Namespace, gwapiv1.Namespace(namespace))), Name: string(r.Name)}
	switch k := string(ptr.Deref(r.Kind, KindGateway)); k {
	case KindGateway, KindListenerSet:
		return KeyOf(k, n), true
	}
	return "", false
}

// Split returns the kind and the name.
func (k ParentKey) Split() (string, types.NamespacedName) {
	kind, rest, _ := strings.Cut(string(k), "/")
	ns, name, _ := strings.Cut(rest, "/")
	return kind, types.NamespacedName{Namespace: ns, Name: name}
}

// A Listener of a Gateway, or of one of its ListenerSets.
type Listener struct {
	Parent    ParentKey
	namespace string

	Name     gwapiv1.SectionName
	Port     int32
	Protocol gwapiv1.ProtocolType
	hostname string
	allowed  *gwapiv1.AllowedRoutes
}

// Listeners returns the listeners of a Gateway, followed by those of its ListenerSets.
func Listeners(g *gwapiv1.Gateway, sets []*gwapiv1.ListenerSet) []Listener {
	if g == nil {
		return nil
	}
	var out []Listener
	for _, l := range g.Spec.Listeners {
		out = append(out, Listener{
			Parent: KeyOf(KindGateway, types.NamespacedName{Namespace: g.Namespace, Name: g.Name}), namespace: g.Namespace,
			Name: l.Name, Port: l.Port, Protocol: l.Protocol, hostname: string(ptr.Deref(l.Hostname, "")), allowed: l.AllowedRoutes,
		})
	}
	for _, s := range sets {
		for _, l := range s.Spec.Listeners {
			out = append(out, Listener{
				Parent: KeyOf(KindListenerSet, types.NamespacedName{Namespace: s.Namespace, Name: s.Name}), namespace: s.Namespace,
				Name: l.Name, Port: l.Port, Protocol: l.Protocol, hostname: string(ptr.Deref(l.Hostname, "")), allowed: l.AllowedRoutes,
			})
		}
	}
	return out
}

// accepts reports whether the listener accepts requests for one of the hosts. No hosts means all.
func (l Listener) accepts(hosts []string) bool {
	return len(hosts) == 0 || slices.ContainsFunc(hosts, func(h string) bool { return hostsOverlap(l.hostname, h) })
}

// hosts returns the hosts of requests that reach a route with the given host names at the
// listener. For each matching pair that is the more specific one. For a route without host
// names it is the listener's host name, which may be empty.
func (l Listener) hosts(hostnames []string) []string {
	if len(hostnames) == 0 {
		return []string{strings.ToLower(l.hostname)}
	}
	var out []string
	for _, h := range hostnames {
		if hostsOverlap(l.hostname, h) {
			out = append(out, strings.ToLower(narrower(l.hostname, h)))
		}
	}
	return out
}

// hostsOverlap reports whether two patterns have a host in common. An empty pattern matches all
// hosts.
func hostsOverlap(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == "" || b == "" || a == b {
		return true
	}
	_, suffixA, wildA := strings.Cut(a, "*")
	_, suffixB, wildB := strings.Cut(b, "*")
	return wildA && strings.HasSuffix(b, suffixA) || wildB && strings.HasSuffix(a, suffixB)
}

// narrower returns the more specific one of two overlapping host patterns.
func narrower(a, b string) string {
	wildA, wildB := strings.HasPrefix(a, "*"), strings.HasPrefix(b, "*")
	if a != "" && wildB && (!wildA || len(a) > len(b)) {
		return a
	}
	return b
}
