// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
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
// the policy alone would approve it. A host that was refused by hand stays refused.
func (s *Server) approvalLocked(v *service, d *device) (level string, auto bool) {
	auto = s.policy.autoApproves(v, d.Tags)
	byHand, asked := s.st.Approvals[v.Name][d.ID]
	switch {
	case asked && byHand:
		return approvedManual, auto
	case asked:
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
// has each service's addresses. A host keeps them while it can serve.
func (s *Server) recomputeLocked() {
	now := s.now()
	// A tailnet has many devices and few of them host anything.
	hosts := map[int64]*device{}
	for id, d := range s.st.Devices {
		if len(d.offers) > 0 && d.Authorized && !d.expired(now) {
			hosts[id] = d
		}
	}
	accepted := make(map[string]map[int64]bool, len(s.st.Services))
	primary := make(map[string]int64, len(s.st.Services))
	for name, v := range s.st.Services {
		accepted[name] = map[int64]bool{}
		var best int64
		for id, d := range hosts {
			if !offering(v, d) || !serves(v, d) || !s.approvedLocked(v, d) {
				if s.drainsLocked(v, d) {
					accepted[name][id] = true
				}
				continue
			}
			accepted[name][id] = true
			if !d.online {
				continue
			}
			if best == 0 || id == s.primary[name] || (best != s.primary[name] && id < best) {
				best = id
			}
		}
		if best = s.heldLocked(name, best, now); best != 0 {
			primary[name] = best
		}
	}
	for name, id := range primary {
		if d := s.st.Devices[id]; s.primary[name] != id && d != nil {
			s.log.Info("Service has a new primary host", "service", name, "node", d.StableID)
		}
	}
	maps.DeleteFunc(s.lost, func(name string, _ time.Time) bool { return s.st.Services[name] == nil })
	s.accepted, s.primary = accepted, primary
}

// heldLocked returns the host that has a service's addresses when best is the one
// that should: the former host keeps them for Switches.FailoverDelay after it was
// lost. One that has withdrawn answers there, one that went away does not.
func (s *Server) heldLocked(name string, best int64, now time.Time) int64 {
	former := s.primary[name]
	delay := s.switches.FailoverDelay.Duration
	if former == 0 || former == best || delay <= 0 {
		delete(s.lost, name)
		return best
	}
	at, ok := s.lost[name]
	if !ok {
		at = now
		s.lost[name] = at
		time.AfterFunc(delay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ctx.Err() == nil {
				s.changedLocked()
			}
		})
	}
	if now.Sub(at) >= delay {
		delete(s.lost, name)
		return best
	}
	return former
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
// nothing when no host has them.
func (s *Server) Primary(service string) tailcfg.StableNodeID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.st.Devices[s.primary[service]]; d != nil {
		return d.StableID
	}
	return ""
}
