// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Changes are the changes that the filters of a backendRef make to the requests of its
// backend. Envoy Gateway ignores filters of references to our kinds.
type Changes struct {
	Request, Response HeaderChange

	// Hostname that requests carry. Empty keeps that of the request.
	Hostname string

	// Refused are the filters that cannot be applied: requests to the backend get a 500 response.
	// They are shown to people.
	Refused []string
}

// RouteKinds are the kinds of routes by their names in manifests.
var RouteKinds = map[string]RouteKind{
	"HTTPRoute": KindHTTPRoute,
	"GRPCRoute": KindGRPCRoute,
	"TCPRoute":  KindTCPRoute,
	"UDPRoute":  KindUDPRoute,
	"TLSRoute":  KindTLSRoute,
}

// A RouteKind is a kind of Gateway API route, as in the names of Envoy Gateway's clusters
// (envoyproxy/gateway internal/gatewayapi/helpers.go).
type RouteKind string

// Kinds of routes.
const (
	KindHTTPRoute RouteKind = "httproute"
	KindGRPCRoute RouteKind = "grpcroute"
	KindTCPRoute  RouteKind = "tcproute"
	KindUDPRoute  RouteKind = "udproute"
	KindTLSRoute  RouteKind = "tlsroute"
)

// Manifest returns the name of the kind in manifests.
func (k RouteKind) Manifest() string {
	for name, kind := range RouteKinds {
		if kind == k {
			return name
		}
	}
	return string(k)
}

// Protocol returns the protocol that backends of the kind speak.
func (k RouteKind) Protocol() Protocol {
	switch k {
	case KindGRPCRoute:
		return ProtocolGRPC
	case KindTCPRoute, KindTLSRoute:
		return ProtocolTCP
	case KindUDPRoute:
		return ProtocolUDP
	case KindHTTPRoute:
		return ProtocolHTTP
	}
	return ProtocolHTTP
}

// A RouteKey names a route.
type RouteKey struct {
	Kind RouteKind
	types.NamespacedName
}

// ClusterName returns Envoy Gateway's name of the cluster of a rule. Names of L4 routes have
// no index (envoyproxy/gateway internal/gatewayapi/helpers.go, irRouteDestinationName).
func (k RouteKey) ClusterName(rule int) string {
	if k.Kind != KindHTTPRoute && k.Kind != KindGRPCRoute {
		rule = -1
	}
	return strings.Join([]string{string(k.Kind), k.Namespace, k.Name, "rule", strconv.Itoa(rule)}, "/")
}

// RulePrefix is the prefix of the names of clusters that hold all backends of a rule.
const RulePrefix = targetPrefix + "/rule/"

// PlaceholderLabel is on the routes that make Envoy Gateway load the objects that L4 routes name
// (package placeholder). Its value is the name of their Gateway, cut to 63 characters.
const PlaceholderLabel = "gateway.tailscale.com/placeholder"

// IsPlaceholder reports whether a route is a placeholder. Placeholders are ignored: they serve
// nothing.
func IsPlaceholder(o metav1.Object) bool {
	_, ok := o.GetLabels()[PlaceholderLabel]
	return ok
}

// A BackendKind is a kind of backend that a route may name.
type BackendKind int

// Kinds of backends.
const (
	// BackendOther is any kind that the extension has no endpoints for.
	BackendOther BackendKind = iota
	BackendService
	BackendServices
	BackendEndpoints
)

// A BackendRef is a backend of a rule.
type BackendRef struct {
	Kind BackendKind
	types.NamespacedName
	Port   int32
	Weight uint32

	// Changes that the reference's filters make. It is nil if there are no filters:
	// otherwise Envoy Gateway makes a cluster for each backend.
	Changes *Changes

	// Index among all references of the rule, including skipped ones. The index of a mirror
	// is that of its filter among the rule's filters: Envoy Gateway names clusters by both.
	Index int
}

// Ours reports whether the backend is of our kinds.
func (b BackendRef) Ours() bool { return b.Kind == BackendServices || b.Kind == BackendEndpoints }

// Target returns the target that the backend names for a kind of route.
func (b BackendRef) Target(k RouteKind) TargetKey {
	t := TargetKey{Kind: TargetServices, Namespace: b.Namespace, Name: b.Name, Port: b.Port, Protocol: k.Protocol()}
	if b.Kind == BackendEndpoints {
		t.Kind = TargetEndpoints
	}
	return t
}

// Failover returns the target of other clusters for a backend that is a Kubernetes Service. False if
// there can be none: the backend is of another kind, or the route is of UDP, which egress proxies do
// not forward to other clusters.
func (b BackendRef) Failover(k RouteKind) (TargetKey, bool) {
	if b.Kind != BackendService || k == KindUDPRoute {
		return TargetKey{}, false
	}
	return TargetKey{Kind: TargetFailover, Namespace: b.Namespace, Name: b.Name, Port: b.Port, Protocol: k.Protocol()}, true
}

// ServicePort returns the Service port that the backend names for a kind of route.
func (b BackendRef) ServicePort(k RouteKind) ServicePort {
	return ServicePort{NamespacedName: b.NamespacedName, Port: b.Port, UDP: k == KindUDPRoute}
}

// A Match is the part of a rule's match that identifies the Envoy routes made of it. Names
// of Envoy routes carry only the rule's index, which another rule may have taken.
type Match struct {
	// Path is the value, and PathType one of Gateway API's types. A GRPCRoute has the ones
	// that Envoy Gateway derives from service and method: Exact /SERVICE/METHOD, PathPrefix
	// /SERVICE, or a RegularExpression; a method alone becomes a header.
	Path, PathType string

	// Method of HTTP. Empty matches all.
	Method string

	// Headers and Query are sorted: NAME=VALUE, or NAME=~VALUE for a regular expression,
	// header names in lower case. A bare NAME stands for any value. A GRPCRoute's method
	// alone is ":path=*/METHOD".
	Headers, Query []string
}

// A Rule of a route.
type Rule struct {
	Name     string
	Matches  []Match
	Backends []BackendRef

	// Mirrors are the targets of RequestMirror filters.
	Mirrors []BackendRef

	// Exclusive reports that the rule has settings that a cluster shared with other routes
	// cannot have, such as session persistence.
	Exclusive bool
}

// Ours reports whether a backend or a mirror of the rule is of our kinds.
func (r Rule) Ours() bool {
	return slices.ContainsFunc(r.Backends, BackendRef.Ours) || slices.ContainsFunc(r.Mirrors, BackendRef.Ours)
}

// OursBackend reports whether a backend of the rule, not only a mirror, is of our kinds.
func (r Rule) OursBackend() bool {
	return slices.ContainsFunc(r.Backends, BackendRef.Ours)
}

// Ours reports whether a backend or a mirror of a rule is of our kinds.
func (r *Route) Ours() bool { return slices.ContainsFunc(r.Rules, Rule.Ours) }

// A RouteInfo is information on a route for people, in addition to what Envoy's
// configuration needs.
type RouteInfo struct {
	// Created is the creation time of the route. The older of two routes with the same match
	// takes precedence, and the settings of a shared cluster are those of the oldest route
	// to its target.
	Created time.Time

	// Hostnames that requests must have. Empty means those of the listeners.
	Hostnames []string

	// Listeners that the route attaches to, sorted: KIND NAMESPACE/NAME, and a section's
	// name or a port if the route has one.
	Listeners []string
}

// A Route is the part of a Gateway API route that hooks need.
type Route struct {
	Key        RouteKey
	Generation int64

	// Gateways that the route attaches to.
	Gateways []types.NamespacedName

	// Failover are the Gateways among them whose routes to Kubernetes Services fail over to other
	// clusters.
	Failover []types.NamespacedName

	// Info is for people. Only the age affects Envoy's configuration.
	Info RouteInfo

	// Rules in order. An L4 route has one rule with the backends of all: Envoy Gateway makes
	// one cluster of them.
	Rules []Rule
}
