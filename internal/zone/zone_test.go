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

func addresses(in ...string) []netip.Addr {
	var out []netip.Addr
	for _, a := range in {
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
		"Above":         {reason: "What has names below it exists.", name: "deep.example.com", want: Answer{Outcome: Present, Domain: "example.com"}},
		"AboveWildcard": {reason: "A wildcard does not stand for what it is below.", name: "shop.example.com", want: Answer{Outcome: Present, Domain: "example.com"}},
		"Absent":        {reason: "What nobody named does not exist.", name: "no.example.com", want: Answer{Outcome: Absent, Domain: "example.com"}},
		"BelowName":     {reason: "Nothing is below a name.", name: "no.app.example.com", want: Answer{Outcome: Absent, Domain: "example.com"}},
		"Wildcard":      {reason: "A wildcard stands for names below.", name: "books.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.3")}},
		"WildcardDeep":  {reason: "It does so at any depth.", name: "a.b.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.3")}},
		"Longest":       {reason: "The longest wildcard wins.", name: "books.eu.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.4")}},
		"Named":         {reason: "A name wins over a wildcard.", name: "till.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.5")}},
		"BelowNamed":    {reason: "A wildcard stands for what is below a name beside it.", name: "a.till.shop.example.com", want: Answer{Outcome: Present, Domain: "example.com", Addresses: addresses("100.64.0.3")}},
		"Elsewhere":     {reason: "Other domains are refused.", name: "example.net"},
		"Parent":        {reason: "So is what a domain is below.", name: "com"},
		"Suffix":        {reason: "A domain ends at a dot.", name: "notexample.com"},
		"Root":          {reason: "The root is refused.", name: ""},
		"SharedOurs":    {reason: "Of a domain that others answer for, too, what is known is answered.", name: "ours.common.example", want: Answer{Outcome: Present, Domain: "common.example", Addresses: addresses("100.64.0.7")}},
		"SharedTheirs":  {reason: "What is not is for the others.", name: "theirs.common.example"},
		"SharedApex":    {reason: "That is so for the domain itself.", name: "common.example"},
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
		t.Errorf("\nEqual zones should be equal bytes.\nEncode(): -want, +got:\n%s", diff)
	}
	back, err := Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := back.Encode(); err != nil || again != want {
		t.Errorf("\nWhat was encoded should come back.\nDecode(...): want %s, got %s, %v", want, again, err)
	}
	if _, err := Decode("{"); err == nil {
		t.Error("Decode(...): what is no zone should be an error")
	}
}

func TestCovers(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   bool
	}{
		"Itself":        {reason: "A domain covers itself.", name: "example.com", want: true},
		"Below":         {reason: "It covers what is below.", name: "a.b.example.com", want: true},
		"Wildcard":      {reason: "It covers all that is below it.", name: "*.example.com", want: true},
		"BelowWildcard": {reason: "It covers wildcards below.", name: "*.a.example.com", want: true},
		"Above":         {reason: "It does not cover more than is below.", name: "*.com"},
		"Suffix":        {reason: "It ends at a dot.", name: "notexample.com"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Covers("example.com", tc.name); got != tc.want {
				t.Errorf("\n%s\nCovers(%q): want %t, got %t", tc.reason, tc.name, tc.want, got)
			}
		})
	}
}
