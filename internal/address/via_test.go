// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestVia(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   string
	}{
		"Short":      {reason: "A name without a domain is one.", name: "10-1-1-2-via-7", want: "fd7a:115c:a1e0:b1a:0:7:a01:102"},
		"Tailnet":    {reason: "A name in a domain of Tailscale is one.", name: "10-1-1-2-via-7.tail1234.ts.net.", want: "fd7a:115c:a1e0:b1a:0:7:a01:102"},
		"Hex":        {reason: "tailscaled reads a site in hexadecimal.", name: "10-1-1-2-via-0x10", want: "fd7a:115c:a1e0:b1a:0:10:a01:102"},
		"Domain":     {reason: "tailscaled does not compute names of other domains.", name: "10-1-1-2-via-7.example.com"},
		"NoSite":     {reason: "A site is a number.", name: "10-1-1-2-via-x"},
		"NoAddress":  {reason: "The host is an IPv4 address.", name: "web-via-7"},
		"IPv6":       {reason: "The host is no IPv6 address.", name: "fd00--1-via-7"},
		"TooBig":     {reason: "A site has 32 bits.", name: "10-1-1-2-via-4294967296"},
		"PlainNames": {reason: "Other names are not computed.", name: "db.tail1234.ts.net"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Via(tc.name)
			want, err := netip.ParseAddr(tc.want)
			if ok != (err == nil) {
				t.Errorf("\n%s\nVia(%q): want %q, got %s, %t", tc.reason, tc.name, tc.want, got, ok)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("\n%s\nVia(%q): -want, +got:\n%s", tc.reason, tc.name, diff)
			}
		})
	}
}

func TestRouted(t *testing.T) {
	cases := map[string]struct {
		reason string
		addr   string
		want   bool
	}{
		"Device":  {reason: "A device has an address in Tailscale's range.", addr: "100.64.0.9"},
		"Device6": {reason: "A device has an IPv6 address in Tailscale's range.", addr: "fd7a:115c:a1e0::9"},
		"Subnet":  {reason: "An address of another network is behind a subnet router.", addr: "10.0.0.9", want: true},
		"Subnet6": {reason: "An IPv6 address of another network is behind a subnet router.", addr: "fd00::9", want: true},
		"Via":     {reason: "A 4via6 address is behind a subnet router.", addr: "fd7a:115c:a1e0:b1a:0:7:a01:102", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Routed(netip.MustParseAddr(tc.addr)); got != tc.want {
				t.Errorf("\n%s\nRouted(%s): want %t, got %t", tc.reason, tc.addr, tc.want, got)
			}
		})
	}
}

func TestFamilies(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("fd00::9")
	cases := map[string]struct {
		reason string
		addrs  []netip.Addr
		want   Families
		text   string
	}{
		"None":   {reason: "Without addresses there is no family.", text: "no address family"},
		"IPv4":   {reason: "IPv4 is a family.", addrs: []netip.Addr{v4}, want: Families{IPv4: true}, text: "IPv4"},
		"Mapped": {reason: "An IPv4 address in the form of an IPv6 address is IPv4.", addrs: []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.9")}, want: Families{IPv4: true}, text: "IPv4"},
		"Both":   {reason: "A list can have both.", addrs: []netip.Addr{v6, v4}, want: Families{IPv4: true, IPv6: true}, text: "IPv4 and IPv6"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := FamiliesOf(tc.addrs...)
			if got != tc.want || got.String() != tc.text {
				t.Errorf("\n%s\nFamiliesOf(...): want %s, got %s", tc.reason, tc.text, got)
			}
			for _, a := range []netip.Addr{v4, v6} {
				if got.Has(a) != (FamiliesOf(a).And(tc.want) != Families{}) {
					t.Errorf("\n%s\nHas(%s): got %t", tc.reason, a, got.Has(a))
				}
			}
		})
	}
}
