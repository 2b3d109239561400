// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"maps"
	"net/netip"
	"slices"

	"tailscale.com/ipn"
	"tailscale.com/net/tsaddr"
	"tailscale.com/tailcfg"
)

// Routes are the addresses of services for which control has made nodes primary: it sends clients
// to those, and to no other host. The maps do not change once published.
type Routes struct {
	// Reported reports whether tailscaled has reported its network map in this session.
	Reported bool

	// Primary are the addresses for which this node is primary.
	Primary map[netip.Addr]bool

	// Others are the addresses that a connected node has which this one sees. A node sees only
	// those that the policy file lets it see.
	Others map[netip.Addr]bool
}

// Any reports whether a node has one of the addresses.
func (r Routes) Any(addrs []netip.Addr) bool {
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool { return r.Primary[a] || r.Others[a] })
}

// IsPrimary reports whether this node has one of the addresses.
func (r Routes) IsPrimary(addrs []netip.Addr) bool {
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool { return r.Primary[a] })
}

func (r Routes) equal(o Routes) bool {
	return r.Reported == o.Reported && maps.Equal(r.Primary, o.Primary) && maps.Equal(r.Others, o.Others)
}

// A routeTable follows the routes of one session. It holds only peers that have the address of a
// service, so its size does not depend on the size of the tailnet.
type routeTable struct {
	reported bool
	primary  []netip.Addr
	holders  map[tailcfg.NodeID]holder
}

// A holder is a peer with addresses of services.
type holder struct {
	addrs   []netip.Addr
	offline bool
}

func newRouteTable() *routeTable { return &routeTable{holders: make(map[tailcfg.NodeID]holder)} }

// update applies a notification, and reports whether it contained anything of interest. The
// network map of this node itself has its PrimaryRoutes; a peer's AllowedIPs have the routes for
// which it is primary, as this node is to use them (tailcfg.Node). Versions before 1.100 report
// whole network maps as NetMap.
func (t *routeTable) update(n ipn.Notify) bool {
	changed := false
	if s := n.InitialStatus; s != nil && s.Self != nil {
		changed, t.reported, t.primary = true, true, nil
		if p := s.Self.PrimaryRoutes; p != nil {
			t.primary = serviceAddrs(p.AsSlice(), nil)
		}
		clear(t.holders)
		for _, ps := range s.Peer {
			t.hold(ps.NodeID, deviceOfStatus(ps))
		}
	}
	switch nm := netMap(n); {
	case nm != nil && nm.SelfNode.Valid():
		changed, t.reported, t.primary = true, true, serviceAddrs(nm.SelfNode.PrimaryRoutes().AsSlice(), nil)
		clear(t.holders)
		for _, p := range nm.Peers {
			t.hold(p.ID(), deviceOf(p.AsStruct()))
		}
	case n.SelfChange != nil && n.InitialStatus == nil:
		// A whole new network map: the comment in Peers.update.
		changed, t.primary = true, serviceAddrs(n.SelfChange.PrimaryRoutes, nil)
		clear(t.holders)
	}
	for _, node := range n.PeersChanged {
		changed = t.hold(node.ID, deviceOf(node)) || changed
	}
	for _, c := range n.PeerChangedPatch {
		if h, ok := t.holders[c.NodeID]; ok && c.Online != nil && h.offline == *c.Online {
			h.offline = !*c.Online
			t.holders[c.NodeID] = h
			changed = true
		}
	}
	for _, id := range n.PeersRemoved {
		changed = t.hold(id, device{}) || changed
	}
	return changed
}

// hold records what a peer has, and reports whether this concerns a service.
func (t *routeTable) hold(id tailcfg.NodeID, d device) bool {
	addrs := serviceAddrs(d.allowed, d.addrs)
	_, existed := t.holders[id]
	if len(addrs) == 0 {
		delete(t.holders, id)
		return existed
	}
	t.holders[id] = holder{addrs: addrs, offline: d.Offline}
	return true
}

// routes returns the current routes.
func (t *routeTable) routes() Routes {
	out := Routes{Reported: t.reported, Primary: make(map[netip.Addr]bool), Others: make(map[netip.Addr]bool)}
	for _, a := range t.primary {
		out.Primary[a] = true
	}
	for _, h := range t.holders {
		if h.offline {
			// Control has not noticed yet, or keeps the addresses where nobody answers.
			continue
		}
		for _, a := range h.addrs {
			out.Others[a] = true
		}
	}
	return out
}

// serviceAddrs returns the addresses among routes that are Tailscale's, and not those of the node
// itself: the addresses of services.
func serviceAddrs(routes, own []netip.Prefix) []netip.Addr {
	var out []netip.Addr
	for _, p := range routes {
		if p.IsSingleIP() && tsaddr.IsTailscaleIP(p.Addr()) && !slices.Contains(own, p) {
			out = append(out, p.Addr())
		}
	}
	return out
}
