// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapitest

import (
	"encoding/json"
	"net/netip"
	"strconv"
	"testing"

	"tailscale.com/health"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/netmap"
	"tailscale.com/types/views"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A node is what tailscaled knows of its node and of the tailnet.
type node struct {
	t *testing.T

	state    ipn.State
	accepted []string
	peers    []*tailcfg.Node
	records  []tailcfg.DNSRecord
	routes   bool
	domains  []string
	addrs    []netip.Addr
	primary  []netip.Prefix
	login    string
	version  string
	bus      Bus
}

func (o *node) health() *health.State {
	out := &health.State{Warnings: map[health.WarnableCode]health.UnhealthyState{}}
	if o.login != "" {
		code := health.LoginStateWarnable.Code
		out.Warnings[code] = health.UnhealthyState{WarnableCode: code, Text: "You are logged out.", Args: health.Args{health.ArgError: o.login}}
	}
	return out
}

// netmap returns the notification that tailscaled sends for a whole new netmap.
func (o *node) netmap(state *ipn.State) ipn.Notify {
	self := &tailcfg.Node{Name: SelfName, CapMap: o.capMap(), PrimaryRoutes: o.primary}
	for _, a := range o.addrs {
		self.Addresses = append(self.Addresses, netip.PrefixFrom(a, a.BitLen()))
	}
	if o.bus == BusNetmaps {
		return ipn.Notify{Version: o.version, State: state, NetMap: o.wholeNetmap(self)} //nolint:staticcheck // As versions before 1.100 do.
	}
	return ipn.Notify{Version: o.version, State: state, SelfChange: self, PeersChanged: o.peers}
}

func (o *node) capMap() tailcfg.NodeCapMap {
	m := make(tailcfg.ServiceIPMappings)
	for _, name := range o.accepted {
		m[tailcfg.ServiceName(name)] = nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		o.t.Errorf("cannot encode services: %v", err)
	}
	out := tailcfg.NodeCapMap{}
	if len(o.accepted) > 0 {
		out[tailcfg.NodeAttrServiceHost] = []tailcfg.RawMessage{tailcfg.RawMessage(b)}
	}
	if len(o.domains) > 0 {
		out[tailcfg.CapabilityHTTPS] = nil
	}
	return out
}

// first returns the first notification of a watch.
func (o *node) first(mask string) (ipn.Notify, error) {
	bits, err := strconv.ParseUint(mask, 10, 64)
	if err != nil {
		return ipn.Notify{}, errors.Wrap(err, "bad mask")
	}
	requested := func(opt ipn.NotifyWatchOpt) bool { return ipn.NotifyWatchOpt(bits)&opt != 0 }
	n := ipn.Notify{Version: o.version}
	if requested(ipn.NotifyInitialState) {
		state := o.state
		n.State = &state
	}
	if requested(ipn.NotifyInitialPrefs) {
		prefs := o.prefs().View()
		n.Prefs = &prefs
	}
	if requested(ipn.NotifyInitialHealthState) {
		n.Health = o.health()
	}
	switch {
	case o.bus == BusRefused || o.bus == BusStatus && requested(ipn.NotifyInitialNetMap|ipn.NotifyRateLimit):
		return ipn.Notify{}, errors.New("the mask is no longer supported")
	case o.bus == BusStatus && requested(ipn.NotifyInitialStatus):
		n.InitialStatus = o.status()
	case o.bus == BusNetmaps && requested(ipn.NotifyInitialNetMap) && o.state == ipn.Running:
		n.NetMap = o.netmap(nil).NetMap //nolint:staticcheck // As versions before 1.100 do.
	}
	return n, nil
}

func (o *node) status() *ipnstate.Status {
	out := &ipnstate.Status{
		Version:      o.version,
		BackendState: o.state.String(),
		TailscaleIPs: o.addrs,
		Self:         &ipnstate.PeerStatus{DNSName: SelfName, CapMap: o.capMap()},
		Peer:         make(map[key.NodePublic]*ipnstate.PeerStatus, len(o.peers)),
		ExtraRecords: o.records,
		CertDomains:  o.domains,
	}
	if len(o.primary) > 0 {
		routes := views.SliceOf(o.primary)
		out.Self.PrimaryRoutes = &routes
	}
	for _, n := range o.peers {
		out.Peer[key.NewNode().Public()] = peerStatus(n)
	}
	return out
}

func (o *node) prefs() *ipn.Prefs { return &ipn.Prefs{RouteAll: o.routes} }

func (o *node) dns() tailcfg.DNSConfig {
	return tailcfg.DNSConfig{ExtraRecords: o.records, CertDomains: o.domains}
}

// wholeNetmap returns a netmap with the node itself.
func (o *node) wholeNetmap(self *tailcfg.Node) *netmap.NetworkMap {
	nm := &netmap.NetworkMap{SelfNode: self.View(), DNS: o.dns()}
	for _, p := range o.peers {
		nm.Peers = append(nm.Peers, p.View())
	}
	return nm
}

func peerStatus(n *tailcfg.Node) *ipnstate.PeerStatus {
	tags, allowed := views.SliceOf(n.Tags), views.SliceOf(n.AllowedIPs)
	ps := &ipnstate.PeerStatus{NodeID: n.ID, DNSName: n.Name, Tags: &tags, AllowedIPs: &allowed, Expired: n.Expired}
	for _, a := range n.Addresses {
		ps.TailscaleIPs = append(ps.TailscaleIPs, a.Addr())
	}
	if n.Online != nil {
		ps.Online = *n.Online
	}
	if n.LastSeen != nil {
		ps.LastSeen = *n.LastSeen
	}
	return ps
}
