// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A RouteKind is a kind of Gateway API's routes, as it stands in the names of Envoy
// Gateway's clusters (envoyproxy/gateway internal/gatewayapi/helpers.go).
type RouteKind string

// Kinds of routes.
const (
	KindHTTPRoute RouteKind = "httproute"
	KindGRPCRoute RouteKind = "grpcroute"
	KindTCPRoute  RouteKind = "tcproute"
	KindUDPRoute  RouteKind = "udproute"
	KindTLSRoute  RouteKind = "tlsroute"
)

// Protocol that backends of the kind are spoken to in.
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

// ClusterName is what Envoy Gateway calls the cluster of a rule: those of L4 routes
// have no index (envoyproxy/gateway internal/gatewayapi/helpers.go,
// irRouteDestinationName).
func (k RouteKey) ClusterName(rule int) string {
	if k.Kind != KindHTTPRoute && k.Kind != KindGRPCRoute {
		rule = -1
	}
	return strings.Join([]string{string(k.Kind), k.Namespace, k.Name, "rule", strconv.Itoa(rule)}, "/")
}

// RulePrefix is what the names of clusters begin with that hold all backends of a rule.
const RulePrefix = targetPrefix + "/rule/"

// AnchorLabel is on the routes that have Envoy Gateway load what L4 routes name
// (package placeholder). Its value is the name of their Gateway, cut to 63 characters.
const AnchorLabel = "gateway.tailscale.com/anchor"

// IsAnchor reports whether a route is such a one. It is passed over: nothing is served by
// it.
func IsAnchor(o metav1.Object) bool {
	_, ok := o.GetLabels()[AnchorLabel]
	return ok
}

// A BackendKind is a kind of backend that a route may name.
type BackendKind int

// Kinds of backends.
const (
	// BackendOther is none that we can give endpoints for.
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

	// Changes that the reference's filters make. Nil is none: where there are some Envoy
	// Gateway makes a cluster for each backend.
	Changes *Changes

	// Index among all references of the rule, those that are skipped included. Of
	// a mirror it is the index of its filter among the rule's filters: Envoy
	// Gateway names clusters by both.
	Index int
}

// Ours reports whether the backend is of our kinds.
func (b BackendRef) Ours() bool { return b.Kind == BackendServices || b.Kind == BackendEndpoints }

// Target that the backend is, spoken to as a kind of route does.
func (b BackendRef) Target(k RouteKind) TargetKey {
	t := TargetKey{Kind: TargetServices, Namespace: b.Namespace, Name: b.Name, Port: b.Port, Protocol: k.Protocol()}
	if b.Kind == BackendEndpoints {
		t.Kind = TargetEndpoints
	}
	return t
}

// ServicePort that the backend is, if it is a Service, for a kind of route.
func (b BackendRef) ServicePort(k RouteKind) ServicePort {
	return ServicePort{NamespacedName: b.NamespacedName, Port: b.Port, UDP: k == KindUDPRoute}
}

// A Match is enough of a rule's match to report whether an Envoy route was made of
// it. Names carry only the rule's index, which another rule may have taken.
type Match struct {
	// Path is the value, and PathType one of Gateway API's types. A GRPCRoute's are
	// those that Envoy Gateway makes of service and method: Exact /SERVICE/METHOD,
	// PathPrefix /SERVICE, or a RegularExpression; a method alone is a header.
	Path, PathType string

	// Method of HTTP. Empty matches all.
	Method string

	// Headers and Query are sorted: NAME=VALUE, or NAME=~VALUE for a regular
	// expression, names in lower case for headers. A bare NAME stands for any
	// value. A GRPCRoute's method alone is ":path=*/METHOD".
	Headers, Query []string
}

// A Rule of a route.
type Rule struct {
	Name     string
	Matches  []Match
	Backends []BackendRef

	// Mirrors are the targets of RequestMirror filters.
	Mirrors []BackendRef

	// Own reports that the rule asks for something that a cluster shared with other
	// routes cannot give, such as session persistence.
	Own bool
}

// Ours reports whether a backend or a mirror of the rule is of our kinds.
func (r Rule) Ours() bool {
	return slices.ContainsFunc(r.Backends, BackendRef.Ours) || slices.ContainsFunc(r.Mirrors, BackendRef.Ours)
}

// OursBackend reports whether a backend of the rule, and not only a mirror, is of our
// kinds.
func (r Rule) OursBackend() bool {
	return slices.ContainsFunc(r.Backends, BackendRef.Ours)
}

// An About is what people want to know of a route beside what is made of it.
type About struct {
	// Created is when the route was made: of two that match alike, the older counts, and
	// the oldest to a target gives the cluster that they share its settings.
	Created time.Time

	// Hostnames that requests must have. None means those of the listeners.
	Hostnames []string

	// Listeners that it attaches to, sorted: KIND NAMESPACE/NAME, with a section's
	// name or a port if it says so.
	Listeners []string
}

// A Route is what hooks need of a Gateway API route.
type Route struct {
	Key        RouteKey
	Generation int64

	// Gateways that the route attaches to.
	Gateways []types.NamespacedName

	// About is for people: of it only the age has a part in what Envoy gets.
	About About

	// Rules in order. L4 routes have one that holds the backends of all: Envoy
	// Gateway makes one cluster of them.
	Rules []Rule
}
