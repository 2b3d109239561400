// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Names of parts, which messages also use.
const (
	partNameservers      = "nameservers"
	partOverrideLocalDNS = "nameservers.overrideLocalDNS"
	partSearchPaths      = "searchPaths"
	partMagicDNS         = "preferences.magicDNS"
	prefixSplitDNS       = "splitDNS/" // Followed by a domain.
)

// parts are parts of a tailnet's DNS settings by name. Each part has one owner. A switch has one
// value, true or false. An empty part has no values.
type parts map[string][]string

// isSwitch reports whether a part is a preference. Preferences always have a value: they have no
// owner, and remain when an object is deleted.
func isSwitch(part string) bool { return part == partOverrideLocalDNS || part == partMagicDNS }

// splitDomain returns the domain of a split DNS part.
func splitDomain(part string) (string, bool) { return strings.CutPrefix(part, prefixSplitDNS) }

// wantedParts returns the parts that an object sets.
func wantedParts(p v1alpha1.DNSParameters) parts {
	out := parts{}
	if n := p.Nameservers; n != nil {
		out[partNameservers] = canonical(n.Addresses)
		if n.OverrideLocalDNS != nil {
			out[partOverrideLocalDNS] = toggle(*n.OverrideLocalDNS)
		}
	}
	if p.SearchPaths != nil {
		out[partSearchPaths] = append([]string{}, *p.SearchPaths...)
	}
	for _, s := range p.SplitDNS {
		out[prefixSplitDNS+s.Domain] = canonical(s.Nameservers)
	}
	if p.Preferences != nil {
		out[partMagicDNS] = toggle(p.Preferences.MagicDNS)
	}
	return out
}

// currentParts returns the parts of a tailnet. override is nil if it was not read.
func currentParts(d tailscale.DNS, override *bool) parts {
	out := parts{
		partNameservers: canonical(d.Nameservers),
		partSearchPaths: d.SearchPaths,
		partMagicDNS:    toggle(d.MagicDNS),
	}
	for domain, ns := range d.SplitDNS {
		out[prefixSplitDNS+domain] = canonical(ns)
	}
	if override != nil {
		out[partOverrideLocalDNS] = toggle(*override)
	}
	return out
}

// canonical returns addresses in the form of netip, because an IPv6 address has several spellings.
func canonical(addresses []string) []string {
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a); err == nil {
			a = ip.String()
		}
		out = append(out, a)
	}
	return out
}

func toggle(enabled bool) []string { return []string{strconv.FormatBool(enabled)} }

func isOn(values []string) bool { return len(values) == 1 && values[0] == strconv.FormatBool(true) }
