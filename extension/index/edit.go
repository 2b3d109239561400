// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A sectionID identifies a section.
type sectionID uint8

// Sections, in the order in which they are recomputed.
const (
	routeSection sectionID = iota
	secretSection
	policySection
	targetSection
	settingsSection
	gatewaySection
	identitySection
	certificateSection
	bootstrapSection
	grantSection

	sectionCount
)

// An entry of a section, such as a route or the client certificate of a Gateway, may have a part in
// digests and name dependents.
type entry struct {
	section sectionID

	// kind of a route. It is empty for other entries.
	kind ir.RouteKind
	types.NamespacedName
}

func routeEntry(k ir.RouteKey) entry {
	return entry{section: routeSection, kind: k.Kind, NamespacedName: k.NamespacedName}
}

// compareEntries orders entries.
func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(a.kind, b.kind), ir.CompareNames(a.NamespacedName, b.NamespacedName))
}

// route returns the key of a route.
func (c entry) route() ir.RouteKey {
	return ir.RouteKey{Kind: c.kind, NamespacedName: c.NamespacedName}
}

// A pending holds the entries and lookups that a change may affect.
type pending struct {
	entries [sectionCount]map[entry]struct{}

	// refs are the lookups with a new result, and targets those with a new placement.
	refs    map[ref]struct{}
	targets map[ir.TargetKey]struct{}
}

func newPending() *pending {
	return &pending{refs: map[ref]struct{}{}, targets: map[ir.TargetKey]struct{}{}}
}

// mark marks an entry, to be recomputed.
func (p *pending) mark(c entry) {
	if p.entries[c.section] == nil {
		p.entries[c.section] = map[entry]struct{}{}
	}
	p.entries[c.section][c] = struct{}{}
}

// markName marks the entry with a name, to be recomputed.
func (p *pending) markName(s sectionID, n types.NamespacedName) {
	p.mark(entry{section: s, NamespacedName: n})
}

// ref records a lookup with a new result, so that the targets that depend on it are
// recomputed.
func (p *pending) ref(k refKind, n types.NamespacedName) {
	p.refs[ref{kind: k, NamespacedName: n}] = struct{}{}
}

// An edit is the computation of the next snapshot.
type edit struct {
	next    *ir.Draft
	pending *pending

	// translate reports that more than endpoints changed.
	translate bool

	// entries are those whose parts in digests changed.
	entries map[entry]struct{}

	// dependents are those that are named now and were not before, and the reverse.
	dependents map[dependent]struct{}

	// endpoints are the dependents that differ, and reshaped the targets among them whose
	// clusters do.
	endpoints map[dependent]struct{}
	reshaped  []ir.TargetKey

	// granted are the routes whose references permissions may allow or forbid. It changes which backends
	// their rules have, and not the routes.
	granted map[entry]struct{}

	// routes are the routes with other rules, with the names of their endpoint lists before
	// the change.
	routes map[entry][]string

	// policies reports that a TailscaleRoutePolicy or its state changed.
	policies bool

	// tunings reports that policies set other tunings.
	tunings bool

	// attached are the targets at which other rules may be attached.
	attached map[ir.PolicyTarget]struct{}

	// vacant reports that other ports of Services have no ready endpoints than before.
	vacant bool

	// led are the TailscaleServices to which other routes may lead than before.
	led map[types.NamespacedName]struct{}

	// tlsPolicies reports that other BackendTLSPolicies are not applied, or for other reasons.
	tlsPolicies bool
}

func newEdit(s *ir.Snapshot, p *pending) *edit {
	return &edit{
		next: s.Edit(), pending: p, entries: map[entry]struct{}{},
		dependents: map[dependent]struct{}{}, endpoints: map[dependent]struct{}{}, granted: map[entry]struct{}{},
		routes: map[entry][]string{}, attached: map[ir.PolicyTarget]struct{}{},
	}
}

// marked returns the marked entries of a section.
func (e *edit) marked(s sectionID) map[entry]struct{} { return e.pending.entries[s] }

// digest replaces the old part of an entry in the digest by the new one, and marks
// the entry, whose part in the digests of Gateways changes.
func (e *edit) digest(c entry, old, current any) {
	e.resum(old, current)
	e.entries[c] = struct{}{}
}

// resum replaces an old part of the digest by a new one.
func (e *edit) resum(old, current any) {
	if oldSum, newSum := ir.Sum(old), ir.Sum(current); oldSum != newSum {
		e.next.Digest += newSum - oldSum
		e.translate = true
	}
}
