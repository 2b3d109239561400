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
	Nameservers      []string            `json:"nameservers"`
	SearchPaths      []string            `json:"searchPaths"`
	SplitDNS         map[string][]string `json:"splitDNS"`
	MagicDNS         bool                `json:"magicDNS"`
	OverrideLocalDNS bool                `json:"overrideLocalDNS"`
	// WithExitNode are the resolvers that are used with an exit node too.
	WithExitNode []string `json:"withExitNode,omitempty"`
}

func (c *call) getNameservers() { c.json(map[string]any{"dns": nonNil(c.s.st.DNS.Nameservers)}) }

func (c *call) setNameservers() {
	var req struct {
		DNS []string `json:"dns"`
	}
	if !c.decode(&req) || !c.areAddresses(req.DNS) {
		return
	}
	c.s.st.DNS.Nameservers = req.DNS
	// As the API documents it: without nameservers MagicDNS goes off, until
	// somebody turns it on again.
	if len(req.DNS) == 0 {
		c.s.st.DNS.MagicDNS = false
	}
	c.s.changedLocked()
	c.json(map[string]any{"dns": nonNil(req.DNS), "magicDNS": c.s.st.DNS.MagicDNS})
}

func (c *call) getPreferences() { c.json(map[string]any{"magicDNS": c.s.st.DNS.MagicDNS}) }

func (c *call) setPreferences() {
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
	c.s.st.DNS.MagicDNS = *req.MagicDNS
	c.s.changedLocked()
	c.getPreferences()
}

func (c *call) getSearchPaths() {
	c.json(map[string]any{"searchPaths": nonNil(c.s.st.DNS.SearchPaths)})
}

func (c *call) setSearchPaths() {
	var req struct {
		SearchPaths []string `json:"searchPaths"`
	}
	if !c.decode(&req) {
		return
	}
	c.s.st.DNS.SearchPaths = req.SearchPaths
	c.s.changedLocked()
	c.getSearchPaths()
}

func (c *call) getSplitDNS() { c.json(c.s.st.DNS.SplitDNS) }

func (c *call) setSplitDNS() { c.splitDNS(map[string][]string{}) }

// patchSplitDNS changes the domains that are named; an empty list removes one.
func (c *call) patchSplitDNS() { c.splitDNS(maps.Clone(c.s.st.DNS.SplitDNS)) }

func (c *call) splitDNS(into map[string][]string) {
	req := map[string][]string{}
	if !c.decode(&req) {
		return
	}
	for _, d := range slices.Sorted(maps.Keys(req)) {
		if !c.areAddresses(req[d]) {
			return
		}
	}
	for d, ns := range req {
		if len(ns) == 0 {
			delete(into, d)
			continue
		}
		into[d] = ns
	}
	c.s.st.DNS.SplitDNS = into
	c.s.changedLocked()
	c.getSplitDNS()
}

// dnsResolver and dnsConfiguration have the API's shape.
type dnsResolver struct {
	Address         string `json:"address"`
	UseWithExitNode bool   `json:"useWithExitNode,omitempty"`
}

type dnsConfiguration struct {
	Nameservers []dnsResolver            `json:"nameservers,omitempty"`
	SplitDNS    map[string][]dnsResolver `json:"splitDNS,omitempty"`
	SearchPaths []string                 `json:"searchPaths,omitempty"`
	Preferences struct {
		OverrideLocalDNS bool `json:"overrideLocalDNS,omitempty"`
		MagicDNS         bool `json:"magicDNS,omitempty"`
	} `json:"preferences"`
}

func (c *call) getDNSConfiguration() {
	d := c.s.st.DNS
	out := dnsConfiguration{Nameservers: d.resolvers(d.Nameservers), SearchPaths: d.SearchPaths, SplitDNS: map[string][]dnsResolver{}}
	for k, v := range d.SplitDNS {
		out.SplitDNS[k] = d.resolvers(v)
	}
	out.Preferences.MagicDNS, out.Preferences.OverrideLocalDNS = d.MagicDNS, d.OverrideLocalDNS
	c.json(out)
}

// setDNSConfiguration replaces everything: what is not named is off or empty.
func (c *call) setDNSConfiguration() {
	var req dnsConfiguration
	if !c.decode(&req) {
		return
	}
	d := dnsSettings{
		SearchPaths: req.SearchPaths, SplitDNS: map[string][]string{},
		MagicDNS: req.Preferences.MagicDNS, OverrideLocalDNS: req.Preferences.OverrideLocalDNS,
	}
	d.Nameservers = d.addresses(req.Nameservers)
	for k, v := range req.SplitDNS {
		d.SplitDNS[k] = d.addresses(v)
	}
	c.s.st.DNS = d
	c.s.changedLocked()
	c.getDNSConfiguration()
}

func (d *dnsSettings) resolvers(in []string) []dnsResolver {
	out := make([]dnsResolver, 0, len(in))
	for _, a := range in {
		out = append(out, dnsResolver{Address: a, UseWithExitNode: slices.Contains(d.WithExitNode, a)})
	}
	return out
}

// addresses of resolvers, of which those for exit nodes are remembered.
func (d *dnsSettings) addresses(in []dnsResolver) []string {
	out := make([]string, 0, len(in))
	for _, r := range in {
		out = append(out, r.Address)
		if r.UseWithExitNode && !slices.Contains(d.WithExitNode, r.Address) {
			d.WithExitNode = append(d.WithExitNode, r.Address)
		}
	}
	return out
}

// areAddresses says whether all are IP addresses, and answers if not.
func (c *call) areAddresses(in []string) bool {
	for _, a := range in {
		if _, err := netip.ParseAddr(a); err != nil {
			c.fail(http.StatusBadRequest, "invalid nameserver address "+a)
			return false
		}
	}
	return true
}
