// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/netip"
	"strconv"
	"strings"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// maxRangeBits is the schema's maximum number of bits by which the addresses of a range differ.
const maxRangeBits = 8

// Expand returns endpoints with each range replaced by one endpoint for each address. Other
// endpoints keep their place.
func Expand(endpoints []gatewayv1alpha1.Endpoint) []gatewayv1alpha1.Endpoint {
	out := make([]gatewayv1alpha1.Endpoint, 0, len(endpoints))
	for _, ep := range endpoints {
		if ep.TailscaleCIDR == "" {
			out = append(out, ep)
			continue
		}
		for _, a := range addresses(ep.TailscaleCIDR) {
			endpoint := *ep.DeepCopy()
			endpoint.TailscaleCIDR, endpoint.TailscaleIP = "", a.String()
			endpoint.Name += "-" + label(a)
			out = append(out, endpoint)
		}
	}
	return out
}

// addresses returns the addresses of a range that hosts can have, in order. A range that the schema
// refuses has none.
func addresses(cidr string) []netip.Addr {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || p.Masked() != p || p.Addr().BitLen()-p.Bits() > maxRangeBits {
		return nil
	}
	var out []netip.Addr
	for a := p.Addr(); p.Contains(a); a = a.Next() {
		out = append(out, a)
	}
	if p.Addr().Is4() && len(out) > 2 {
		// The network's own address and its broadcast address.
		out = out[1 : len(out)-1]
	}
	return out
}

// label returns an address as a part of a DNS label: the whole of an IPv4 address, and the last
// group of an IPv6 address, by which the addresses of a range differ.
func label(a netip.Addr) string {
	if a.Is6() {
		b := a.As16()
		return strconv.FormatUint(uint64(b[14])<<8|uint64(b[15]), 16)
	}
	return strings.ReplaceAll(a.String(), ".", "-")
}
