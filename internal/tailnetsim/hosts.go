// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailscale.com/tailcfg"
)

// The levels of approval of a host, as the API names them.
const (
	notApproved    = "not-approved"
	approvedAuto   = "approved:auto"
	approvedManual = "approved:manual"
)

// stateReady is the configured field of a host that serves every port, by default.
const stateReady = "ready"

// A host is a device that advertises a service, as the API shows it. configured is a string in the
// OpenAPI document. The name of the first field is that of the document, stableNodeID, or the one
// that an open pull request reads, nodeId (tailscale/tailscale-client-go-v2#103): no release of the
// client has the call. Switches.HostStates chooses.
type host struct {
	NodeID        string `json:"nodeId,omitempty"`
	StableNodeID  string `json:"stableNodeID,omitempty"`
	ApprovalLevel string `json:"approvalLevel"`
	Configured    string `json:"configured"`
}

// hostsLocked lists the devices that advertise a service, also those that serve it in part. With
// Switches.HostStates.Inactive it lists those, too, that have withdrawn it and still serve it, and
// those that were approved before they do either.
func (s *Server) hostsLocked(v *service) []host {
	var out []host
	for _, id := range slices.Sorted(maps.Keys(s.st.Devices)) {
		d := s.st.Devices[id]
		inactive := len(d.Tags) > 0 && (d.offers[v.Name] != nil || s.st.Approvals[v.Name][d.ID])
		if !offering(v, d) && (!inactive || !s.switches.HostStates.Inactive) {
			continue
		}
		level, _ := s.approvalLocked(v, d)
		h := host{NodeID: string(d.StableID), ApprovalLevel: level, Configured: s.configuredLocked(v, d)}
		if s.switches.HostStates.Documented {
			h.NodeID, h.StableNodeID = "", h.NodeID
		}
		out = append(out, h)
	}
	return out
}

// approvalLocked returns the level of a host, given by hand or by policy, and whether
// the policy alone would approve it. A host that was refused by hand stays refused, unless
// Switches.AutoApproverWins is set.
func (s *Server) approvalLocked(v *service, d *device) (level string, auto bool) {
	auto = s.policy.autoApproves(v, d.Tags)
	byHand, decided := s.st.Approvals[v.Name][d.ID]
	switch {
	case decided && byHand:
		return approvedManual, auto
	case auto && s.switches.AutoApproverWins:
		return approvedAuto, auto
	case decided:
		return notApproved, auto
	case auto:
		return approvedAuto, auto
	}
	return notApproved, auto
}

// approvedLocked reports whether control treats a host as approved, which with
// Switches.ApprovalNeedsAdvertise can be later than the API says so.
func (s *Server) approvedLocked(v *service, d *device) bool {
	level, _ := s.approvalLocked(v, d)
	return level != notApproved && !d.unheard[v.Name]
}

// configuredLocked returns the API's value for whether a host serves the service's ports.
func (s *Server) configuredLocked(v *service, d *device) string {
	switch {
	case servicesHash(d) != d.heard:
		return s.switches.HostStates.Unknown
	case d.offers[v.Name] == nil:
		return s.switches.HostStates.Approved
	case !serves(v, d):
		return s.switches.HostStates.Partial
	}
	return s.switches.HostStates.Ready
}

// serves reports whether the device serves all ports that v defines.
func serves(v *service, d *device) bool {
	o := d.offers[v.Name]
	if o == nil {
		return false
	}
	for _, p := range v.Ports {
		if p == doNotValidate {
			return true
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(p, "tcp:"), 10, 16)
		if err != nil {
			return false
		}
		if !slices.ContainsFunc(o.Ports, func(r tailcfg.ProtoPortRange) bool {
			// Protocol 0 is TCP, UDP and ICMP; 6 is TCP.
			return (r.Proto == 0 || r.Proto == 6) && r.Ports.First <= uint16(n) && uint16(n) <= r.Ports.Last
		}) {
			return false
		}
	}
	return true
}

// offering reports whether control knows that the device advertises the service.
func offering(v *service, d *device) bool {
	o := d.offers[v.Name]
	return o != nil && o.Active && len(d.Tags) > 0 && !d.unnoticed[v.Name]
}

// defineLocked is called when a service is created. With Switches.LateDefinitions control does not
// notice that a device advertises it already, until the device changes what it offers.
func (s *Server) defineLocked(name string) {
	if !s.switches.LateDefinitions {
		return
	}
	for _, d := range s.st.Devices {
		if d.offers[name] != nil {
			if d.unnoticed == nil {
				d.unnoticed = map[string]bool{}
			}
			d.unnoticed[name] = true
		}
	}
}

// takeOffersLocked stores the services that a device reports. A service that it no longer
// advertises can be advertised again, after which its approval takes effect.
func (s *Server) takeOffersLocked(d *device, offers map[string]*tailcfg.VIPService) {
	if !sameOffers(d.offers, offers) {
		d.unnoticed = nil
	}
	d.offers = offers
	maps.DeleteFunc(d.unheard, func(name string, _ bool) bool {
		o := offers[name]
		return o == nil || !o.Active
	})
}

// sameOffers reports whether a device offers the same as before.
func sameOffers(a, b map[string]*tailcfg.VIPService) bool {
	return maps.EqualFunc(a, b, func(x, y *tailcfg.VIPService) bool {
		return x.Active == y.Active && slices.Equal(x.Ports, y.Ports)
	})
}

// drainsLocked reports whether a device that is a host of a service goes on as one though
// it has withdrawn: it is connected and has what it served. Its connections live until it
// drops that, and clients reach it until control has moved them. The map of such a host
// "contains inactive service IPs when node hosts the service" (tailscale.com v1.102.5
// wgengine/netstack, handleLocalPackets), and only so does Tailscale's own shutdown work:
// it withdraws, and has tailscaled serve for another 20 s, because control takes 15 s of
// them to choose another host (kube/services, EnsureServicesNotAdvertised). A tailscaled
// that no longer has the addresses drops what is sent to them, open connections and new
// ones (wgengine/filter, runIn4: "destination not allowed"; its nets are those of
// ipn/ipnlocal, addServiceIPs).
func (s *Server) drainsLocked(v *service, d *device) bool {
	return s.accepted[v.Name][d.ID] && d.online && len(d.Tags) > 0 && serves(v, d) && s.approvedLocked(v, d)
}

// recomputeLocked decides which devices control accepts as hosts, and which of them
// have each service's addresses and each subnet's. A host keeps them while it can serve.
func (s *Server) recomputeLocked() {
	at := s.now()
	s.followStrandedLocked()
	accepted := make(map[string]map[int64]bool, len(s.st.Services))
	for name := range s.st.Services {
		accepted[name] = map[int64]bool{}
	}
	able := map[string][]candidate{}
	// A tailnet has many devices and few of them host anything.
	for id, d := range s.st.Devices {
		if (len(d.offers) == 0 && len(d.EnabledRoutes) == 0) || !d.Authorized || d.expired(at) {
			continue
		}
		c := candidate{id: id, region: s.regionLocked(d)}
		for name := range d.offers {
			v := s.st.Services[name]
			switch {
			case v == nil:
			case offering(v, d) && serves(v, d) && s.approvedLocked(v, d):
				accepted[name][id] = true
				if !s.strandedLocked(name, d) && d.online {
					able[name] = append(able[name], c)
				}
			case s.drainsLocked(v, d):
				accepted[name][id] = true
			}
		}
		for _, p := range d.subnets() {
			if d.online {
				able[p.String()] = append(able[p.String()], c)
			}
		}
	}
	mode := s.st.routeSelection()
	elections := make(map[string]*election, len(able))
	for _, name := range slices.Sorted(maps.Keys(able)) {
		elections[name] = s.electLocked(name, mode, able[name], at)
	}
	for name := range s.elections {
		// The former host of a service that no host can serve may keep the addresses for a while.
		if able[name] == nil && (s.st.Services[name] != nil || !strings.HasPrefix(name, "svc:")) {
			elections[name] = s.electLocked(name, mode, nil, at)
		}
	}
	maps.DeleteFunc(s.lost, func(name string, _ map[int64]time.Time) bool { return elections[name] == nil })
	maps.DeleteFunc(elections, func(_ string, e *election) bool { return len(e.hosts) == 0 })
	s.noteElectionsLocked(accepted, elections)
}

// noteElectionsLocked publishes the result, and marks the devices whose routes changed.
func (s *Server) noteElectionsLocked(accepted map[string]map[int64]bool, elections map[string]*election) {
	for name, e := range elections {
		if d := s.st.Devices[e.first()]; d != nil && s.elections[name].first() != e.first() {
			s.log.Info("Service has a new primary host", "service", name, "node", d.StableID)
		}
		if old := s.elections[name]; !old.equal(e) {
			s.stale.hosts(old)
			s.stale.hosts(e)
		}
	}
	for name, old := range s.elections {
		if elections[name] == nil {
			s.stale.hosts(old)
		}
	}
	for name, ids := range accepted {
		for id := range ids {
			if !s.accepted[name][id] {
				s.stale.device(id)
			}
		}
	}
	for name, ids := range s.accepted {
		for id := range ids {
			if !accepted[name][id] {
				s.stale.device(id)
			}
		}
	}
	s.accepted, s.elections = accepted, elections
}

// electLocked elects among the candidates that can serve. A former host that was lost stays a
// host for Switches.FailoverDelay, before control moves the addresses to another: one that has
// withdrawn answers there, one that went away does not.
func (s *Server) electLocked(name string, mode RouteSelection, able []candidate, at time.Time) *election {
	former := s.elections[name]
	slices.SortFunc(able, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	e := &election{mode: mode, hosts: able}
	if mode == ActivePassiveFailover && len(able) > 0 {
		best := able[0]
		if i := slices.IndexFunc(able, func(c candidate) bool { return c.id == former.first() }); i >= 0 {
			best = able[i]
		}
		e.hosts = []candidate{best}
	}
	var retained []candidate
	if former != nil {
		for _, c := range former.hosts {
			if s.heldLocked(name, c.id, slices.ContainsFunc(able, func(a candidate) bool { return a.id == c.id }), at) {
				retained = append(retained, c)
			}
		}
	}
	switch {
	case len(retained) == 0:
	case mode == ActivePassiveFailover:
		e.hosts = retained[:1]
	default:
		e.hosts = append(slices.Clone(e.hosts), retained...)
		slices.SortFunc(e.hosts, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	}
	return e
}

// heldLocked reports whether a former host that was lost still holds the addresses. One that was refused by hand
// does not: how long control takes after a refusal no source says, and the row traffic/approval-withdrawn of the
// acceptance run measures it.
func (s *Server) heldLocked(name string, id int64, able bool, instant time.Time) bool {
	delay := s.switches.FailoverDelay.Duration
	if approved, decided := s.st.Approvals[name][id]; able || delay <= 0 || decided && !approved {
		delete(s.lost[name], id)
		return false
	}
	at, ok := s.lost[name][id]
	if !ok {
		at = instant
		if s.lost[name] == nil {
			s.lost[name] = map[int64]time.Time{}
		}
		s.lost[name][id] = at
		time.AfterFunc(delay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ctx.Err() == nil {
				s.hostsChangedLocked()
			}
		})
	}
	return instant.Sub(at) < delay
}

// regionLocked returns the region of a device, the DERP region that is its home.
func (s *Server) regionLocked(d *device) int {
	if r, ok := s.switches.Regions[d.Label]; ok {
		return r
	}
	return d.HomeDERP
}

// subnets returns the routes that a device advertises, that are enabled, and that one device of
// several has. Each exit node is one.
func (d *device) subnets() []netip.Prefix {
	if d.Hostinfo == nil {
		return nil
	}
	var out []netip.Prefix
	for _, p := range d.Hostinfo.RoutableIPs {
		if slices.Contains(d.EnabledRoutes, p.String()) && p.Bits() > 0 {
			out = append(out, p)
		}
	}
	return out
}

// exits returns the routes of a device that make it an exit node.
func (d *device) exits() []netip.Prefix {
	if d.Hostinfo == nil {
		return nil
	}
	var out []netip.Prefix
	for _, p := range d.Hostinfo.RoutableIPs {
		if slices.Contains(d.EnabledRoutes, p.String()) && p.Bits() == 0 {
			out = append(out, p)
		}
	}
	return out
}

// Approved reports whether a device may host a service, once it advertises it.
func (s *Server) Approved(service, nodeID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, d := s.st.Services[service], s.st.device(nodeID)
	if v == nil || d == nil {
		return false
	}
	level, _ := s.approvalLocked(v, d)
	return level != notApproved
}

// Primary returns the node id of the host that now has the service's addresses, or
// nothing when no host has them. If several have them, each for some clients, it is the oldest.
func (s *Server) Primary(service string) tailcfg.StableNodeID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.st.Devices[s.elections[service].first()]; d != nil {
		return d.StableID
	}
	return ""
}
