// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package zone says which names proxies resolve for the tailnet: how the ConfigMap that
// says so is read and written, and what it means for a name. The function of a
// TailscaleGateway writes it, agents act on it. The package is pure; who answers is in
// internal/agent/nameserver.
package zone

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ConfigMapKey is the key of the zone in its ConfigMap.
const ConfigMapKey = "zone.json"

// wildcard starts names that stand for all below.
const wildcard = "*."

// A Domain is one that the tailnet's devices ask for at the proxies.
type Domain struct {
	Name string `json:"name"`

	// Shared reports that others answer for it, too: a name that is unknown here may be
	// known there.
	Shared bool `json:"shared,omitempty"`
}

// A Name has addresses. One that begins with *. stands for all names below the rest.
type Name struct {
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
}

// A Zone is what the proxies of one TailscaleEndpoints resolve.
type Zone struct {
	Domains []Domain `json:"domains,omitempty"`
	Names   []Name   `json:"names,omitempty"`
}

// Encode the zone: sorted, so that equal zones are equal bytes.
func (z Zone) Encode() (string, error) {
	z.Domains, z.Names = slices.Clone(z.Domains), slices.Clone(z.Names)
	slices.SortFunc(z.Domains, func(a, b Domain) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(z.Names, func(a, b Name) int { return cmp.Compare(a.Name, b.Name) })
	b, err := json.Marshal(z)
	return string(b), errors.Wrap(err, "cannot encode zone")
}

// Decode a zone.
func Decode(s string) (Zone, error) {
	z := Zone{}
	return z, errors.Wrap(json.Unmarshal([]byte(s), &z), "cannot decode zone")
}

// Covers reports whether a name, which may be one with a wildcard, is the domain or below
// it.
func Covers(domain, name string) bool {
	base := strings.TrimPrefix(name, wildcard)
	return base == domain || strings.HasSuffix(base, "."+domain)
}

// IsWildcard reports whether a name stands for all below.
func IsWildcard(name string) bool { return strings.HasPrefix(name, wildcard) }

// An Outcome is what is known of a name.
type Outcome int

const (
	// Refused names are for others to answer.
	Refused Outcome = iota

	// Absent names do not exist.
	Absent

	// Present names exist, with addresses or without.
	Present
)

// An Answer is what is known of a name.
type Answer struct {
	Outcome Outcome

	// Domain that the name is in. Empty for Refused.
	Domain string

	Addresses []netip.Addr
}

// A Table answers for a zone.
type Table struct {
	domains map[string]Domain
	names   map[string][]netip.Addr

	// above are names that have others below them.
	above map[string]bool
}

// NewTable of a zone.
func NewTable(z Zone) *Table {
	t := &Table{domains: map[string]Domain{}, names: map[string][]netip.Addr{}, above: map[string]bool{}}
	for _, d := range z.Domains {
		t.domains[d.Name] = d
	}
	for _, n := range z.Names {
		t.names[n.Name] = n.Addresses
		for p := parent(n.Name); p != ""; p = parent(p) {
			t.above[p] = true
		}
	}
	return t
}

// Lookup a name in lower case, without the last dot. A wildcard stands for names of any
// depth, beside those that are named, as for the listeners and routes of a Gateway: who
// asks for such a name at the Gateway is answered.
func (t *Table) Lookup(name string) Answer {
	d, ok := t.domain(name)
	if !ok {
		return Answer{}
	}
	a := Answer{Outcome: Present, Domain: d.Name}
	for n, key := name, name; n != ""; n, key = parent(n), wildcard+parent(n) {
		if a.Addresses, ok = t.names[key]; ok {
			return a
		}
	}
	switch {
	case d.Shared:
		return Answer{}
	case name != d.Name && !t.above[name]:
		a.Outcome = Absent
	}
	return a
}

// domain of a name: the longest one.
func (t *Table) domain(name string) (Domain, bool) {
	for n := name; n != ""; n = parent(n) {
		if d, ok := t.domains[n]; ok {
			return d, true
		}
	}
	return Domain{}, false
}

// parent of a name, empty if it has none.
func parent(name string) string {
	_, p, _ := strings.Cut(name, ".")
	return p
}
