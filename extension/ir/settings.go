// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Settings are the settings of BackendTrafficPolicies for the clusters and endpoint lists of
// a route.
type Settings struct {
	// Pinned are the rules whose clusters have settings of a policy below Gateway level. The
	// key is the rule's name, or empty for all rules.
	Pinned map[string]bool

	// Tunings of endpoint lists, by the rule's name.
	Tunings map[string]Tuning

	// GatewayPolicies are the names of the BackendTrafficPolicies of whole Gateways that the
	// route attaches to.
	GatewayPolicies []types.NamespacedName
}

// Equal reports whether both are the same.
func (s Settings) Equal(o Settings) bool {
	return maps.Equal(s.Pinned, o.Pinned) && maps.EqualFunc(s.Tunings, o.Tunings, Tuning.Equal) && slices.Equal(s.GatewayPolicies, o.GatewayPolicies)
}

// RouteSettings are the settings that BackendTrafficPolicies give the routes of a Snapshot.
type RouteSettings struct{ tables *Tables }

// Settings returns the settings of BackendTrafficPolicies.
func (s *Snapshot) Settings() RouteSettings { return RouteSettings{&s.tables} }

// Pinned reports whether a policy with settings of clusters is attached to the route or to
// the rule, which then has separate clusters. A policy that only has settings of requests,
// such as timeouts and retries, pins nothing.
func (r RouteSettings) Pinned(k RouteKey, rule string) bool {
	p := r.tables.Settings.Get(k).Pinned
	return p[""] || rule != "" && p[rule]
}

// HasGatewayPolicy reports whether a BackendTrafficPolicy is known to apply to all routes of
// a Gateway that the route attaches to. Policies that select Gateways by labels are not
// known.
func (r RouteSettings) HasGatewayPolicy(k RouteKey, policy types.NamespacedName) bool {
	return slices.Contains(r.tables.Settings.Get(k).GatewayPolicies, policy)
}

// HasTuning reports whether a list with the tuning may exist: a policy of a rule has it, apart from
// the preference of near zones.
func (r RouteSettings) HasTuning(t Tuning) bool {
	name := t.listed()
	return name == "" || r.tables.Tunings.Get(name) > 0
}

// Tuning returns the tuning that policies set for the endpoint lists of a rule.
func (r RouteSettings) Tuning(k RouteKey, rule string) Tuning {
	return r.tables.Settings.Get(k).Tunings[rule]
}

// PutSettings replaces the settings of a route in a Draft. It reports whether HasTuning may differ.
func (t *Tables) PutSettings(d *Draft, k RouteKey, v Settings) bool {
	old := t.Settings.Get(k).Tunings
	t.Settings.Put(d, k, v, v.Equal(Settings{}))
	if maps.EqualFunc(old, v.Tunings, Tuning.Equal) {
		return false
	}
	for _, tuning := range old {
		n := t.Tunings.Get(tuning.listed()) - 1
		t.Tunings.Put(d, tuning.listed(), n, n == 0)
	}
	for _, tuning := range v.Tunings {
		t.Tunings.Set(d, tuning.listed(), t.Tunings.Get(tuning.listed())+1)
	}
	return true
}
