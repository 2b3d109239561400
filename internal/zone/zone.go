// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package zone holds the names that proxies resolve for the tailnet: the format of their
// ConfigMap, and the lookup of a name. The function of a TailscaleGateway writes the ConfigMap,
// and agents read it. The package is pure; the DNS server is in internal/agent/nameserver.
package zone

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// ConfigMapKey is the key of the zone in its ConfigMap.
const ConfigMapKey = "zone.json"

// wildcard is the prefix of names that match all names below them.
const wildcard = "*."

// A Domain is a domain for which the tailnet's devices query the proxies.
type Domain struct {
	Name string `json:"name"`

	// Shared reports whether other nameservers serve the domain, too: a name that is unknown
	// here may exist there.
	Shared bool `json:"shared,omitempty"`
}

// A Name has addresses. A name that begins with *. matches all names below the rest.
type Name struct {
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
}

// A Zone holds the names that the proxies of one TailscaleEndpoints resolve.
type Zone struct {
	Domains []Domain `json:"domains,omitempty"`
	Names   []Name   `json:"names,omitempty"`
}

// Encode returns the zone as text. It sorts the entries, so that equal zones have equal texts.
func (z Zone) Encode() (string, error) {
	z.Domains, z.Names = slices.Clone(z.Domains), slices.Clone(z.Names)
	slices.SortFunc(z.Domains, func(a, b Domain) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(z.Names, func(a, b Name) int { return cmp.Compare(a.Name, b.Name) })
	b, err := json.Marshal(z)
	return string(b), errors.Wrap(err, "cannot encode zone")
}

// Decode returns the zone of a text.
func Decode(s string) (Zone, error) {
	z := Zone{}
	return z, errors.Wrap(json.Unmarshal([]byte(s), &z), "cannot decode zone")
}

// Covers reports whether a name, which may have a wildcard, is the domain or below it.
func Covers(domain, name string) bool {
	base := strings.TrimPrefix(name, wildcard)
	return base == domain || strings.HasSuffix(base, "."+domain)
}

// IsWildcard reports whether a name matches all names below it.
func IsWildcard(name string) bool { return strings.HasPrefix(name, wildcard) }

// An Outcome is the kind of an answer.
type Outcome int

const (
	// Refused means that other nameservers are responsible for the name.
	Refused Outcome = iota

	// Absent means that the name does not exist.
	Absent

	// Present means that the name exists, with or without addresses.
	Present
)

// An Answer is the result of a lookup.
type Answer struct {
	Outcome Outcome

	// Domain of the name. Empty for Refused.
	Domain string

	Addresses []netip.Addr
}

// A Table looks up names of a zone.
type Table struct {
	domains map[string]Domain
	names   map[string][]netip.Addr

	// parents holds the names that have other names below them.
	parents map[string]bool
}

// NewTable builds the table of a zone.
func NewTable(z Zone) *Table {
	t := &Table{domains: map[string]Domain{}, names: map[string][]netip.Addr{}, parents: map[string]bool{}}
	for _, d := range z.Domains {
		t.domains[d.Name] = d
	}
	for _, n := range z.Names {
		t.names[n.Name] = n.Addresses
		for p := parent(n.Name); p != ""; p = parent(p) {
			t.parents[p] = true
		}
	}
	return t
}

// Lookup returns the answer for a name in lower case, without the trailing dot. A wildcard
// matches names of any depth, except names that are listed, as in the listeners and routes of a
// Gateway: the Gateway answers requests for such a name.
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
	case name != d.Name && !t.parents[name]:
		a.Outcome = Absent
	}
	return a
}

// domain returns the longest domain of a name.
func (t *Table) domain(name string) (Domain, bool) {
	for n := name; n != ""; n = parent(n) {
		if d, ok := t.domains[n]; ok {
			return d, true
		}
	}
	return Domain{}, false
}

// parent returns the parent of a name, and "" if it has none.
func parent(name string) string {
	_, p, _ := strings.Cut(name, ".")
	return p
}
