// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"reflect"
	"slices"

	"tailscale.com/tailcfg"
)

// responses returns what a stream sends that has sent last, which is nil at first.
func (m *netMap) responses(s *Server, last *netMap, whole bool) []*tailcfg.MapResponse {
	if last == nil {
		return []*tailcfg.MapResponse{m.whole(s)}
	}
	rs := m.delta(last)
	if len(rs) == 0 || !whole {
		return rs
	}
	r := m.whole(s)
	if len(r.Peers) == 0 {
		// A list of peers replaces the previous one, but the JSON omits an empty list, which means no
		// change.
		for _, n := range last.gen.nodes(last.client) {
			r.PeersRemoved = append(r.PeersRemoved, n.ID)
		}
	}
	return []*tailcfg.MapResponse{r}
}

// delta returns the responses that turn the map that a stream sent last into m: none, one, or two,
// as patches come on their own ("in practice the control server should only send these on their
// own, without the Peers* fields also set", tailcfg.MapResponse.PeersChangedPatch). Fields that are
// absent have not changed (tailscale.com control/controlclient, map.go: updateStateFromResponse).
func (m *netMap) delta(last *netMap) []*tailcfg.MapResponse {
	r := &tailcfg.MapResponse{}
	some := false
	if !m.self.Equal(last.self) {
		r.Node, some = m.self, true
	}
	if m.derp != last.derp {
		r.DERPMap, some = m.derp, true
	}
	if m.lock != last.lock {
		r.TKAInfo, some = m.lock, true
	}
	if !reflect.DeepEqual(m.dns, last.dns) {
		r.DNSConfig, some = m.dns, true
	}
	if !reflect.DeepEqual(m.users, last.users) {
		r.UserProfiles, some = m.users, true
	}
	if !sameSlice(m.gen.filter, last.gen.filter) {
		r.PacketFilters, some = map[string][]tailcfg.FilterRule{"base": m.gen.filter}, true
	}
	var patches []*tailcfg.PeerChange
	m.walk(last, func(id tailcfg.NodeID, previous, updated *tailcfg.Node) {
		switch {
		case updated == nil:
			r.PeersRemoved = append(r.PeersRemoved, id)
		case previous == nil:
			r.PeersChanged = append(r.PeersChanged, updated)
		case previous.Equal(updated):
		default:
			if p := patch(previous, updated); p != nil {
				patches = append(patches, p)
			} else {
				r.PeersChanged = append(r.PeersChanged, updated)
			}
		}
	})
	var out []*tailcfg.MapResponse
	if some || len(r.PeersRemoved) > 0 || len(r.PeersChanged) > 0 {
		out = append(out, r)
	}
	if len(patches) > 0 {
		out = append(out, &tailcfg.MapResponse{PeersChangedPatch: patches})
	}
	return out
}

// walk calls fn, in the order of their IDs, for each peer that is another one than before.
func (m *netMap) walk(last *netMap, fn func(id tailcfg.NodeID, previous, updated *tailcfg.Node)) {
	same := m.client.equal(last.client)
	a, b := last.gen.peers, m.gen.peers
	for len(a) > 0 || len(b) > 0 {
		var id int64
		var previous, updated *tailcfg.Node
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].id < b[0].id:
			id, previous = a[0].id, last.gen.node(a[0], last.client)
			a = a[1:]
		case len(a) == 0 || b[0].id < a[0].id:
			id, updated = b[0].id, m.gen.node(b[0], m.client)
			b = b[1:]
		case same && a[0] == b[0] && len(a[0].routes) == 0:
			a, b = a[1:], b[1:]
			continue
		default:
			id, previous, updated = b[0].id, last.gen.node(a[0], last.client), m.gen.node(b[0], m.client)
			a, b = a[1:], b[1:]
		}
		if previous != updated {
			fn(tailcfg.NodeID(id), previous, updated)
		}
	}
}

// patch returns the difference of two states of a peer if a patch can express it, or nil.
func patch(previous, updated *tailcfg.Node) *tailcfg.PeerChange {
	n, c := *previous, &tailcfg.PeerChange{NodeID: updated.ID}
	if updated.HomeDERP != 0 && n.HomeDERP != updated.HomeDERP {
		n.HomeDERP, c.DERPRegion = updated.HomeDERP, updated.HomeDERP
	}
	if updated.Cap != 0 && n.Cap != updated.Cap {
		n.Cap, c.Cap = updated.Cap, updated.Cap
	}
	if len(updated.Endpoints) > 0 && !slices.Equal(n.Endpoints, updated.Endpoints) {
		n.Endpoints, c.Endpoints = updated.Endpoints, updated.Endpoints
	}
	if n.Key != updated.Key {
		n.Key, c.Key = updated.Key, &updated.Key
	}
	if len(updated.KeySignature) > 0 && !bytes.Equal(n.KeySignature, updated.KeySignature) {
		n.KeySignature, c.KeySignature = updated.KeySignature, updated.KeySignature
	}
	if n.DiscoKey != updated.DiscoKey {
		n.DiscoKey, c.DiscoKey = updated.DiscoKey, &updated.DiscoKey
	}
	if updated.Online != nil && (n.Online == nil || *n.Online != *updated.Online) {
		n.Online, c.Online = updated.Online, updated.Online
	}
	if updated.LastSeen != nil && (n.LastSeen == nil || !n.LastSeen.Equal(*updated.LastSeen)) {
		n.LastSeen, c.LastSeen = updated.LastSeen, updated.LastSeen
	}
	if !n.KeyExpiry.Equal(updated.KeyExpiry) {
		n.KeyExpiry, c.KeyExpiry = updated.KeyExpiry, &updated.KeyExpiry
	}
	if !n.Equal(updated) {
		return nil
	}
	return c
}

// sameSlice reports whether two slices are one.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
