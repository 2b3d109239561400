// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/netip"
	"slices"

	"tailscale.com/tailcfg"
	"tailscale.com/types/dnstype"
)

// A netMap is the map of one device. It does not change once made.
type netMap struct {
	gen    *generation
	client client
	self   *tailcfg.Node
	users  []tailcfg.UserProfile
	dns    *tailcfg.DNSConfig
	derp   *tailcfg.DERPMap
	lock   *tailcfg.TKAInfo
}

// netMapLocked returns the map of a device as it is now.
func (s *Server) netMapLocked(d *device) *netMap {
	g := s.generationLocked()
	m := &netMap{
		gen: g, derp: s.derpMap, lock: s.lockInfo, users: s.usersLocked(d),
		client: client{id: d.ID, region: s.regionLocked(d), admitted: d.Authorized, access: s.accessLocked(g.rules, d)},
	}
	m.self = s.selfLocked(g, d, m.client)
	m.dns = s.dnsConfigLocked(g, d, m.client)
	return m
}

// mapResponseLocked is the whole network map of a device.
func (s *Server) mapResponseLocked(d *device) *tailcfg.MapResponse {
	return s.netMapLocked(d).whole(s)
}

// whole returns the map as the first response of a stream.
func (m *netMap) whole(s *Server) *tailcfg.MapResponse {
	return &tailcfg.MapResponse{
		Node:            m.self,
		DERPMap:         m.derp,
		TKAInfo:         m.lock,
		Domain:          s.opts.Tailnet,
		DNSConfig:       m.dns,
		PacketFilters:   map[string][]tailcfg.FilterRule{"base": m.gen.filter},
		Peers:           m.gen.nodes(m.client),
		UserProfiles:    m.users,
		CollectServices: "true",
	}
}

// nodeLocked is a device by what it is, without routes and without what it hosts.
func (s *Server) nodeLocked(d *device) *tailcfg.Node {
	v4, v6 := netip.PrefixFrom(d.IPv4, 32), netip.PrefixFrom(d.IPv6, 128)
	online, seen := d.online, d.LastSeen
	n := &tailcfg.Node{
		ID: tailcfg.NodeID(d.ID), StableID: d.StableID, Name: d.Label + "." + s.opts.Domain + ".",
		User: d.user(), Key: d.NodeKey, Machine: d.Machine, DiscoKey: d.DiscoKey,
		Addresses: []netip.Prefix{v4, v6}, AllowedIPs: []netip.Prefix{v4, v6},
		Endpoints: d.Endpoints, HomeDERP: d.HomeDERP, Cap: d.Cap, Created: d.Created, Tags: d.Tags,
		// The time stays when a device comes back, as a patch cannot take it away (tailcfg.PeerChange).
		MachineAuthorized: d.Authorized, Online: &online, LastSeen: &seen, KeySignature: d.KeySignature,
		CapMap: tailcfg.NodeCapMap{tailcfg.NodeAttrDisableUPnP: nil},
	}
	if !d.KeyExpiryDisabled {
		n.KeyExpiry = d.Expires
	}
	if d.Hostinfo != nil {
		n.Hostinfo = d.Hostinfo.View()
	}
	return n
}

// selfLocked is a device as it sees itself: a service host has the addresses of every service
// that it was accepted for, primary or not, also while it drains. PrimaryRoutes are those that it
// has for any client (tailscale/tailscale#19666, where they are absent on a host that no client
// has a route to).
func (s *Server) selfLocked(g *generation, d *device, c client) *tailcfg.Node {
	n := s.nodeLocked(d)
	n.LastSeen, n.User = nil, s.selfProfile(d).ID
	// Nodes without this capability keep no chain.
	n.CapMap[tailcfg.CapabilityTailnetLock] = nil
	if s.st.Settings["httpsEnabled"] == true && !s.switches.NoHTTPSCapability {
		n.CapMap[tailcfg.CapabilityHTTPS] = nil
	}
	vips := tailcfg.ServiceIPMappings{}
	for _, name := range slices.Sorted(maps.Keys(d.offers)) {
		v := s.st.Services[name]
		if v == nil || !s.accepted[name][d.ID] {
			continue
		}
		vips[tailcfg.ServiceName(name)] = v.addrs()
		n.AllowedIPs = append(n.AllowedIPs, v.prefixes()...)
		if s.elections[name].has(d.ID) {
			n.PrimaryRoutes = append(n.PrimaryRoutes, v.prefixes()...)
		}
	}
	for _, p := range d.subnets() {
		if s.elections[p.String()].has(d.ID) {
			n.PrimaryRoutes = append(n.PrimaryRoutes, p)
		}
	}
	if len(vips) > 0 {
		// Encoding a map of addresses cannot fail.
		if m, err := tailcfg.MarshalCapJSON(vips); err == nil {
			n.CapMap[tailcfg.NodeAttrServiceHost] = []tailcfg.RawMessage{m}
		}
	}
	if c.admitted && !s.switches.NoServiceDetails {
		for _, w := range g.services {
			if c.src.meets(w.dst) {
				n.CapMap[w.capability()] = []tailcfg.RawMessage{w.details}
			}
		}
	}
	return n
}

// dnsConfigLocked has MagicDNS names of services as records; nodes know those of
// machines from their names. The names that certificates are for are the device's.
func (s *Server) dnsConfigLocked(g *generation, dev *device, cl client) *tailcfg.DNSConfig {
	d := s.st.DNS
	c := &tailcfg.DNSConfig{Proxied: d.MagicDNS, Routes: map[string][]*dnstype.Resolver{}, CertDomains: s.certDomainsLocked(dev)}
	if d.MagicDNS {
		c.Domains = append(c.Domains, s.opts.Domain)
		// An empty list makes the node itself answer for the domain.
		c.Routes[s.opts.Domain] = nil
		for _, w := range g.services {
			if !cl.src.meets(w.dst) && !s.accepted[w.Name][dev.ID] {
				continue
			}
			for _, a := range w.Addrs {
				c.ExtraRecords = append(c.ExtraRecords, tailcfg.DNSRecord{Name: w.Name[len("svc:"):] + "." + s.opts.Domain, Value: a})
			}
		}
	}
	c.Domains = append(c.Domains, d.SearchPaths...)
	for _, ns := range d.Nameservers {
		c.Resolvers = append(c.Resolvers, &dnstype.Resolver{Addr: ns.Address, UseWithExitNode: ns.UseWithExitNode})
	}
	for dom, nss := range d.SplitDNS {
		for _, ns := range nss {
			c.Routes[dom] = append(c.Routes[dom], &dnstype.Resolver{Addr: ns.Address, UseWithExitNode: ns.UseWithExitNode})
		}
	}
	return c
}
