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

// mapResponseLocked is the whole network map of a device. Every response is whole:
// deltas would save bytes that do not matter here.
func (s *Server) mapResponseLocked(d *device) *tailcfg.MapResponse {
	res := &tailcfg.MapResponse{
		Node:            s.nodeLocked(d),
		DERPMap:         s.derpMap,
		Domain:          s.opts.Tailnet,
		DNSConfig:       s.dnsConfigLocked(d),
		PacketFilters:   map[string][]tailcfg.FilterRule{"base": s.filterLocked()},
		Peers:           []*tailcfg.Node{},
		UserProfiles:    []tailcfg.UserProfile{s.profile(userOwner), s.profile(userTagged)},
		CollectServices: "true",
	}
	if !d.Authorized {
		return res
	}
	now := s.now()
	for _, id := range slices.Sorted(maps.Keys(s.st.Devices)) {
		p := s.st.Devices[id]
		if p == d || !p.Authorized || p.expired(now) {
			continue
		}
		n := s.nodeLocked(p)
		n.CapMap = nil
		n.AllowedIPs = append(slices.Clone(n.Addresses), s.routesLocked(p)...)
		n.PrimaryRoutes = s.routesLocked(p)
		res.Peers = append(res.Peers, n)
	}
	return res
}

// nodeLocked is a device as it sees itself: a service host has the addresses of every
// service that it was accepted for, primary or not, also while it drains.
func (s *Server) nodeLocked(d *device) *tailcfg.Node {
	v4, v6 := netip.PrefixFrom(d.IPv4, 32), netip.PrefixFrom(d.IPv6, 128)
	online := d.online
	n := &tailcfg.Node{
		ID: tailcfg.NodeID(d.ID), StableID: d.StableID, Name: d.Label + "." + s.opts.Domain + ".",
		User: d.user(), Key: d.NodeKey, Machine: d.Machine, DiscoKey: d.DiscoKey,
		Addresses: []netip.Prefix{v4, v6}, AllowedIPs: []netip.Prefix{v4, v6},
		Endpoints: d.Endpoints, HomeDERP: d.HomeDERP, Cap: d.Cap, Created: d.Created, Tags: d.Tags,
		MachineAuthorized: d.Authorized, Online: &online,
		CapMap: tailcfg.NodeCapMap{tailcfg.NodeAttrDisableUPnP: nil},
	}
	if !d.KeyExpiryDisabled {
		n.KeyExpiry = d.Expires
	}
	if !online {
		seen := d.LastSeen
		n.LastSeen = &seen
	}
	if d.Hostinfo != nil {
		n.Hostinfo = d.Hostinfo.View()
	}
	if s.st.Settings["httpsEnabled"] == true && !s.switches.NoHTTPSCapability {
		n.CapMap[tailcfg.CapabilityHTTPS] = nil
	}

	vips := tailcfg.ServiceIPMappings{}
	for _, name := range slices.Sorted(maps.Keys(s.st.Services)) {
		if !s.accepted[name][d.ID] {
			continue
		}
		v := s.st.Services[name]
		vips[tailcfg.ServiceName(name)] = v.addrs()
		n.AllowedIPs = append(n.AllowedIPs, v.prefixes()...)
	}
	if len(vips) > 0 {
		// Encoding a map of addresses cannot fail.
		if m, err := tailcfg.MarshalCapJSON(vips); err == nil {
			n.CapMap[tailcfg.NodeAttrServiceHost] = []tailcfg.RawMessage{m}
		}
	}
	return n
}

// routesLocked returns the routes to the device in addition to its addresses: services of which
// it is the primary host, and its enabled subnets.
func (s *Server) routesLocked(d *device) []netip.Prefix {
	var out []netip.Prefix
	for _, name := range slices.Sorted(maps.Keys(s.st.Services)) {
		if s.primary[name] == d.ID {
			out = append(out, s.st.Services[name].prefixes()...)
		}
	}
	if d.Hostinfo == nil {
		return out
	}
	for _, p := range d.Hostinfo.RoutableIPs {
		if slices.Contains(d.EnabledRoutes, p.String()) {
			out = append(out, p)
		}
	}
	return out
}

// dnsConfigLocked has MagicDNS names of services as records; nodes know those of
// machines from their names. The names that certificates are for are the device's.
func (s *Server) dnsConfigLocked(dev *device) *tailcfg.DNSConfig {
	d := s.st.DNS
	c := &tailcfg.DNSConfig{Proxied: d.MagicDNS, Routes: map[string][]*dnstype.Resolver{}, CertDomains: s.certDomainsLocked(dev)}
	if d.MagicDNS {
		c.Domains = append(c.Domains, s.opts.Domain)
		// An empty list makes the node itself answer for the domain.
		c.Routes[s.opts.Domain] = nil
		for _, name := range slices.Sorted(maps.Keys(s.st.Services)) {
			for _, a := range s.st.Services[name].Addrs {
				c.ExtraRecords = append(c.ExtraRecords, tailcfg.DNSRecord{Name: name[len("svc:"):] + "." + s.opts.Domain, Value: a})
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
