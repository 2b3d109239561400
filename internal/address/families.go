// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"strings"
)

// Families are address families.
type Families struct {
	IPv4, IPv6 bool
}

// FamiliesOf returns the families of addresses.
func FamiliesOf(addrs ...netip.Addr) Families {
	var f Families
	for _, a := range addrs {
		f.IPv4 = f.IPv4 || a.Unmap().Is4()
		f.IPv6 = f.IPv6 || a.Unmap().Is6()
	}
	return f
}

// And returns the families that both have.
func (f Families) And(o Families) Families {
	return Families{IPv4: f.IPv4 && o.IPv4, IPv6: f.IPv6 && o.IPv6}
}

// Has reports whether the family of an address is one of f.
func (f Families) Has(a netip.Addr) bool {
	a = a.Unmap()
	return a.Is4() && f.IPv4 || a.Is6() && f.IPv6
}

// String returns the families as part of a sentence.
func (f Families) String() string {
	var out []string
	if f.IPv4 {
		out = append(out, "IPv4")
	}
	if f.IPv6 {
		out = append(out, "IPv6")
	}
	if len(out) == 0 {
		return "no address family"
	}
	return strings.Join(out, " and ")
}
