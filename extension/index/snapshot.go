// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// A Snapshot is what was known at one moment. It never changes, and reading it
// neither blocks nor calls anything.
type Snapshot struct {
	// Revision of what clusters and routes are made of: it is greater when a route
	// that names one of ours has changed, a Shape, or what is permitted. Changes of
	// endpoints leave it alone. It counts in this process alone.
	Revision uint64

	// Digest of the same. It is equal in every process that knows the same
	// objects, in whatever order it came to know them.
	Digest uint64

	// PolicyRevision is greater when something else is known of TailscaleRoutePolicies.
	PolicyRevision uint64

	routes  map[RouteKey]*Route
	targets map[TargetKey]*Target

	// gateways are digests of what the routes of a Gateway rest on.
	gateways map[types.NamespacedName]digest

	// abouts are what people want to know of Gateways.
	abouts map[types.NamespacedName]*AboutGateway

	// identified are the listeners of Gateways that are told by headers who asks.
	identified map[types.NamespacedName][]IdentityListener

	// services are the endpoints of Kubernetes Services that rules name beside
	// ours, by Service and port.
	services map[ServicePort][]Locality

	// pinned are the routes whose clusters a policy below Gateway level has settings
	// of. A rule's name stands for one rule, the empty one for all.
	pinned map[RouteKey]map[string]bool

	// tunings of endpoint lists, by route and by rule's name.
	tunings map[RouteKey]map[string]Tuning

	// wide are the names of the BackendTrafficPolicies of whole Gateways, by the routes that
	// attach to these.
	wide map[RouteKey][]types.NamespacedName

	// granted are the references across namespaces that a ReferenceGrant allows.
	granted map[reference]bool

	// policies are the TailscaleRoutePolicies, and attached their rules by what they
	// are attached to, in the order in which they are asked.
	policies map[types.NamespacedName]*RoutePolicy
	attached map[PolicyTarget][]*PolicyRule

	// keyPairs of Secrets whose certificates are presented.
	keyPairs map[types.NamespacedName]*KeyPair

	// certificates that Gateways present.
	certificates map[types.NamespacedName]*ClientCertificate

	// bootstrapped are the Gateways whose Envoys have the authority tailscale.
	bootstrapped map[types.NamespacedName]bool
}

// A ServicePort is a port of a Kubernetes Service.
type ServicePort struct {
	types.NamespacedName
	Port int32

	// UDP reports that it is the port of UDP. A Service may have both.
	UDP bool
}

// A reference from the routes of a namespace to an object of another one.
type reference struct {
	kind      RouteKind
	namespace string
	to        BackendKind

	// object without a name stands for all of the namespace.
	object types.NamespacedName
}

// A Grant is what a ReferenceGrant allows: routes of one kind in a namespace may
// name an object of another one, or all of the kind there if Object has no name.
type Grant struct {
	Kind      RouteKind
	Namespace string
	To        BackendKind
	Object    types.NamespacedName
}

// Contents is what a Snapshot is made of. All of it may be empty.
type Contents struct {
	Revision uint64
	Routes   []*Route
	Targets  []*Target
	Services map[ServicePort][]Locality

	// Pinned are names of rules with a policy of clusters below Gateway level by route,
	// the empty name for the whole route.
	Pinned map[RouteKey][]string

	// Tunings of endpoint lists by route and by rule's name, the empty name for rules
	// that have none.
	Tunings map[RouteKey]map[string]Tuning

	// Wide are the names of the BackendTrafficPolicies of whole Gateways, by the routes that
	// attach to these.
	Wide map[RouteKey][]types.NamespacedName

	Grants []Grant

	Gateways map[types.NamespacedName]*AboutGateway

	Policies []*RoutePolicy

	// Identified are the listeners of Gateways that are told by headers who asks.
	Identified map[types.NamespacedName][]IdentityListener

	// KeyPairs of Secrets whose certificates are presented.
	KeyPairs map[types.NamespacedName]*KeyPair

	// Certificates that Gateways present.
	Certificates map[types.NamespacedName]*ClientCertificate

	// Bootstrapped are the Gateways whose Envoys have the authority tailscale.
	Bootstrapped map[types.NamespacedName]bool
}

// NewSnapshot of what is known. It keeps what it is given: nothing of it may be
// changed after. Of several with one key the last counts.
func NewSnapshot(c Contents) *Snapshot {
	s := &Snapshot{
		Revision: c.Revision,
		routes:   make(map[RouteKey]*Route, len(c.Routes)),
		targets:  make(map[TargetKey]*Target, len(c.Targets)),
		services: c.Services,
		abouts:   c.Gateways,
		pinned:   make(map[RouteKey]map[string]bool, len(c.Pinned)),
		tunings:  c.Tunings,
		wide:     c.Wide,
		granted:  make(map[reference]bool, len(c.Grants)),
		policies: make(map[types.NamespacedName]*RoutePolicy, len(c.Policies)),

		identified: c.Identified,
		keyPairs:   c.KeyPairs,

		certificates: c.Certificates,
		bootstrapped: c.Bootstrapped,
	}
	for _, r := range c.Routes {
		s.routes[r.Key] = r
	}
	for _, p := range c.Policies {
		s.policies[p.Name] = p
	}
	s.attached = attachedRules(maps.Values(s.policies))
	for _, t := range c.Targets {
		s.targets[t.Key] = t
	}
	for k, names := range c.Pinned {
		s.pinned[k] = make(map[string]bool, len(names))
		for _, n := range names {
			s.pinned[k][n] = true
		}
	}
	for _, g := range c.Grants {
		s.granted[reference{kind: g.Kind, namespace: g.Namespace, to: g.To, object: g.Object}] = true
	}
	return s
}

// Route returns nil for one that is not known.
func (s *Snapshot) Route(k RouteKey) *Route { return s.routes[k] }

// Routes are all that are known, in no order.
func (s *Snapshot) Routes() iter.Seq[*Route] { return maps.Values(s.routes) }

// Target returns nil for one that no route names.
func (s *Snapshot) Target(k TargetKey) *Target { return s.targets[k] }

// Targets are all that routes name, in no order.
func (s *Snapshot) Targets() iter.Seq[*Target] { return maps.Values(s.targets) }

// Service returns the endpoints of a Kubernetes Service that a rule names beside
// one of ours.
func (s *Snapshot) Service(p ServicePort) []Locality { return s.services[p] }

// Pinned reports whether a policy with settings of clusters is attached to the route, or
// to the rule: then its clusters are its own. One that only says how requests are
// treated, such as by timeouts and retries, pins nothing.
func (s *Snapshot) Pinned(k RouteKey, rule string) bool {
	p := s.pinned[k]
	return p[""] || rule != "" && p[rule]
}

// Wide reports whether a BackendTrafficPolicy is known to be for all routes of a Gateway
// that the route attaches to. Those of Gateways that it picks by label are not known.
func (s *Snapshot) Wide(k RouteKey, policy types.NamespacedName) bool {
	return slices.Contains(s.wide[k], policy)
}

// Tuning that policies ask of the endpoint lists of a rule.
func (s *Snapshot) Tuning(k RouteKey, rule string) Tuning { return s.tunings[k][rule] }

// Permitted reports whether a route may refer to an object: in its own namespace
// always, in others if a ReferenceGrant says so. L4 routes may never refer to one of
// ours in another namespace: Envoy Gateway drops such references before it looks at
// grants (internal/provider/kubernetes/routes.go).
func (s *Snapshot) Permitted(k RouteKey, b BackendRef) bool {
	if b.Namespace == k.Namespace {
		return true
	}
	if b.Ours() && k.Kind != KindHTTPRoute && k.Kind != KindGRPCRoute {
		return false
	}
	r := reference{kind: k.Kind, namespace: k.Namespace, to: b.Kind, object: b.NamespacedName}
	all := r
	all.object.Name = ""
	return s.granted[r] || s.granted[all]
}

// Counts of what is known, by a name for people.
func (s *Snapshot) Counts() map[string]int {
	out := map[string]int{
		"routes":               len(s.routes),
		"targets":              len(s.targets),
		"targetsWithoutAnswer": 0,
		"endpoints":            0,
	}
	for _, t := range s.targets {
		if t.Problem != "" {
			out["targetsWithoutAnswer"]++
		}
		for _, l := range t.Localities {
			out["endpoints"] += len(l.Endpoints)
		}
	}
	return out
}
