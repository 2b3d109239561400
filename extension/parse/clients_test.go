// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseClients(t *testing.T) {
	ranges := func(values ...string) (out []netip.Prefix) {
		for _, s := range values {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	cases := map[string]struct {
		reason    string
		addresses []string
		want      []netip.Prefix
		err       bool
	}{
		"None":         {reason: "Without addresses, any client matches."},
		"Addresses":    {reason: "An address is a range with one address.", addresses: []string{"100.64.0.1", "fd7a::1"}, want: ranges("100.64.0.1/32", "fd7a::1/128")},
		"Masked":       {reason: "Bits beyond a prefix are removed.", addresses: []string{"100.64.1.9/24", "fd7a::9/64"}, want: ranges("100.64.1.0/24", "fd7a::/64")},
		"Mapped":       {reason: "Mapped addresses are those of IPv4 clients.", addresses: []string{"::ffff:100.64.0.1"}, want: ranges("100.64.0.1/32")},
		"MappedRange":  {reason: "A range of mapped addresses is one of IPv4 clients.", addresses: []string{"::ffff:100.64.1.9/120"}, want: ranges("100.64.1.0/24")},
		"AllMapped":    {reason: "All mapped addresses are all IPv4 clients.", addresses: []string{"::ffff:0.0.0.0/96"}, want: ranges("0.0.0.0/0")},
		"MoreThanIPv4": {reason: "A range that is larger is refused, because its IPv4 clients would not match.", addresses: []string{"::ffff:0.0.0.0/90"}, err: true},
		"NotARange":    {reason: "Anything else is refused.", addresses: []string{"host"}, err: true},
		"Duplicates":   {reason: "The same range in two forms is one.", addresses: []string{"100.64.1.0/24", "::ffff:100.64.1.0/120"}, want: ranges("100.64.1.0/24")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseClients(tc.addresses)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" || (err != nil) != tc.err {
				t.Errorf("\n%s\nparseClients(...): error %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
