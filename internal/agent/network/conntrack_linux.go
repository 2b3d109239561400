// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ForgetUDP deletes each UDP flow in the kernel whose destination differs from the
// translations, and returns the number of deleted flows. The kernel applies its rules only to
// the first packet of a flow, and a flow lasts as long as packets arrive: a client that keeps
// sending would never reach a new target. ForgetUDP needs the capability NET_ADMIN. It leaves
// TCP connections alone, because they end by themselves.
func ForgetUDP(t Translations) (uint, error) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return 0, errors.Wrap(err, "cannot list the pod's addresses")
	}
	f := flows{Translations: t, own: map[netip.Addr]bool{}}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			f.own[p.Addr().Unmap()] = true
		}
	}
	var n uint
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		deleted, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, f)
		if err != nil {
			return n, errors.Wrap(err, "cannot have the kernel forget flows of UDP to earlier targets; the container needs the capability NET_ADMIN")
		}
		n += deleted
	}
	return n, nil
}

// flows matches flows whose destination differs from the translations.
type flows struct {
	Translations

	own map[netip.Addr]bool
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f flows) MatchConntrackFlow(c *netlink.ConntrackFlow) bool {
	if c.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	to, ok := netip.AddrFromSlice(c.Forward.DstIP)
	from, ok2 := netip.AddrFromSlice(c.Reverse.SrcIP)
	if !ok || !ok2 {
		return false
	}
	to, from = to.Unmap(), from.Unmap()
	if want, ok := f.Addresses[to]; ok {
		return from != want
	}
	if !f.own[to] {
		return false // The pod's queries to other hosts.
	}
	// A flow may have begun before its port had a target.
	if want, ok := f.Ports[c.Forward.DstPort]; ok {
		return netip.AddrPortFrom(from, c.Reverse.SrcPort) != want
	}
	return from != to
}
