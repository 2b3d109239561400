// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"tailscale.com/tailcfg"
)

// filterLocked compiles grants and ACLs to the packet filter that all nodes share. A node
// ignores rules for other nodes, so one filter is enough. Unknown sources and destinations
// match no node.
func (s *Server) filterLocked() []tailcfg.FilterRule {
	out := []tailcfg.FilterRule{}
	for _, r := range slices.Concat(s.policy.Grants, s.policy.ACLs) {
		if r.Action != "" && r.Action != "accept" {
			continue
		}
		f := tailcfg.FilterRule{}
		for _, src := range r.Src {
			f.SrcIPs = append(f.SrcIPs, s.selectLocked(src)...)
		}
		for _, dst := range r.Dst {
			sel, ports := dst, r.IP
			if r.Action != "" {
				// An ACL has its ports behind the destination's last colon.
				i := strings.LastIndexByte(dst, ':')
				if i < 0 {
					continue
				}
				sel, ports = dst[:i], strings.Split(dst[i+1:], ",")
			}
			for _, ip := range s.selectLocked(sel) {
				for _, p := range ports {
					if pr, ok := parsePorts(p); ok {
						f.DstPorts = append(f.DstPorts, tailcfg.NetPortRange{IP: ip, Ports: pr})
					}
				}
			}
		}
		if len(f.SrcIPs) > 0 && len(f.DstPorts) > 0 {
			slices.Sort(f.SrcIPs)
			out = append(out, f)
		}
	}
	return out
}

// parsePorts reads "*", "443", "80-90" with or without a protocol before it.
// The protocol is not enforced.
func parsePorts(p string) (tailcfg.PortRange, bool) {
	if i := strings.LastIndexByte(p, ':'); i >= 0 {
		p = p[i+1:]
	}
	if p == "*" || p == "" {
		return tailcfg.PortRangeAny, true
	}
	lo, hi, ok := strings.Cut(p, "-")
	if !ok {
		hi = lo
	}
	a, err := strconv.ParseUint(lo, 10, 16)
	if err != nil {
		return tailcfg.PortRange{}, false
	}
	b, err := strconv.ParseUint(hi, 10, 16)
	if err != nil || b < a {
		return tailcfg.PortRange{}, false
	}
	return tailcfg.PortRange{First: uint16(a), Last: uint16(b)}, true
}

// selectLocked returns the addresses that a selector of a rule stands for.
func (s *Server) selectLocked(sel string) []string { return s.selectIn(s.policy, sel) }

// selectIn is selectLocked with the hosts and groups of a policy.
func (s *Server) selectIn(p *policy, sel string) []string {
	if sel == "*" {
		return []string{"*"}
	}
	if h, ok := p.Hosts[sel]; ok {
		sel = h
	}
	if r, err := netip.ParsePrefix(sel); err == nil {
		return []string{r.String()}
	}
	if a, err := netip.ParseAddr(sel); err == nil {
		return []string{a.String()}
	}
	var out []string
	for _, d := range s.st.Devices {
		tagged := len(d.Tags) > 0
		switch {
		case slices.Contains(d.Tags, sel),
			sel == "autogroup:tagged" && tagged,
			(sel == "autogroup:member" || sel == "autogroup:owner" || sel == "autogroup:admin") && !tagged,
			sel == s.profile(userOwner).LoginName && !tagged,
			slices.Contains(p.Groups[sel], s.profile(userOwner).LoginName) && !tagged:
			out = append(out, d.IPv4.String(), d.IPv6.String())
		}
	}
	for _, v := range s.st.Services {
		if v.Name == sel || slices.Contains(v.Tags, sel) {
			out = append(out, v.Addrs...)
		}
	}
	slices.Sort(out)
	return out
}
