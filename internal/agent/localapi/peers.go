// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/net/tsaddr"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
)

// A Device is another node of the tailnet.
type Device struct {
	// Name is the device's DNS name without a trailing dot.
	Name string

	// Addr is the device's own address, IPv4 if it has one.
	Addr netip.Addr

	// Tags are the device's tags.
	Tags []string

	// Offline reports that the control server says that the device is offline. For some devices it
	// does not say.
	Offline bool
}

// A Host is the result of looking up an address or a name in the tailnet.
type Host struct {
	// Addr is the address to dial. Invalid when no device has the host.
	Addr netip.Addr

	// Devices are the devices that can get traffic to Addr, sorted by name.
	Devices []Device

	// RouteUnused reports that only a subnet router has the host, and that this node does not use
	// the routes of subnet routers. Addr is then invalid.
	RouteUnused bool
}

// Peers are the devices that tailscaled can reach, according to its bus. They map addresses and
// names to devices: a device's address, an address of a service, or an address behind a device.
// The time of a lookup does not depend on the size of the tailnet.
type Peers struct {
	mu      sync.RWMutex
	devices map[tailcfg.NodeID]device
	names   map[string]map[tailcfg.NodeID]bool
	holders map[netip.Prefix]map[tailcfg.NodeID]bool

	// lengths counts the prefixes of each family and length.
	lengths map[bool]map[int]int

	// records are the names of services (DNS extra records), and named the first name of each of
	// their addresses.
	records map[string][]netip.Addr
	named   map[netip.Addr]string

	// suffix is the domain that is appended to short names.
	suffix string

	// routes reports whether the node uses the routes of subnet routers.
	routes bool
}

// A device holds the relevant fields of a peer.
type device struct {
	Device

	// addrs are the device's addresses.
	addrs []netip.Prefix

	// allowed are all prefixes that the device takes traffic for.
	allowed []netip.Prefix
}

func (d device) equal(o device) bool {
	return d.Name == o.Name && d.Offline == o.Offline && slices.Equal(d.Tags, o.Tags) && slices.Equal(d.addrs, o.addrs) && slices.Equal(d.allowed, o.allowed)
}

// owns reports whether traffic to p goes to the device even if the node uses no routes
// (tailscale.com net/routemanager, peerViewOf).
func (d device) owns(p netip.Prefix) bool {
	return p.IsSingleIP() && tsaddr.IsTailscaleIP(p.Addr()) || slices.Contains(d.addrs, p)
}

// NewPeers returns Peers of an empty tailnet.
func NewPeers() *Peers {
	p := &Peers{}
	p.reset()
	return p
}

func (p *Peers) reset() {
	p.devices = make(map[tailcfg.NodeID]device)
	p.names = make(map[string]map[tailcfg.NodeID]bool)
	p.holders = make(map[netip.Prefix]map[tailcfg.NodeID]bool)
	p.lengths = map[bool]map[int]int{true: {}, false: {}}
}

// Find returns the device that has host, which is an address or a DNS name. If a name has
// several addresses, Find prefers IPv4.
func (p *Peers) Find(host string) Host {
	p.mu.RLock()
	defer p.mu.RUnlock()

	if addr, err := netip.ParseAddr(host); err == nil {
		return p.find(addr.Unmap())
	}
	var unused Host
	for _, addr := range p.resolve(host) {
		h := p.find(addr)
		if h.Addr.IsValid() {
			return h
		}
		if h.RouteUnused {
			unused = h
		}
	}
	return unused
}

// FindFamily returns the device that has host at an address of a family. An address of another
// family stands for the device or the service that has it.
func (p *Peers) FindFamily(host string, ipv6 bool) Host {
	p.mu.RLock()
	defer p.mu.RUnlock()

	addrs := p.resolve(host)
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = append([]netip.Addr{addr.Unmap()}, p.siblings(addr.Unmap())...)
	}
	var unused Host
	for _, addr := range addrs {
		if addr.Is6() != ipv6 {
			continue
		}
		h := p.find(addr)
		if h.Addr.IsValid() {
			return h
		}
		if h.RouteUnused {
			unused = h
		}
	}
	return unused
}

// siblings returns all addresses of the device or the service that has an address as its own.
func (p *Peers) siblings(addr netip.Addr) []netip.Addr {
	for id := range p.holders[netip.PrefixFrom(addr, addr.BitLen())] {
		if d := p.devices[id]; slices.ContainsFunc(d.addrs, func(own netip.Prefix) bool { return own.Addr() == addr }) {
			return addrsOf(d)
		}
	}
	// A service has an address of each family under one name.
	return p.records[p.named[addr]]
}

func addrsOf(d device) []netip.Addr {
	out := make([]netip.Addr, 0, len(d.addrs))
	for _, a := range d.addrs {
		out = append(out, a.Addr())
	}
	return out
}

// Has reports whether a DNS name has an address, as the name of a device or of a service.
func (p *Peers) Has(name string, addr netip.Addr) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Contains(p.resolve(name), addr.Unmap())
}

// Domain returns the domain of the tailnet, or nothing while it is unknown.
func (p *Peers) Domain() string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.suffix
}

// resolve returns the addresses of a name, IPv4 first.
func (p *Peers) resolve(name string) []netip.Addr {
	name = canonical(name)
	if a, ok := address.Via(name); ok {
		return []netip.Addr{a}
	}
	if !strings.Contains(name, ".") && p.suffix != "" {
		name += "." + p.suffix
	}
	var out []netip.Addr
	for id := range p.names[name] {
		out = append(out, addrsOf(p.devices[id])...)
	}
	if len(out) == 0 {
		out = slices.Clone(p.records[name])
	}
	slices.SortFunc(out, func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(a.BitLen(), b.BitLen()), a.Compare(b))
	})
	return out
}

// find returns the devices that have an address: those with the longest prefix that contains
// it.
func (p *Peers) find(addr netip.Addr) Host {
	ids, _, unused := p.nodes(addr)
	if len(ids) == 0 {
		return Host{RouteUnused: unused}
	}
	out := make([]Device, 0, len(ids))
	for _, id := range ids {
		out = append(out, p.devices[id].Device)
	}
	slices.SortFunc(out, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
	return Host{Addr: addr, Devices: out}
}

// nodes returns the nodes that get the traffic to an address, and whether it is their own or that
// of a service. unused reports that subnet routers have it whose routes this node does not use.
func (p *Peers) nodes(addr netip.Addr) (ids []tailcfg.NodeID, owned, unused bool) {
	for bits := addr.BitLen(); bits > 0; bits-- {
		if p.lengths[addr.Is4()][bits] == 0 {
			continue
		}
		prefix, err := addr.Prefix(bits)
		if err != nil {
			// This cannot happen for an address and a length of its family.
			return nil, false, false
		}
		owned = true
		for id := range p.holders[prefix] {
			own := p.devices[id].owns(prefix)
			if !p.routes && !own {
				unused = true
				continue
			}
			owned = owned && own
			ids = append(ids, id)
		}
		if len(ids) > 0 {
			return ids, owned, unused
		}
	}
	return nil, false, unused
}

// A Presence is where the other end of a connection is.
type Presence int

const (
	// Present is at a node that had the address when the connection was opened.
	Present Presence = iota

	// Absent is at no node of the netmap.
	Absent

	// Moved is at another node, which knows nothing of the connection. Packets of the connection go there, and
	// WireGuard drops those of the former node, because their address is not its own any more.
	Moved
)

// Follow returns a function that reports whether a connection to addr that was opened at the time
// of the call can still reach its other end. An address of a node or of a service must be that of
// a node that had it then. Behind subnet routers, connections can continue through another router.
func (p *Peers) Follow(addr netip.Addr) func() Presence {
	addr = addr.Unmap()
	p.mu.RLock()
	first, owned, _ := p.nodes(addr)
	p.mu.RUnlock()
	return func() Presence {
		p.mu.RLock()
		defer p.mu.RUnlock()
		ids, _, _ := p.nodes(addr)
		switch {
		case len(ids) == 0:
			return Absent
		case owned && !slices.ContainsFunc(ids, func(id tailcfg.NodeID) bool { return slices.Contains(first, id) }):
			return Moved
		}
		return Present
	}
}

// update applies a notification, and reports whether the result of a lookup may have changed.
func (p *Peers) update(n ipn.Notify) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	changed := false
	if s := n.InitialStatus; s != nil {
		p.replace(s)
		changed = true
	}
	if n.Prefs != nil && n.Prefs.Valid() && n.Prefs.RouteAll() != p.routes {
		p.routes = n.Prefs.RouteAll()
		changed = true
	}
	// A whole new netmap comes with the node itself and all its peers (tailscale.com ipn/ipnlocal,
	// SetControlClientStatus); it does not list the peers that are gone. A notification without the
	// node itself is a change of the netmap. Versions before 1.100 report it as NetMap.
	peers := n.PeersChanged
	name, whole := "", false
	switch nm := netMap(n); {
	case nm != nil && nm.SelfNode.Valid():
		name, whole, peers = nm.SelfNode.Name(), true, make([]*tailcfg.Node, 0, len(nm.Peers))
		for _, v := range nm.Peers {
			peers = append(peers, v.AsStruct())
		}
	case n.SelfChange != nil && n.InitialStatus == nil:
		name, whole = n.SelfChange.Name, true
	}
	if whole {
		changed = p.setSelf(name) || changed
		stay := make(map[tailcfg.NodeID]bool, len(peers))
		for _, node := range peers {
			stay[node.ID] = true
		}
		for id := range maps.Clone(p.devices) {
			if !stay[id] {
				changed = p.remove(id) || changed
			}
		}
	}
	for _, node := range peers {
		changed = p.upsert(node.ID, deviceOf(node)) || changed
	}
	for _, c := range n.PeerChangedPatch {
		if d, ok := p.devices[c.NodeID]; ok && c.Online != nil && d.Offline == *c.Online {
			d.Offline = !*c.Online
			p.devices[c.NodeID] = d
			changed = true
		}
	}
	for _, id := range n.PeersRemoved {
		changed = p.remove(id) || changed
	}
	return changed
}

// setRecords replaces the DNS records of services, and reports whether they changed.
func (p *Peers) setRecords(rs []tailcfg.DNSRecord) bool {
	records := make(map[string][]netip.Addr, len(rs))
	for _, r := range rs {
		addr, err := netip.ParseAddr(r.Value)
		if err != nil {
			// Records of other types hold no addresses.
			continue
		}
		name := canonical(r.Name)
		records[name] = append(records[name], addr)
	}
	named := make(map[netip.Addr]string, 2*len(records))
	for name, addrs := range records {
		for _, a := range addrs {
			if first, ok := named[a]; !ok || name < first {
				named[a] = name
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	same := maps.EqualFunc(p.records, records, slices.Equal[[]netip.Addr])
	p.records, p.named = records, named
	return !same
}

func (p *Peers) replace(s *ipnstate.Status) {
	p.reset()
	if s.Self != nil {
		p.setSelf(s.Self.DNSName)
	}
	for _, ps := range s.Peer {
		p.upsert(ps.NodeID, deviceOfStatus(ps))
	}
}

func (p *Peers) setSelf(name string) bool {
	_, suffix, _ := strings.Cut(canonical(name), ".")
	same := suffix == p.suffix
	p.suffix = suffix
	return !same
}

func (p *Peers) upsert(id tailcfg.NodeID, d device) bool {
	if existing, ok := p.devices[id]; ok && existing.equal(d) {
		return false
	}
	p.remove(id)
	p.devices[id] = d
	if p.names[d.Name] == nil {
		p.names[d.Name] = make(map[tailcfg.NodeID]bool)
	}
	p.names[d.Name][id] = true
	for _, prefix := range d.allowed {
		if p.holders[prefix] == nil {
			p.holders[prefix] = make(map[tailcfg.NodeID]bool)
			p.lengths[prefix.Addr().Is4()][prefix.Bits()]++
		}
		p.holders[prefix][id] = true
	}
	return true
}

func (p *Peers) remove(id tailcfg.NodeID) bool {
	d, ok := p.devices[id]
	if !ok {
		return false
	}
	delete(p.devices, id)
	delete(p.names[d.Name], id)
	if len(p.names[d.Name]) == 0 {
		delete(p.names, d.Name)
	}
	for _, prefix := range d.allowed {
		delete(p.holders[prefix], id)
		if p.holders[prefix] != nil && len(p.holders[prefix]) == 0 {
			delete(p.holders, prefix)
			p.lengths[prefix.Addr().Is4()][prefix.Bits()]--
		}
	}
	return true
}

// deviceOf returns the relevant fields of a node. A node whose key has expired takes no
// traffic.
func deviceOf(n *tailcfg.Node) device {
	d := device{Device: Device{Name: canonical(n.Name), Tags: n.Tags, Offline: n.Online != nil && !*n.Online}, addrs: n.Addresses}
	if !n.Expired {
		d.allowed = n.AllowedIPs
	}
	d.Addr = first(d.addrs)
	return d
}

func deviceOfStatus(ps *ipnstate.PeerStatus) device {
	// Only offline devices have a time when they were last seen.
	d := device{Device: Device{Name: canonical(ps.DNSName), Offline: !ps.Online && !ps.LastSeen.IsZero()}}
	if ps.Tags != nil {
		d.Tags = ps.Tags.AsSlice()
	}
	for _, a := range ps.TailscaleIPs {
		d.addrs = append(d.addrs, netip.PrefixFrom(a, a.BitLen()))
	}
	if ps.AllowedIPs != nil && !ps.Expired {
		d.allowed = ps.AllowedIPs.AsSlice()
	}
	d.Addr = first(d.addrs)
	return d
}

// first returns the first address, IPv4 before IPv6, or an invalid address if there is none.
func first(addrs []netip.Prefix) netip.Addr {
	if len(addrs) == 0 {
		return netip.Addr{}
	}
	return slices.MinFunc(addrs, func(a, b netip.Prefix) int { return cmp.Compare(a.Addr().BitLen(), b.Addr().BitLen()) }).Addr()
}

func canonical(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "."))
}
