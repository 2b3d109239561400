// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
)

// dnsSettings of the tailnet.
type dnsSettings struct {
	Nameservers      []dnsResolver            `json:"nameservers"`
	SearchPaths      []string                 `json:"searchPaths"`
	SplitDNS         map[string][]dnsResolver `json:"splitDNS"`
	MagicDNS         bool                     `json:"magicDNS"`
	OverrideLocalDNS bool                     `json:"overrideLocalDNS"`
}

// A dnsResolver has the API's shape. The API drops a flag that is false
// (abn/ansible-tailscale-admin, tests/live/test_dns_module_live.py).
type dnsResolver struct {
	Address         string `json:"address"`
	UseWithExitNode bool   `json:"useWithExitNode,omitempty"`
}

// resolvers returns nameservers of addresses alone, in canonical form. Switches decide whether
// current ones with the same addresses keep their settings.
func resolvers(c *call, current []dnsResolver, addresses []string) []dnsResolver {
	out := make([]dnsResolver, 0, len(addresses))
	for _, a := range addresses {
		r := dnsResolver{Address: canonicalAddress(a)}
		i := slices.IndexFunc(current, func(o dnsResolver) bool { return o.Address == r.Address })
		if i >= 0 && c.s.switches.KeepResolverSettings {
			r = current[i]
		}
		out = append(out, r)
	}
	return out
}

// canonicalAddress returns an address as the API returns it. That it does so is an assumption, and
// the stricter one: a caller that compares spellings writes again and again.
func canonicalAddress(a string) string {
	if ip, err := netip.ParseAddr(a); err == nil {
		return ip.String()
	}
	return a
}

func addresses(rs []dnsResolver) []string {
	out := make([]string, 0, len(rs))
	for _, r := range rs {
		out = append(out, r.Address)
	}
	return out
}

func getNameservers(c *call) {
	c.json(map[string]any{"dns": addresses(c.s.st.DNS.Nameservers)})
}

// setNameservers replaces the list.
func setNameservers(c *call) {
	var req struct {
		DNS []string `json:"dns"`
	}
	if !c.decode(&req) || !areAddresses(c, req.DNS) {
		return
	}
	c.s.st.DNS.Nameservers = resolvers(c, c.s.st.DNS.Nameservers, req.DNS)
	// Without nameservers MagicDNS goes off, until it is turned on again (OpenAPI:
	// paths./tailnet/{tailnet}/dns/nameservers).
	if len(req.DNS) == 0 {
		c.s.st.DNS.MagicDNS = false
	}
	c.s.changedLocked()
	c.json(map[string]any{"dns": nonNil(req.DNS), "magicDNS": c.s.st.DNS.MagicDNS})
}

func getPreferences(c *call) { c.json(map[string]any{"magicDNS": c.s.st.DNS.MagicDNS}) }

func setPreferences(c *call) {
	var req struct {
		MagicDNS *bool `json:"magicDNS"`
	}
	if !c.decode(&req) {
		return
	}
	if req.MagicDNS == nil {
		c.fail(http.StatusBadRequest, "magicDNS must be set")
		return
	}
	if !mayEnableMagicDNS(c, *req.MagicDNS, c.s.st.DNS.Nameservers) {
		return
	}
	c.s.st.DNS.MagicDNS = *req.MagicDNS
	c.s.changedLocked()
	getPreferences(c)
}

// mayEnableMagicDNS reports whether MagicDNS may be set as wanted with these global
// nameservers, and answers if not. OpenAPI: paths./tailnet/{tailnet}/dns/preferences
// says so of the preferences, and abn/ansible-tailscale-admin has the words
// (docs/troubleshooting.md) from the configuration, which is all that it writes. A new
// tailnet has MagicDNS on without a nameserver all the same.
func mayEnableMagicDNS(c *call, want bool, global []dnsResolver) bool {
	if !want || len(global) > 0 {
		return true
	}
	c.fail(http.StatusBadRequest, "need at least one nameserver to enable MagicDNS")
	return false
}

// TurnMagicDNSOn turns MagicDNS on without a nameserver, as it is in a new tailnet.
func (s *Server) TurnMagicDNSOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.st.DNS.MagicDNS = true
	s.changedLocked()
}

func getSearchPaths(c *call) {
	c.json(map[string]any{"searchPaths": nonNil(c.s.st.DNS.SearchPaths)})
}

func setSearchPaths(c *call) {
	var req struct {
		SearchPaths []string `json:"searchPaths"`
	}
	if !c.decode(&req) {
		return
	}
	c.s.st.DNS.SearchPaths = req.SearchPaths
	c.s.changedLocked()
	getSearchPaths(c)
}

func getSplitDNS(c *call) {
	out := map[string][]string{}
	for d, rs := range c.s.st.DNS.SplitDNS {
		out[d] = addresses(rs)
	}
	c.json(out)
}

func setSplitDNS(c *call) { splitDNS(c, map[string][]dnsResolver{}) }

// patchSplitDNS changes the domains that are named; null or an empty list removes one.
func patchSplitDNS(c *call) { splitDNS(c, maps.Clone(c.s.st.DNS.SplitDNS)) }

func splitDNS(c *call, domains map[string][]dnsResolver) {
	req := map[string][]string{}
	if !c.decode(&req) {
		return
	}
	for _, d := range slices.Sorted(maps.Keys(req)) {
		if !areAddresses(c, req[d]) {
			return
		}
	}
	for d, ns := range req {
		switch removal := c.s.switches.SplitDNSRemoval; {
		case len(ns) > 0:
			domains[d] = resolvers(c, domains[d], ns)
		case removal == "" || (ns == nil) == (removal == RemovalNull):
			delete(domains, d)
		}
	}
	c.s.st.DNS.SplitDNS = domains
	c.s.changedLocked()
	getSplitDNS(c)
}

// dnsConfiguration has the API's shape: empty and disabled settings are absent
// (abn/ansible-tailscale-admin, tests/live/test_dns_module_live.py).
type dnsConfiguration struct {
	Nameservers []dnsResolver            `json:"nameservers,omitempty"`
	SplitDNS    map[string][]dnsResolver `json:"splitDNS,omitempty"`
	SearchPaths []string                 `json:"searchPaths,omitempty"`
	Preferences struct {
		OverrideLocalDNS bool `json:"overrideLocalDNS,omitempty"`
		MagicDNS         bool `json:"magicDNS,omitempty"`
	} `json:"preferences"`
}

func getDNSConfiguration(c *call) {
	d := c.s.st.DNS
	out := dnsConfiguration{Nameservers: d.Nameservers, SearchPaths: d.SearchPaths, SplitDNS: d.SplitDNS}
	out.Preferences.MagicDNS, out.Preferences.OverrideLocalDNS = d.MagicDNS, d.OverrideLocalDNS
	c.json(out)
}

// setDNSConfiguration replaces all settings: absent settings are disabled or empty.
func setDNSConfiguration(c *call) {
	var req dnsConfiguration
	if !c.decode(&req) {
		return
	}
	if !mayEnableMagicDNS(c, req.Preferences.MagicDNS, req.Nameservers) || !areAddresses(c, addresses(req.Nameservers)) {
		return
	}
	d := dnsSettings{
		Nameservers: req.Nameservers, SearchPaths: req.SearchPaths, SplitDNS: map[string][]dnsResolver{},
		MagicDNS: req.Preferences.MagicDNS, OverrideLocalDNS: req.Preferences.OverrideLocalDNS,
	}
	for _, domain := range slices.Sorted(maps.Keys(req.SplitDNS)) {
		rs := req.SplitDNS[domain]
		if !areAddresses(c, addresses(rs)) {
			return
		}
		if len(rs) > 0 {
			d.SplitDNS[domain] = rs
		}
	}
	c.s.st.DNS = d
	c.s.changedLocked()
	getDNSConfiguration(c)
}

// areAddresses reports whether all are IP addresses, and answers if not.
func areAddresses(c *call, addresses []string) bool {
	for _, a := range addresses {
		if _, err := netip.ParseAddr(a); err != nil {
			c.fail(http.StatusBadRequest, "invalid nameserver address "+a)
			return false
		}
	}
	return true
}
