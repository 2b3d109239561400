// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"tailscale.com/health"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// A State is the known state of tailscaled.
type State struct {
	// Session counts connections to tailscaled. It increases when tailscaled was restarted.
	Session int

	// Version is the version that tailscaled reports. Empty until it has reported one in this
	// session.
	Version string

	// Polled reports that the state comes from requests every few seconds, because the Watcher
	// cannot read the notifications of this version.
	Polled bool

	// Running reports whether tailscaled is logged in and connected.
	Running bool

	// LoginError is the last error of tailscaled's login. Empty if the last attempt succeeded.
	LoginError string

	// Accepted are the services that control accepted this node for. The map does not change once
	// published.
	Accepted map[string]bool

	// AcceptedKnown reports that control has not accepted the node for services that Accepted
	// lacks. Otherwise nothing is known about them.
	AcceptedKnown bool

	// CertDomains are the names that the node may have certificates for. The slice does not change
	// once published.
	CertDomains []string

	// HTTPS reports whether the tailnet provides certificates. Only valid if HTTPSKnown is true.
	HTTPS bool

	// HTTPSKnown reports whether tailscaled has reported HTTPS in this session.
	HTTPSKnown bool

	// Addresses are the machine's addresses in the tailnet. The slice does not change once
	// published.
	Addresses []netip.Addr

	// Routes are the addresses of services for which nodes are primary.
	Routes Routes

	// Tags are the machine's tags. The slice does not change once published.
	Tags []string

	// Visible are the addresses of the services that the policy lets this node see, by their name.
	// It is nil if control does not report them. The map does not change once published.
	Visible map[string][]netip.Addr

	// Peers counts the changes of peers. It is zero until peers are known, and stays zero in a
	// Watcher without Peers.
	Peers int

	// reported reports that tailscaled has reported accepted services in this session.
	reported bool
}

// equal reports whether two states are the same for a caller.
func (st State) equal(o State) bool {
	return st.Session == o.Session && st.Version == o.Version && st.Polled == o.Polled && st.Running == o.Running && st.Peers == o.Peers &&
		maps.Equal(st.Accepted, o.Accepted) && st.AcceptedKnown == o.AcceptedKnown && slices.Equal(st.CertDomains, o.CertDomains) &&
		slices.Equal(st.Addresses, o.Addresses) && st.HTTPS == o.HTTPS && st.HTTPSKnown == o.HTTPSKnown && st.Routes.equal(o.Routes) &&
		st.LoginError == o.LoginError && slices.Equal(st.Tags, o.Tags) && maps.EqualFunc(st.Visible, o.Visible, slices.Equal)
}

// update applies a notification, and reports whether it contained anything of interest. dns is the
// DNS config at the time of a notification that has a SelfChange. Nil if it is not known.
//
// Versions before 1.100 report a whole netmap instead of a status and of changes of the node
// (tailscale.com ipn/backend.go, NotifyInitialStatus). Version 1.98 reports both.
func (st *State) update(n ipn.Notify, dns *tailcfg.DNSConfig) bool {
	changed := false
	if n.Version != "" && n.Version != st.Version {
		changed = true
		st.Version = n.Version
	}
	if s := n.InitialStatus; s != nil {
		changed = true
		st.Running = s.BackendState == ipn.Running.String()
		st.Addresses = s.TailscaleIPs
		if st.Running {
			st.setCapabilities(capMap(s))
			st.setHTTPS(capMap(s), s.CertDomains)
		}
		st.Tags = nil
		if s.Self != nil && s.Self.Tags != nil {
			st.Tags = s.Self.Tags.AsSlice()
		}
	}
	if n.State != nil {
		changed = true
		st.Running = *n.State == ipn.Running
	}
	if n.Health != nil {
		changed = true
		st.LoginError = loginError(n.Health)
	}
	switch nm := netMap(n); {
	case nm != nil && nm.SelfNode.Valid():
		changed = true
		st.setSelf(nm.SelfNode.AsStruct())
		st.setHTTPS(nm.SelfNode.CapMap().AsMap(), nm.DNS.CertDomains)
	case n.SelfChange != nil:
		changed = true
		st.setSelf(n.SelfChange)
		switch {
		case dns != nil:
			st.setHTTPS(n.SelfChange.CapMap, dns.CertDomains)
		case n.SelfChange.CapMap.Contains(tailcfg.CapabilityHTTPS):
			st.HTTPS, st.HTTPSKnown = true, true
		}
	}
	return changed
}

// setSelf sets what the node itself has.
func (st *State) setSelf(self *tailcfg.Node) {
	st.Addresses = nil
	for _, p := range self.Addresses {
		st.Addresses = append(st.Addresses, p.Addr())
	}
	st.Tags = self.Tags
	st.setCapabilities(self.CapMap)
}

// setCapabilities sets the services that control accepted the node for, and those that it may see. That a service is missing
// has a meaning only in a version that is known to report services. A value that cannot be read
// leaves the services as they are.
func (st *State) setCapabilities(cm tailcfg.NodeCapMap) {
	st.Visible = visible(cm)
	services, err := accepted(cm)
	if err != nil {
		st.AcceptedKnown = false
		return
	}
	st.reported = st.reported || len(services) > 0
	st.Accepted, st.AcceptedKnown = services, st.reported || tailscaled.Tested(st.Version)
}

// setHTTPS sets whether the tailnet provides certificates. Control says so by a capability of the
// node and by the names in the DNS config. HTTPS is off only if both say so, in a version that
// tests run with.
func (st *State) setHTTPS(cm tailcfg.NodeCapMap, domains []string) {
	st.CertDomains = domains
	switch {
	case len(domains) > 0 || cm.Contains(tailcfg.CapabilityHTTPS):
		st.HTTPS, st.HTTPSKnown = true, true
	case tailscaled.Tested(st.Version):
		st.HTTPS, st.HTTPSKnown = false, true
	}
}

// loginError returns the last login error in tailscaled's health, or "". Not every such warning has an
// error: one without means that tailscaled has cancelled an attempt.
func loginError(s *health.State) string {
	return s.Warnings[health.LoginStateWarnable.Code].Args[health.ArgError]
}

func capMap(s *ipnstate.Status) tailcfg.NodeCapMap {
	if s.Self == nil {
		return nil
	}
	return s.Self.CapMap
}

// accepted returns the services in the node's own service-host capability.
func accepted(cm tailcfg.NodeCapMap) (map[string]bool, error) {
	mappings, err := tailcfg.UnmarshalNodeCapJSON[tailcfg.ServiceIPMappings](cm, tailcfg.NodeAttrServiceHost)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the services of the node")
	}
	out := make(map[string]bool)
	for _, m := range mappings {
		for name := range m {
			out[name.String()] = true
		}
	}
	return out, nil
}

// visible returns the addresses of the services in the node's own capabilities, one for each
// service that the policy lets the node reach (tailcfg.NodeAttrPrefixServices). Without any, it
// returns nil: control may not send them, so nothing follows for a service that is not among them.
func visible(cm tailcfg.NodeCapMap) map[string][]netip.Addr {
	var out map[string][]netip.Addr
	for c := range cm {
		if !strings.HasPrefix(string(c), string(tailcfg.NodeAttrPrefixServices)) {
			continue
		}
		details, err := tailcfg.UnmarshalNodeCapJSON[tailcfg.ServiceDetails](cm, c)
		if err != nil {
			// Which service this is cannot be known: it may be any.
			return nil
		}
		for _, d := range details {
			if out == nil {
				out = make(map[string][]netip.Addr)
			}
			out[d.Name.String()] = d.Addrs
		}
	}
	return out
}
