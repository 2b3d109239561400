// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tailscale.com/tailcfg"
)

// A generation is the tailnet at one time, as all streams share it: made once, sorted once, and
// never changed. A stream's cost of a change is a walk over two sorted lists of pointers, outside
// of the server's lock. That walk decides whether the client sees a peer, and which routes it has
// there.
type generation struct {
	// peers are the devices that others may see, by their ID.
	peers []*peer
	// services are all services, by their name.
	services []*shownService
	// elections are as Server.elections.
	elections map[string]*election
	filter    []tailcfg.FilterRule
	rules     []sightRule
	// expiry is when the first of the peers expires, or zero.
	expiry time.Time
}

// A peer is a device as others see it.
type peer struct {
	access

	id   int64
	node *tailcfg.Node
	// members is what rules select the device by.
	members string
	// routes are those that the device has for some clients.
	routes []peerRoute
	expiry time.Time

	mu sync.Mutex
	// variants are the node with some of its routes.
	variants map[string]*tailcfg.Node
}

// A peerRoute are the addresses of a service, or a subnet.
type peerRoute struct {
	election string
	prefixes []netip.Prefix
	dst      ruleSet
	// exit routes have no election.
	exit bool
}

func (r peerRoute) equal(o peerRoute) bool {
	return r.election == o.election && r.exit == o.exit && slices.Equal(r.prefixes, o.prefixes) && slices.Equal(r.dst, o.dst)
}

func (p *peer) equal(o *peer) bool {
	return p.id == o.id && p.access.equal(o.access) && p.members == o.members && p.expiry.Equal(o.expiry) &&
		slices.EqualFunc(p.routes, o.routes, peerRoute.equal) && p.node.Equal(o.node)
}

// A shownService is a service as clients see it.
type shownService struct {
	*service

	dst ruleSet
	// details are the value of its capability.
	details tailcfg.RawMessage
}

// staleness names what changed since the last generation.
type staleness struct {
	all, services bool
	devices       map[int64]bool
}

func (x *staleness) device(id int64) {
	if x.devices == nil {
		x.devices = map[int64]bool{}
	}
	x.devices[id] = true
}

func (x *staleness) hosts(e *election) {
	if e == nil {
		return
	}
	for _, c := range e.hosts {
		x.device(c.id)
	}
}

// work counts what changes have cost, for tests.
type work struct {
	peers, filters int
}

// generationLocked returns the tailnet as it is.
func (s *Server) generationLocked() *generation {
	old, at := s.gen, s.now()
	if old == nil {
		old = &generation{}
		s.stale.all = true
	}
	if !old.expiry.IsZero() && !at.Before(old.expiry) {
		s.stale.all = true
	}
	if !s.stale.all && !s.stale.services && len(s.stale.devices) == 0 {
		return old
	}
	g := &generation{services: old.services, rules: old.rules, filter: old.filter, elections: s.elections}
	if s.stale.all {
		g.rules = s.sightRules(s.policy)
	}
	if s.stale.all || s.stale.services {
		g.services = s.shownServicesLocked(g.rules)
		s.staleHostsLocked()
	}
	reselected := s.mergePeersLocked(g, old, at)
	if s.stale.all || s.stale.services || reselected {
		s.work.filters++
		if f := s.filterLocked(); old.filter == nil || !slices.EqualFunc(f, old.filter, equalRule) {
			g.filter = f
		}
	}
	s.gen, s.stale = g, staleness{}
	return g
}

// staleHostsLocked marks all hosts, as the addresses of services are among their routes.
func (s *Server) staleHostsLocked() {
	for _, e := range s.elections {
		s.stale.hosts(e)
	}
	for _, ids := range s.accepted {
		for id := range ids {
			s.stale.device(id)
		}
	}
}

// changedDevicesLocked returns the devices that may differ from those among peers, sorted.
func (s *Server) changedDevicesLocked(peers []*peer) []int64 {
	if !s.stale.all {
		return slices.Sorted(maps.Keys(s.stale.devices))
	}
	out := slices.Collect(maps.Keys(s.st.Devices))
	for _, p := range peers {
		// A device that was deleted is among the old peers only.
		if s.st.Devices[p.id] == nil {
			out = append(out, p.id)
		}
	}
	slices.Sort(out)
	return out
}

// mergePeersLocked sets the peers of g: those of old with the changed ones replaced. It reports
// whether rules may select other devices than before.
func (s *Server) mergePeersLocked(g, old *generation, at time.Time) (reselected bool) {
	changed := s.changedDevicesLocked(old.peers)
	g.peers = make([]*peer, 0, len(old.peers)+len(changed))
	rest := old.peers
	for _, id := range changed {
		i, found := slices.BinarySearchFunc(rest, id, func(p *peer, id int64) int { return cmp.Compare(p.id, id) })
		g.peers = append(g.peers, rest[:i]...)
		rest = rest[i:]
		var previous *peer
		if found {
			previous, rest = rest[0], rest[1:]
		}
		updated := s.peerLocked(g, s.st.Devices[id], at)
		switch {
		case updated == nil || previous == nil || updated.members != previous.members:
			// Rules also select devices that nobody sees yet.
			reselected = true
		case updated.equal(previous):
			updated = previous
		}
		if updated != nil {
			g.peers = append(g.peers, updated)
		}
	}
	g.peers = append(g.peers, rest...)
	for _, p := range g.peers {
		if !p.expiry.IsZero() && (g.expiry.IsZero() || p.expiry.Before(g.expiry)) {
			g.expiry = p.expiry
		}
	}
	return reselected
}

func equalRule(a, b tailcfg.FilterRule) bool {
	return slices.Equal(a.SrcIPs, b.SrcIPs) && slices.EqualFunc(a.DstPorts, b.DstPorts, func(x, y tailcfg.NetPortRange) bool {
		return x.IP == y.IP && x.Ports == y.Ports
	})
}

// peerLocked returns a device as others see it, or nil if nobody sees it.
func (s *Server) peerLocked(g *generation, d *device, at time.Time) *peer {
	if d == nil || !d.Authorized || d.expired(at) {
		return nil
	}
	s.work.peers++
	n := s.nodeLocked(d)
	n.AllowedIPs, n.CapMap, n.PrimaryRoutes = slices.Clone(n.Addresses), nil, nil
	p := &peer{
		id: d.ID, node: n, access: s.accessLocked(g.rules, d), routes: s.peerRoutesLocked(g, d), variants: map[string]*tailcfg.Node{},
		members: strings.Join(d.Tags, ",") + " " + d.IPv4.String(),
	}
	if !d.KeyExpiryDisabled {
		p.expiry = d.Expires
	}
	return p
}

// accessLocked returns the rules that a device is a source and a destination of, also as a host
// of services and as a router of subnets.
func (s *Server) accessLocked(rules []sightRule, d *device) access {
	hosted := make([]*service, 0, len(d.offers))
	for name := range d.offers {
		if v := s.st.Services[name]; v != nil && s.accepted[name][d.ID] {
			hosted = append(hosted, v)
		}
	}
	routes := slices.Concat(d.subnets(), d.exits())
	return access{
		src: sources(rules, d),
		dst: reaching(rules, func(x selection) bool {
			return x.device(d) || slices.ContainsFunc(hosted, x.service) || slices.ContainsFunc(routes, x.route)
		}),
	}
}

// peerRoutesLocked returns the routes to a device in addition to its addresses.
func (s *Server) peerRoutesLocked(g *generation, d *device) []peerRoute {
	var out []peerRoute
	for _, name := range slices.Sorted(maps.Keys(d.offers)) {
		if v := s.st.Services[name]; v != nil && s.elections[name].has(d.ID) {
			out = append(out, peerRoute{election: name, prefixes: v.prefixes(), dst: reaching(g.rules, func(x selection) bool { return x.service(v) })})
		}
	}
	for _, p := range d.subnets() {
		if s.elections[p.String()].has(d.ID) {
			out = append(out, peerRoute{election: p.String(), prefixes: []netip.Prefix{p}, dst: reaching(g.rules, func(x selection) bool { return x.route(p) })})
		}
	}
	for _, p := range d.exits() {
		out = append(out, peerRoute{exit: true, prefixes: []netip.Prefix{p}, dst: reaching(g.rules, func(x selection) bool { return x.route(p) })})
	}
	return out
}

// shownServicesLocked returns the services as clients see them.
func (s *Server) shownServicesLocked(rules []sightRule) []*shownService {
	out := make([]*shownService, 0, len(s.st.Services))
	for _, name := range slices.Sorted(maps.Keys(s.st.Services)) {
		v := s.st.Services[name]
		w := &shownService{service: v, dst: reaching(rules, func(x selection) bool { return x.service(v) })}
		// Encoding names, addresses and ports cannot fail.
		if m, err := tailcfg.MarshalCapJSON(v.details()); err == nil {
			w.details = m
		}
		out = append(out, w)
	}
	return out
}

// details returns what clients learn of a service. That a service whose ports are not validated
// has all ports of all protocols here is an assumption.
func (v *service) details() tailcfg.ServiceDetails {
	d := tailcfg.ServiceDetails{Name: tailcfg.ServiceName(v.Name), DisplayName: v.DisplayName, Addrs: v.addrs()}
	for _, p := range v.Ports {
		if p == doNotValidate {
			d.Ports = append(d.Ports, tailcfg.ProtoPortRange{Ports: tailcfg.PortRangeAny})
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimPrefix(p, "tcp:"), 10, 16); err == nil {
			d.Ports = append(d.Ports, tailcfg.ProtoPortRange{Proto: 6, Ports: tailcfg.PortRange{First: uint16(n), Last: uint16(n)}})
		}
	}
	return d
}

// capability returns the name of a service's capability. The server chooses the part after the
// prefix, and clients must not parse it (tailcfg.NodeAttrPrefixServices).
func (w *shownService) capability() tailcfg.NodeCapability {
	h := sha256.Sum256([]byte(w.Name))
	return tailcfg.NodeCapability(string(tailcfg.NodeAttrPrefixServices) + hex.EncodeToString(h[:8]))
}

// A client is whom a map is for.
type client struct {
	access

	id     int64
	region int
	// admitted is whether the device is authorized: others see nobody.
	admitted bool
}

func (c client) equal(o client) bool {
	return c.id == o.id && c.region == o.region && c.admitted == o.admitted && c.access.equal(o.access)
}

// node returns a peer as a client sees it, or nil if the client does not see it. It returns the
// same node for the same routes.
func (g *generation) node(p *peer, c client) *tailcfg.Node {
	if !c.admitted || p.id == c.id || !c.sees(p.access) {
		return nil
	}
	if len(p.routes) == 0 {
		return p.node
	}
	key := make([]byte, len(p.routes))
	for i, r := range p.routes {
		key[i] = '0'
		if c.src.meets(r.dst) && (r.exit || g.elections[r.election].hasFor(p.id, c.id, c.region)) {
			key[i] = '1'
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.variants[string(key)]; n != nil {
		return n
	}
	n := p.node.Clone()
	for i, r := range p.routes {
		if key[i] == '0' {
			continue
		}
		n.AllowedIPs = append(n.AllowedIPs, r.prefixes...)
		if !r.exit {
			n.PrimaryRoutes = append(n.PrimaryRoutes, r.prefixes...)
		}
	}
	p.variants[string(key)] = n
	return n
}

// nodes returns the peers that a client sees.
func (g *generation) nodes(c client) []*tailcfg.Node {
	out := []*tailcfg.Node{}
	for _, p := range g.peers {
		if n := g.node(p, c); n != nil {
			out = append(out, n)
		}
	}
	return out
}
