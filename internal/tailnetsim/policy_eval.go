// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A policyTest is an entry of a policy file's tests, with the names of older
// files beside the present ones
// (https://tailscale.com/kb/1337/policy-syntax#tests).
type policyTest struct {
	Src    string   `json:"src"`
	User   string   `json:"user"`
	Proto  string   `json:"proto"`
	Accept []string `json:"accept"`
	Allow  []string `json:"allow"`
	Deny   []string `json:"deny"`
}

// A testFailure is how the API reports a test that failed.
type testFailure struct {
	User   string   `json:"user"`
	Errors []string `json:"errors"`
}

// failuresLocked runs tests against the grants and ACLs of a policy. Sources
// and destinations match by name, as in the policy, and by address, as devices
// and services have them now.
func (s *Server) failuresLocked(p *policy, tests []policyTest) []testFailure {
	var out []testFailure
	for _, t := range tests {
		src := t.Src + t.User
		var errs []string
		for _, want := range []struct {
			accept bool
			dsts   []string
		}{{true, slices.Concat(t.Accept, t.Allow)}, {false, t.Deny}} {
			for _, dst := range want.dsts {
				if allowed := s.allowsLocked(p, src, dst, t.Proto); allowed != want.accept {
					errs = append(errs, fmt.Sprintf("address %q: want: %s, got: %s", dst, verdict(want.accept), verdict(allowed)))
				}
			}
		}
		if len(errs) > 0 {
			out = append(out, testFailure{User: src, Errors: errs})
		}
	}
	return out
}

func verdict(accept bool) string {
	if accept {
		return "Accept"
	}
	return "Drop"
}

// allowsLocked reports whether src reaches dst, HOST:PORT, by a protocol; the
// default is TCP.
func (s *Server) allowsLocked(p *policy, src, dst, proto string) bool {
	for _, r := range slices.Concat(p.Grants, p.ACLs) {
		if r.Action != "" && r.Action != "accept" {
			continue
		}
		if slices.ContainsFunc(r.Src, func(sel string) bool { return s.meansLocked(p, sel, src) }) && s.reachesLocked(p, r, dst, proto) {
			return true
		}
	}
	return false
}

// reachesLocked reports whether a rule is about dst, HOST:PORT, by a protocol; the default
// is TCP.
func (s *Server) reachesLocked(p *policy, r rule, dst, proto string) bool {
	i := strings.LastIndexByte(dst, ':')
	if i < 0 {
		return false
	}
	host, port := strings.Trim(dst[:i], "[]"), dst[i+1:]
	if proto == "" {
		proto = "tcp"
	}
	for _, d := range r.Dst {
		sel, ports := d, r.IP
		if r.Action != "" {
			j := strings.LastIndexByte(d, ':')
			if j < 0 || (r.Proto != "" && r.Proto != proto) {
				continue
			}
			sel, ports = d[:j], strings.Split(d[j+1:], ",")
		}
		if s.meansLocked(p, sel, host) && slices.ContainsFunc(ports, func(x string) bool { return opens(x, proto, port) }) {
			return true
		}
	}
	return false
}

// opens reports whether a rule's ports, with or without a protocol, have a port.
func opens(ports, proto, port string) bool {
	if i := strings.IndexByte(ports, ':'); i >= 0 && ports[:i] != proto {
		return false
	}
	pr, ok := parsePorts(ports)
	if !ok {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && pr.Contains(uint16(n))
}

// meansLocked reports whether a rule's selector includes the subject of a test.
func (s *Server) meansLocked(p *policy, sel, name string) bool {
	tagged := strings.HasPrefix(name, "tag:")
	user := strings.Contains(name, "@")
	switch {
	case sel == "*", sel == name:
		return true
	case strings.HasPrefix(sel, "group:") && slices.Contains(p.Groups[sel], name),
		sel == "autogroup:tagged" && tagged,
		sel == "autogroup:member" && user,
		(sel == "autogroup:owner" || sel == "autogroup:admin") && name == s.profile(userOwner).LoginName:
		return true
	}
	if h, ok := p.Hosts[name]; ok {
		name = h
	}
	want, err := netip.ParsePrefix(name)
	if err != nil {
		a, err := netip.ParseAddr(name)
		if err != nil {
			return false
		}
		want = netip.PrefixFrom(a, a.BitLen())
	}
	for _, at := range s.selectIn(p, sel) {
		if prefix, err := netip.ParsePrefix(at); err == nil && prefix.Bits() <= want.Bits() && prefix.Contains(want.Addr()) {
			return true
		}
		if a, err := netip.ParseAddr(at); err == nil && want.IsSingleIP() && want.Addr() == a {
			return true
		}
	}
	return false
}
