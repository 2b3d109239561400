// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// A RouteSelection is how control selects the hosts that have the addresses of a service, or the
// routers that have a subnet's. The words are those of the setting routeSelection
// (tailscale.com/client/tailscale/v2 v2.12.0, tailnet_settings.go).
type RouteSelection string

// Route selections.
const (
	// ActivePassiveFailover gives all clients one host, the oldest. When it is lost, the next oldest one
	// follows (https://tailscale.com/kb/1115/high-availability, "Failover"). That a host keeps the
	// addresses when an older one comes back is an assumption.
	ActivePassiveFailover RouteSelection = "active-passive-failover"
	// RegionalRouting gives each client a host of its region, the DERP region that is closest to it, or
	// one of another region if its own has none. Within the region it balances clients over hosts
	// (https://tailscale.com/kb/1264/regional-routing, https://tailscale.com/blog/regional-routing:
	// "in-region load balancing"). How it balances no source says: here by a hash of both, so that
	// only the clients of a lost host move.
	RegionalRouting RouteSelection = "regional-routing"
	// RegionalRoutingFailover is RegionalRouting, but all clients of a region have its oldest host (the same
	// blog: "in-region failover").
	RegionalRoutingFailover RouteSelection = "regional-routing-failover"
	// MagicRoute gives each client all hosts, and the client selects one. That is an assumption,
	// from tailscaled: "as of 2026-07-10, the server never sends two nodes with the same AllowedIP
	// CIDR anyway. But that will be changing [...], letting the client make the decision"
	// (tailscale.com v1.102.5 net/routemanager, SetScore).
	MagicRoute RouteSelection = "magicroute"
)

// routeSelections are the values of the setting.
var routeSelections = []RouteSelection{ActivePassiveFailover, RegionalRouting, RegionalRoutingFailover, MagicRoute}

// An election is the result of a selection. It does not change once published.
type election struct {
	mode RouteSelection
	// hosts may have the addresses, by their ID. With ActivePassiveFailover it is one.
	hosts []candidate
}

type candidate struct {
	id     int64
	region int
}

func (e *election) equal(o *election) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.mode == o.mode && slices.Equal(e.hosts, o.hosts)
}

// has reports whether a device has the addresses for any client.
func (e *election) has(id int64) bool {
	return e != nil && slices.ContainsFunc(e.hosts, func(c candidate) bool { return c.id == id })
}

// first returns the oldest host, or zero.
func (e *election) first() int64 {
	if e == nil || len(e.hosts) == 0 {
		return 0
	}
	return e.hosts[0].id
}

// hasFor reports whether a device has the addresses for a client.
func (e *election) hasFor(id, client int64, region int) bool {
	if !e.has(id) {
		return false
	}
	if e.mode == ActivePassiveFailover || e.mode == MagicRoute {
		return true
	}
	near := closest(e.hosts, region)
	if e.mode == RegionalRoutingFailover {
		return near[0].id == id
	}
	return slices.MaxFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(weight(client, a.id), weight(client, b.id)), cmp.Compare(b.id, a.id))
	}).id == id
}

// closest returns the candidates of the region that is closest to a client. Control knows the
// latencies that clients measure; here the closest region is the one with the closest number.
func closest(hosts []candidate, region int) []candidate {
	distance := func(c candidate) int { return max(c.region-region, region-c.region) }
	best := slices.MinFunc(hosts, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a.region, b.region))
	})
	var out []candidate
	for _, c := range hosts {
		if c.region == best.region {
			out = append(out, c)
		}
	}
	return out
}

// weight is that of a host for a client (rendezvous hashing).
func weight(client, host int64) uint64 {
	h := fnv.New64a()
	b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(client)), uint64(host))
	// Writing to a hash cannot fail.
	_, _ = h.Write(b)
	return h.Sum64()
}
