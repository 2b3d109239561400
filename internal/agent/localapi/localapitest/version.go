// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapitest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/netmap"
	"tailscale.com/types/views"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Bus is what a version of tailscaled reports to watchers.
type Bus int

const (
	// BusStatus reports a status at first and then changes, as versions from 1.100 on do. It refuses
	// NotifyInitialNetMap and NotifyRateLimit, as 1.104 does (tailscale.com ipn/backend.go,
	// ValidateNotifyWatchOpt).
	BusStatus Bus = iota

	// BusNetmaps reports whole netmaps and ignores the parts of a mask that 1.100 added, as
	// versions before 1.98 do. Such a version does not have the path /localapi/v0/dns-config.
	BusNetmaps

	// BusRefused refuses every mask.
	BusRefused
)

// SetVersion sets the version that the server reports, and its bus. It ends all watches.
func (s *Server) SetVersion(version string, bus Bus) {
	s.mu.Lock()
	s.version, s.bus = version, bus
	s.mu.Unlock()
	s.Disconnect()
}

// SetCapabilitySilent sets whether control names certificates only in the DNS config, and not by the
// node's capability.
func (s *Server) SetCapabilitySilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// first returns the first notification of a watch.
func (s *Server) first(mask string) (ipn.Notify, error) {
	bits, err := strconv.ParseUint(mask, 10, 64)
	if err != nil {
		return ipn.Notify{}, errors.Wrap(err, "bad mask")
	}
	requested := func(o ipn.NotifyWatchOpt) bool { return ipn.NotifyWatchOpt(bits)&o != 0 }
	n := ipn.Notify{Version: s.version}
	if requested(ipn.NotifyInitialState) {
		state := s.state
		n.State = &state
	}
	if requested(ipn.NotifyInitialPrefs) {
		prefs := s.prefs().View()
		n.Prefs = &prefs
	}
	if requested(ipn.NotifyInitialHealthState) {
		n.Health = s.health()
	}
	switch {
	case s.bus == BusRefused || s.bus == BusStatus && requested(ipn.NotifyInitialNetMap|ipn.NotifyRateLimit):
		return ipn.Notify{}, errors.New("the mask is no longer supported")
	case s.bus == BusStatus && requested(ipn.NotifyInitialStatus):
		n.InitialStatus = s.status()
	case s.bus == BusNetmaps && requested(ipn.NotifyInitialNetMap) && s.state == ipn.Running:
		n.NetMap = s.netmap(nil).NetMap //nolint:staticcheck // As versions before 1.100 do.
	}
	return n, nil
}

func (s *Server) status() *ipnstate.Status {
	out := &ipnstate.Status{
		Version:      s.version,
		BackendState: s.state.String(),
		TailscaleIPs: s.addrs,
		Self:         &ipnstate.PeerStatus{DNSName: SelfName, CapMap: s.capMap()},
		Peer:         make(map[key.NodePublic]*ipnstate.PeerStatus, len(s.peers)),
		ExtraRecords: s.records,
		CertDomains:  s.domains,
	}
	if len(s.primary) > 0 {
		routes := views.SliceOf(s.primary)
		out.Self.PrimaryRoutes = &routes
	}
	for _, n := range s.peers {
		out.Peer[key.NewNode().Public()] = peerStatus(n)
	}
	return out
}

func (s *Server) prefs() *ipn.Prefs { return &ipn.Prefs{RouteAll: s.routes} }

func (s *Server) dns() tailcfg.DNSConfig {
	return tailcfg.DNSConfig{ExtraRecords: s.records, CertDomains: s.domains}
}

// wholeNetmap returns a netmap with the node itself.
func (s *Server) wholeNetmap(self *tailcfg.Node) *netmap.NetworkMap {
	nm := &netmap.NetworkMap{SelfNode: self.View(), DNS: s.dns()}
	for _, p := range s.peers {
		nm.Peers = append(nm.Peers, p.View())
	}
	return nm
}

func (s *Server) serveStatus(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.NewEncoder(w).Encode(s.status()); err != nil {
		s.t.Logf("cannot answer: %v", err)
	}
}

func (s *Server) servePrefs(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.NewEncoder(w).Encode(s.prefs()); err != nil {
		s.t.Logf("cannot answer: %v", err)
	}
}
