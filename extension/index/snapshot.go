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

	tables Tables
}

// Tables are the contents of a Snapshot.
type Tables struct {
	Routes  Table[RouteKey, *Route]
	Targets Table[TargetKey, *Target]

	// Digests are those of Gateways.
	Digests Table[types.NamespacedName, Digest]

	// Gateways are what people want to know of Gateways.
	Gateways Table[types.NamespacedName, *AboutGateway]

	// IdentityListeners are the listeners of Gateways that are told by headers who asks.
	IdentityListeners Table[types.NamespacedName, []IdentityListener]

	// Services are the endpoints of Kubernetes Services that rules name beside
	// ours, by Service and port.
	Services Table[ServicePort, []Locality]

	// Settings are what BackendTrafficPolicies ask for, by route.
	Settings Table[RouteKey, Settings]

	// Grants are the references across namespaces that a ReferenceGrant allows.
	Grants Table[Grant, bool]

	// Policies are the TailscaleRoutePolicies, and Attached their rules by what they
	// are attached to, in the order in which they are asked.
	Policies Table[types.NamespacedName, *RoutePolicy]
	Attached Table[PolicyTarget, []*PolicyRule]

	// KeyPairs of Secrets whose certificates are presented.
	KeyPairs Table[types.NamespacedName, *KeyPair]

	// Certificates that Gateways present.
	Certificates Table[types.NamespacedName, *ClientCertificate]

	// Bootstraps are the Gateways whose Envoys have the authority tailscale.
	Bootstraps Table[types.NamespacedName, bool]
}

// Settings are what BackendTrafficPolicies ask for the clusters and endpoint lists of a
// route.
type Settings struct {
	// Pinned are the rules whose clusters a policy below Gateway level has settings of. A
	// rule's name stands for one rule, the empty one for all.
	Pinned map[string]bool

	// Tunings of endpoint lists, by rule's name.
	Tunings map[string]Tuning

	// Wide are the names of the BackendTrafficPolicies of whole Gateways that the route
	// attaches to.
	Wide []types.NamespacedName
}

// Equal reports whether both are the same.
func (s Settings) Equal(o Settings) bool {
	return maps.Equal(s.Pinned, o.Pinned) && maps.EqualFunc(s.Tunings, o.Tunings, Tuning.Equal) && slices.Equal(s.Wide, o.Wide)
}

// A ServicePort is a port of a Kubernetes Service.
type ServicePort struct {
	types.NamespacedName
	Port int32

	// UDP reports that it is the port of UDP. A Service may have both.
	UDP bool
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
	t := Tables{}
	t.Gateways = newTable(c.Gateways)
	t.Services = newTable(c.Services)
	t.IdentityListeners = newTable(c.Identified)
	t.KeyPairs = newTable(c.KeyPairs)
	t.Certificates = newTable(c.Certificates)
	t.Bootstraps = newTable(c.Bootstrapped)
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
	for _, of := range c.Targets {
		targets[of.Key] = of
	}
	t.Targets = newTable(targets)
	settings := map[RouteKey]Settings{}
	for k, names := range c.Pinned {
		of := settings[k]
		of.Pinned = make(map[string]bool, len(names))
		for _, n := range names {
			of.Pinned[n] = true
		}
		settings[k] = of
	}
	for k, tunings := range c.Tunings {
		of := settings[k]
		of.Tunings = tunings
		settings[k] = of
	}
	for k, wide := range c.Wide {
		of := settings[k]
		of.Wide = wide
		settings[k] = of
	}
	t.Settings = newTable(settings)
	grants := make(map[Grant]bool, len(c.Grants))
	for _, g := range c.Grants {
		grants[g] = true
	}
	t.Grants = newTable(grants)
	return &Snapshot{Revision: c.Revision, tables: t}
}

// Route returns nil for one that is not known.
func (s *Snapshot) Route(k RouteKey) *Route { return s.tables.Routes.Get(k) }

// Routes are all that are known, in no order.
func (s *Snapshot) Routes() iter.Seq[*Route] { return s.tables.Routes.Values() }

// Target returns nil for one that no route names.
func (s *Snapshot) Target(k TargetKey) *Target { return s.tables.Targets.Get(k) }

// Targets are all that routes name, in no order.
func (s *Snapshot) Targets() iter.Seq[*Target] { return s.tables.Targets.Values() }

// Service returns the endpoints of a Kubernetes Service that a rule names beside
// one of ours.
func (s *Snapshot) Service(p ServicePort) []Locality { return s.tables.Services.Get(p) }

// Pinned reports whether a policy with settings of clusters is attached to the route, or
// to the rule: then its clusters are its own. One that only says how requests are
// treated, such as by timeouts and retries, pins nothing.
func (s *Snapshot) Pinned(k RouteKey, rule string) bool {
	p := s.tables.Settings.Get(k).Pinned
	return p[""] || rule != "" && p[rule]
}

// Wide reports whether a BackendTrafficPolicy is known to be for all routes of a Gateway
// that the route attaches to. Those of Gateways that it picks by label are not known.
func (s *Snapshot) Wide(k RouteKey, policy types.NamespacedName) bool {
	return slices.Contains(s.tables.Settings.Get(k).Wide, policy)
}

// Tuning that policies ask of the endpoint lists of a rule.
func (s *Snapshot) Tuning(k RouteKey, rule string) Tuning {
	return s.tables.Settings.Get(k).Tunings[rule]
}

// Permitted reports whether a route may refer to an object: in its own namespace
// always, in others if a ReferenceGrant says so. L4 routes may never refer to one of
// ours in another namespace: Envoy Gateway drops such references before it looks at
// grants (internal/provider/kubernetes/routes.go).
func (s *Snapshot) Permitted(k RouteKey, b BackendRef) bool { return s.tables.Permitted(k, b) }

// Permitted reports whether a route may refer to an object, as that of a Snapshot.
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

// Counts of what is known, by a name for people.
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
