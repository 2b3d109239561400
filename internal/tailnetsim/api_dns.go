// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/http"
	"slices"
)

// dnsSettings of the tailnet.
type dnsSettings struct {
	Nameservers      []string            `json:"nameservers"`
	SearchPaths      []string            `json:"searchPaths"`
	SplitDNS         map[string][]string `json:"splitDNS"`
	MagicDNS         bool                `json:"magicDNS"`
	OverrideLocalDNS bool                `json:"overrideLocalDNS"`
}

func (c *call) getNameservers() { c.json(map[string]any{"dns": nonNil(c.s.st.DNS.Nameservers)}) }

func (c *call) setNameservers() {
	var req struct {
		DNS []string `json:"dns"`
	}
	if !c.decode(&req) {
		return
	}
	c.s.st.DNS.Nameservers = req.DNS
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
	out := dnsConfiguration{Nameservers: resolvers(d.Nameservers), SearchPaths: d.SearchPaths, SplitDNS: map[string][]dnsResolver{}}
	for k, v := range d.SplitDNS {
		out.SplitDNS[k] = resolvers(v)
	}
	out.Preferences.MagicDNS, out.Preferences.OverrideLocalDNS = d.MagicDNS, d.OverrideLocalDNS
	c.json(out)
}

func (c *call) setDNSConfiguration() {
	var req dnsConfiguration
	if !c.decode(&req) {
		return
	}
	d := dnsSettings{
		Nameservers: addresses(req.Nameservers), SearchPaths: req.SearchPaths, SplitDNS: map[string][]string{},
		MagicDNS: req.Preferences.MagicDNS, OverrideLocalDNS: req.Preferences.OverrideLocalDNS,
	}
	for k, v := range req.SplitDNS {
		d.SplitDNS[k] = addresses(v)
	}
	c.s.st.DNS = d
	c.s.changedLocked()
	c.getDNSConfiguration()
}

func resolvers(in []string) []dnsResolver {
	out := make([]dnsResolver, 0, len(in))
	for _, a := range in {
		out = append(out, dnsResolver{Address: a})
	}
	return out
}

func addresses(in []dnsResolver) []string {
	out := make([]string, 0, len(in))
	for _, r := range in {
		out = append(out, r.Address)
	}
	return out
}

func defaultSettings() map[string]any {
	return map[string]any{
		"aclsExternallyManagedOn": false, "aclsExternalLink": "",
		"devicesApprovalOn": false, "devicesAutoUpdatesOn": false, "devicesKeyDurationDays": 180,
		"usersApprovalOn": false, "usersRoleAllowedToJoinExternalTailnets": "admin",
		"networkFlowLoggingOn": false, "regionalRoutingOn": false, "postureIdentityCollectionOn": false,
		"httpsEnabled": false,
	}
}

func (c *call) getSettings() { c.json(c.s.st.Settings) }

// patchSettings changes what is named and not null.
func (c *call) patchSettings() {
	req := map[string]any{}
	if !c.decode(&req) {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(req)) {
		if _, ok := c.s.st.Settings[k]; !ok {
			c.fail(http.StatusBadRequest, "unknown setting "+k)
			return
		}
	}
	for k, v := range req {
		if v != nil {
			c.s.st.Settings[k] = v
		}
	}
	c.s.changedLocked()
	c.getSettings()
}

func (c *call) listUsers() {
	p := c.s.profile(userOwner)
	c.json(map[string]any{"users": []any{map[string]any{
		"id": "1", "displayName": p.DisplayName, "loginName": p.LoginName, "role": "owner", "status": "active", "type": "member",
	}}})
}
