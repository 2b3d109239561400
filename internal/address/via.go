// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"
	"strconv"
	"strings"

	"tailscale.com/net/tsaddr"
	"tailscale.com/util/dnsname"
)

// siteInfix is between the address and the site in a 4via6 name.
const siteInfix = "-via-"

// Via returns the address of a 4via6 name, which stands for an IPv4 address behind the subnet
// router of a site: IPv4 address with hyphens, -via-, site, and optionally a domain of Tailscale.
// tailscaled computes it without asking anyone, before it looks for a device or a service of the
// name (tailscale.com net/dns/resolver, resolveViaDomain).
func Via(name string) (netip.Addr, bool) {
	label, domain, _ := strings.Cut(strings.TrimSuffix(name, "."), ".")
	if domain != "" && !dnsname.HasSuffix(domain, "ts.net") && !dnsname.HasSuffix(domain, "tailscale.net") {
		return netip.Addr{}, false
	}
	host, site, ok := strings.Cut(label, siteInfix)
	if !ok {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(strings.ReplaceAll(host, "-", "."))
	if err != nil || !ip.Is4() {
		return netip.Addr{}, false
	}
	// Base 0 reads hexadecimal sites, too, as tailscaled does.
	id, err := strconv.ParseUint(site, 0, 32)
	if err != nil {
		return netip.Addr{}, false
	}
	p, err := tsaddr.MapVia(uint32(id), netip.PrefixFrom(ip, ip.BitLen()))
	return p.Addr(), err == nil
}

// Routed reports whether only a subnet router has an address: it is outside of the ranges that
// Tailscale assigns to devices and services. 4via6 addresses are in Tailscale's range for IPv6,
// and lead to subnet routers all the same (tailscale.com net/tsaddr, TailscaleViaRange).
func Routed(a netip.Addr) bool {
	a = a.Unmap()
	if tsaddr.TailscaleViaRange().Contains(a) {
		return true
	}
	return !tsaddr.CGNATRange().Contains(a) && !tsaddr.TailscaleULARange().Contains(a)
}
