// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// A Snapshot is the state of all objects at one moment. It never changes, and reading it
// neither blocks nor calls anything.
type Snapshot struct {
	// Revision increases when clusters or routes change: a route that names one of ours, a
	// Shape, or a permission. Changes of endpoints do not increase it. It is local to this
	// process.
	Revision uint64

	// Digest is the digest of the same. It is equal in every process that knows the same
	// objects, whatever the order of their changes.
	Digest uint64

	// PolicyRevision increases when a TailscaleRoutePolicy or its state changes.
	PolicyRevision uint64

	tables Tables
}

// Tables are the contents of a Snapshot.
type Tables struct {
	Routes  Table[RouteKey, *Route]
	Targets Table[TargetKey, *Target]

	// Digests are those of Gateways.
	Digests Table[types.NamespacedName, Digest]

	// Gateways are those that exist.
	Gateways Table[types.NamespacedName, *Gateway]

	// IdentityListeners are the listeners of Gateways to which proxies send the client's
	// identity.
	IdentityListeners Table[types.NamespacedName, []IdentityListener]

	// Services are the endpoints of Kubernetes Services that rules name in addition to ours,
	// by Service and port.
	Services Table[ServicePort, []Locality]

	// Settings are the settings of BackendTrafficPolicies, by route.
	Settings Table[RouteKey, Settings]

	// Tunings are the numbers of rules by the part of their Tunings that names of lists have.
	Tunings Table[string, int]

	// Grants are the references across namespaces that a ReferenceGrant allows.
	Grants Table[Grant, bool]

	// Policies are the TailscaleRoutePolicies, and Attached their rules by target in order
	// of precedence.
	Policies Table[types.NamespacedName, *RoutePolicy]
	Attached Table[PolicyTarget, []*PolicyRule]

	// KeyPairs are the client certificates by Secret.
	KeyPairs Table[types.NamespacedName, *KeyPair]

	// Certificates are the client certificates that Gateways present.
	Certificates Table[types.NamespacedName, *ClientCertificate]

	// Bootstraps are those of Gateways' Envoys. Others have the zero value.
	Bootstraps Table[types.NamespacedName, Bootstrap]
}

// A ServicePort is a port of a Kubernetes Service.
type ServicePort struct {
	types.NamespacedName
	Port int32

	// UDP reports that the port's protocol is UDP. A Service may have the same port for TCP
	// and UDP.
	UDP bool
}

// A Grant is a permission of a ReferenceGrant: routes of one kind in a namespace may name an
// object of another namespace, or all objects of the kind there if Object has no name.
type Grant struct {
	Kind      RouteKind
	Namespace string
	To        BackendKind
	Object    types.NamespacedName
}

// Contents are the contents of a Snapshot for NewSnapshot. All fields may be empty.
type Contents struct {
	Revision uint64
	Routes   []*Route
	Targets  []*Target
	Services map[ServicePort][]Locality

	// Pinned are the names of rules with settings of a policy below Gateway level, by route.
	// The empty name stands for the whole route.
	Pinned map[RouteKey][]string

	// Tunings of endpoint lists by route and by the rule's name. The empty name stands for
	// rules without a name.
	Tunings map[RouteKey]map[string]Tuning

	// GatewayPolicies are the names of the BackendTrafficPolicies of whole Gateways, by the
	// routes that attach to these.
	GatewayPolicies map[RouteKey][]types.NamespacedName

	Grants []Grant

	Gateways map[types.NamespacedName]*Gateway

	Policies []*RoutePolicy

	// IdentityListeners are the listeners of Gateways to which proxies send the client's identity.
	IdentityListeners map[types.NamespacedName][]IdentityListener

	// KeyPairs are the client certificates by Secret.
	KeyPairs map[types.NamespacedName]*KeyPair

	// Certificates are the client certificates that Gateways present.
	Certificates map[types.NamespacedName]*ClientCertificate

	// Bootstraps are those of Gateways' Envoys. Others have the zero value.
	Bootstraps map[types.NamespacedName]Bootstrap
}

// NewSnapshot returns a Snapshot of contents, which must not be changed afterwards. Of
// several entries with one key, the last counts.
func NewSnapshot(c Contents) *Snapshot {
	t := Tables{}
	t.Gateways = newTable(c.Gateways)
	t.Services = newTable(c.Services)
	t.IdentityListeners = newTable(c.IdentityListeners)
	t.KeyPairs = newTable(c.KeyPairs)
	t.Certificates = newTable(c.Certificates)
	t.Bootstraps = newTable(c.Bootstraps)
	routes := make(map[RouteKey]*Route, len(c.Routes))
	for _, r := range c.Routes {
		routes[r.Key] = r
	}
	t.Routes = newTable(routes)
	policies := make(map[types.NamespacedName]*RoutePolicy, len(c.Policies))
	for _, p := range c.Policies {
		policies[p.Name] = p
	}
	t.Policies = newTable(policies)
	t.Attached = newTable(AttachRules(t.Policies.Values()))
	targets := make(map[TargetKey]*Target, len(c.Targets))
	for _, target := range c.Targets {
		targets[target.Key] = target
	}
	t.Targets = newTable(targets)
	settings := map[RouteKey]Settings{}
	for k, names := range c.Pinned {
		entry := settings[k]
		entry.Pinned = make(map[string]bool, len(names))
		for _, n := range names {
			entry.Pinned[n] = true
		}
		settings[k] = entry
	}
	for k, tunings := range c.Tunings {
		entry := settings[k]
		entry.Tunings = tunings
		settings[k] = entry
	}
	for k, wide := range c.GatewayPolicies {
		entry := settings[k]
		entry.GatewayPolicies = wide
		settings[k] = entry
	}
	t.Settings = newTable(settings)
	tunings := map[string]int{}
	for _, entry := range settings {
		for _, tuning := range entry.Tunings {
			tunings[tuning.listed()]++
		}
	}
	t.Tunings = newTable(tunings)
	grants := make(map[Grant]bool, len(c.Grants))
	for _, g := range c.Grants {
		grants[g] = true
	}
	t.Grants = newTable(grants)
	return &Snapshot{Revision: c.Revision, tables: t}
}

// Route returns a route, or nil if it is not known.
func (s *Snapshot) Route(k RouteKey) *Route { return s.tables.Routes.Get(k) }

// Routes returns all routes, in no order.
func (s *Snapshot) Routes() iter.Seq[*Route] { return s.tables.Routes.Values() }

// Target returns a target, or nil if no route names it.
func (s *Snapshot) Target(k TargetKey) *Target { return s.tables.Targets.Get(k) }

// Targets returns all targets that routes name, in no order.
func (s *Snapshot) Targets() iter.Seq[*Target] { return s.tables.Targets.Values() }

// Service returns the endpoints of a Kubernetes Service that a rule names in addition to one
// of ours.
func (s *Snapshot) Service(p ServicePort) []Locality { return s.tables.Services.Get(p) }

// Permitted reports whether a route may refer to an object: always in its own namespace, and
// in other namespaces if a ReferenceGrant permits it. L4 routes may never refer to one of
// ours in another namespace: Envoy Gateway drops such references before it reads grants
// (internal/provider/kubernetes/routes.go).
func (s *Snapshot) Permitted(k RouteKey, b BackendRef) bool { return s.tables.Permitted(k, b) }

// Permitted reports whether a route may refer to an object, as Snapshot.Permitted does.
func (t *Tables) Permitted(k RouteKey, b BackendRef) bool {
	if b.Namespace == k.Namespace {
		return true
	}
	if b.Ours() && k.Kind != KindHTTPRoute && k.Kind != KindGRPCRoute {
		return false
	}
	r := Grant{Kind: k.Kind, Namespace: k.Namespace, To: b.Kind, Object: b.NamespacedName}
	all := r
	all.Object.Name = ""
	return t.Grants.Get(r) || t.Grants.Get(all)
}

// Counts returns the sizes of the Snapshot, by names for people.
func (s *Snapshot) Counts() map[string]int {
	out := map[string]int{
		"routes":               s.tables.Routes.Len(),
		"targets":              s.tables.Targets.Len(),
		"targetsWithoutAnswer": 0,
		"endpoints":            0,
	}
	for t := range s.tables.Targets.Values() {
		if t.Problem != "" {
			out["targetsWithoutAnswer"]++
		}
		for _, l := range t.Localities {
			out["endpoints"] += len(l.Endpoints)
		}
	}
	return out
}
