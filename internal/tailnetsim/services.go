// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"tailscale.com/net/tsaddr"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// doNotValidate is the port that accepts whatever a host serves.
const doNotValidate = "do-not-validate"

// The levels of approval of a host, as the API names them.
const (
	notApproved    = "not-approved"
	approvedAuto   = "approved:auto"
	approvedManual = "approved:manual"
)

// A service has stable virtual addresses. Its JSON is the API's.
type service struct {
	Name        string            `json:"name"`
	Addrs       []string          `json:"addrs,omitempty"`
	Comment     string            `json:"comment,omitempty"`
	DisplayName string            `json:"displayName,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Ports       []string          `json:"ports,omitempty"`
	Tags        []string          `json:"tags,omitempty"`
}

func (v *service) clone() *service {
	c := *v
	c.Addrs, c.Ports, c.Tags = slices.Clone(v.Addrs), slices.Clone(v.Ports), slices.Clone(v.Tags)
	c.Annotations = maps.Clone(v.Annotations)
	return &c
}

func (v *service) prefixes() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(v.Addrs))
	for _, a := range v.addrs() {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}

func (v *service) addrs() []netip.Addr {
	out := make([]netip.Addr, 0, len(v.Addrs))
	for _, a := range v.Addrs {
		// Only allocate and checkAddrs write addresses.
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// validate checks what needs no store.
func (v *service) validate() error {
	if err := tailcfg.ServiceName(v.Name).Validate(); err != nil {
		return errors.Wrap(err, "invalid service name")
	}
	if len(v.DisplayName) > 64 {
		return errors.New("displayName must not be longer than 64 characters")
	}
	for _, p := range v.Ports {
		if p == doNotValidate {
			if len(v.Ports) > 1 {
				return errors.Errorf("port %q cannot be combined with others", p)
			}
			continue
		}
		n, ok := strings.CutPrefix(p, "tcp:")
		if i, err := strconv.ParseUint(n, 10, 16); !ok || err != nil || i == 0 {
			return errors.Errorf("invalid port %q: must be tcp:<port> or %s", p, doNotValidate)
		}
	}
	for _, t := range v.Tags {
		if !strings.HasPrefix(t, "tag:") {
			return errors.Errorf("invalid tag %q: tags must begin with tag:", t)
		}
	}
	return nil
}

// allocate fills in the addresses of a new service: the IPv4 that was asked
// for, or a free one, and the IPv6 that belongs to it.
func (st *state) allocate(v *service) error {
	if len(v.Addrs) > 1 {
		return errors.New("invalid addrs: only an IPv4 address may be requested")
	}
	if len(v.Addrs) == 1 {
		a, err := netip.ParseAddr(v.Addrs[0])
		if err != nil || !a.Is4() || !tsaddr.CGNATRange().Contains(a) {
			return errors.Errorf("invalid addrs: %q is not an IPv4 address of %s", v.Addrs[0], tsaddr.CGNATRange())
		}
		if st.addrTaken(a) {
			return errors.Errorf("invalid addrs: %s is already in use", a)
		}
		v.Addrs = []string{a.String(), tsaddr.Tailscale4To6(a).String()}
		return nil
	}
	for range 1 << 16 {
		st.LastSvcIP++
		n := st.LastSvcIP % (254 * 254)
		a := netip.AddrFrom4([4]byte{100, 96, byte(n / 254), byte(n%254) + 1})
		if !st.addrTaken(a) {
			v.Addrs = []string{a.String(), tsaddr.Tailscale4To6(a).String()}
			return nil
		}
	}
	return errors.New("no address is free")
}

func (st *state) addrTaken(a netip.Addr) bool {
	if a == tsaddr.TailscaleServiceIP() {
		return true
	}
	for _, d := range st.Devices {
		if d.IPv4 == a {
			return true
		}
	}
	for _, v := range st.Services {
		if slices.Contains(v.Addrs, a.String()) {
			return true
		}
	}
	return false
}

// approval gives the level for a host, by hand or by policy. A host that was
// refused by hand stays refused.
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

// configured says whether the device serves all ports that v defines.
func configured(v *service, d *device) bool {
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

// offering says whether the device advertises the service.
func offering(v *service, d *device) bool {
	o := d.offers[v.Name]
	return o != nil && o.Active && len(d.Tags) > 0
}

// recomputeLocked decides anew which devices control accepts as hosts, and which of
// them has each service's addresses. A host keeps them while it can serve.
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
			if !offering(v, d) || !configured(v, d) {
				continue
			}
			if level, _ := s.approvalLocked(v, d); level == notApproved {
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
		if best != 0 {
			primary[name] = best
		}
	}
	for name, id := range primary {
		if s.primary[name] != id {
			s.log.Info("Service has a new primary host", "service", name, "node", s.st.Devices[id].StableID)
		}
	}
	s.accepted, s.primary = accepted, primary
}

// Primary gives the node id of the host that now has the service's addresses,
// or nothing when no host can serve it.
func (s *Server) Primary(service string) tailcfg.StableNodeID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.st.Devices[s.primary[service]]; d != nil {
		return d.StableID
	}
	return ""
}
