// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func addresses(values ...string) []netip.Addr {
	var out []netip.Addr
	for _, a := range values {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func example() Zone {
	return Zone{
		Domains: []Domain{{Name: "example.com"}, {Name: "alone.example.org"}, {Name: "common.example", Shared: true}},
		Names: []Name{
			{Name: "app.example.com", Addresses: addresses("100.64.0.1", "fd7a::1")},
			{Name: "a.deep.example.com", Addresses: addresses("100.64.0.2")},
			{Name: "*.shop.example.com", Addresses: addresses("100.64.0.3")},
			{Name: "*.eu.shop.example.com", Addresses: addresses("100.64.0.4")},
			{Name: "till.shop.example.com", Addresses: addresses("100.64.0.5")},
			{Name: "alone.example.org", Addresses: addresses("100.64.0.6")},
			{Name: "ours.common.example", Addresses: addresses("100.64.0.7")},
		},
	}
}

func TestLookup(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   Answer
	}{
		"Exact":         {reason: "A name has its addresses.", name: "app.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.1", "fd7a::1")}},
		"Apex":          {reason: "A domain exists, with or without addresses.", name: "example.com", want: Answer{Outcome: Present, Domain: "example.com"}},
		"Itself":        {reason: "A domain may be a name.", name: "alone.example.org", want: Answer{Outcome: Present, Domain: "alone.example.org", Addresses: addresses("100.64.0.6")}},
		"Above":         {reason: "A name exists if there are names below it.", name: "deep.example.com", want: Answer{Outcome: Present, Domain: "example.com"}},
		"AboveWildcard": {reason: "A wildcard does not match its parent.", name: "shop.example.com", want: Answer{Outcome: Present, Domain: "example.com"}},
		"Absent":        {reason: "Names that are not listed do not exist.", name: "no.example.com", want: Answer{Outcome: Absent, Domain: "example.com"}},
		"BelowName":     {reason: "Names below a listed name do not exist.", name: "no.app.example.com", want: Answer{Outcome: Absent, Domain: "example.com"}},
		"Wildcard":      {reason: "A wildcard matches names below it.", name: "books.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.3")}},
		"WildcardDeep":  {reason: "A wildcard matches names of any depth.", name: "a.b.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.3")}},
		"Longest":       {reason: "The longest wildcard wins.", name: "books.eu.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.4")}},
		"Named":         {reason: "A name wins over a wildcard.", name: "till.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.5")}},
		"BelowNamed":    {reason: "A wildcard matches names below a listed name.", name: "a.till.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.3")}},
		"Elsewhere":     {reason: "Other domains are refused.", name: "example.net"},
		"Parent":        {reason: "The parent of a domain is refused.", name: "com"},
		"Suffix":        {reason: "A domain ends at a dot.", name: "notexample.com"},
		"Root":          {reason: "The root is refused.", name: ""},
		"SharedOurs":    {reason: "Listed names of a shared domain are present.", name: "ours.common.example", want: Answer{Outcome: Present, Domain: "common.example", Addresses: addresses("100.64.0.7")}},
		"SharedTheirs":  {reason: "Other names of a shared domain are refused.", name: "theirs.common.example"},
		"SharedApex":    {reason: "The apex of a shared domain is refused.", name: "common.example"},
	}
	table := NewTable(example())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, table.Lookup(tc.name), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("\n%s\nLookup(%q): -want, +got:\n%s", tc.reason, tc.name, diff)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	z := example()
	want, err := z.Encode()
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(z.Domains)
	slices.Reverse(z.Names)
	got, err := z.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("\nEqual zones should have equal texts.\nEncode(): -want, +got:\n%s", diff)
	}
	back, err := Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := back.Encode(); err != nil || second != want {
		t.Errorf("\nA decoded zone should be equal to the encoded one.\nDecode(...): want %s, got %s, %v", want, second, err)
	}
	if _, err := Decode("{"); err == nil {
		t.Error("Decode(...): invalid text should be an error")
	}
}

func TestCovers(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   bool
	}{
		"Itself":        {reason: "A domain covers itself.", name: "example.com", want: true},
		"Below":         {reason: "A domain covers names below it.", name: "a.b.example.com", want: true},
		"Wildcard":      {reason: "A domain covers the wildcard below it.", name: "*.example.com", want: true},
		"BelowWildcard": {reason: "A domain covers deeper wildcards.", name: "*.a.example.com", want: true},
		"Above":         {reason: "A domain does not cover names above it.", name: "*.com"},
		"Suffix":        {reason: "A domain ends at a dot.", name: "notexample.com"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Covers("example.com", tc.name); got != tc.want {
				t.Errorf("\n%s\nCovers(%q): want %t, got %t", tc.reason, tc.name, tc.want, got)
			}
		})
	}
}
