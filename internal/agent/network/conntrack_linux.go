// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// ForgetUDP deletes each UDP flow in the kernel whose destination differs from the
// translations, and returns the number of deleted flows. The kernel applies its rules only to
// the first packet of a flow, and a flow lasts as long as packets arrive: a client that keeps
// sending would never reach a new target. ForgetUDP needs the capability NET_ADMIN. It leaves
// TCP connections alone, because they end by themselves.
func ForgetUDP(t Translations) (uint, error) {
	own, err := ownAddresses()
	if err != nil {
		return 0, err
	}
	f := flows{Translations: t, own: own}
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

// ownAddresses returns the pod's addresses.
func ownAddresses() (map[netip.Addr]bool, error) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, errors.Wrap(err, "cannot list the pod's addresses")
	}
	out := map[netip.Addr]bool{}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out[p.Addr().Unmap()] = true
		}
	}
	return out, nil
}

// States of a TCP connection that still carries data (linux
// include/uapi/linux/netfilter/nf_conntrack_tcp.h). In the later ones both sides have closed.
const (
	tcpEstablished = 3
	tcpFinWait     = 4
	tcpCloseWait   = 5
)

// OpenTCP reports whether a TCP connection is open that the kernel forwards. It needs the
// capability NET_ADMIN.
func OpenTCP(f Forwarded) (bool, error) {
	own, err := ownAddresses()
	if err != nil {
		return false, err
	}
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		all, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil {
			return false, errors.Wrap(err, "cannot list connections that the kernel forwards; the container needs the capability NET_ADMIN")
		}
		if slices.ContainsFunc(all, func(c *netlink.ConntrackFlow) bool { return f.open(c, own) }) {
			return true, nil
		}
	}
	return false, nil
}

// open reports whether a flow is an open TCP connection that the kernel forwards for f.
func (f Forwarded) open(c *netlink.ConntrackFlow, own map[netip.Addr]bool) bool {
	tcp, ok := c.ProtoInfo.(*netlink.ProtoInfoTCP)
	if !ok || tcp.State != tcpEstablished && tcp.State != tcpFinWait && tcp.State != tcpCloseWait {
		return false
	}
	to, ok := netip.AddrFromSlice(c.Forward.DstIP)
	from, ok2 := netip.AddrFromSlice(c.Reverse.SrcIP)
	if !ok || !ok2 || to.Unmap() == from.Unmap() {
		return false // Nothing is translated: a server in the pod answers.
	}
	to = to.Unmap()
	return f.Addresses[to] || own[to] && c.Forward.DstPort >= f.First && c.Forward.DstPort <= f.Last
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
	for _, want := range f.Ports[c.Forward.DstPort] {
		if want.Addr().Is4() == to.Is4() {
			return netip.AddrPortFrom(from, c.Reverse.SrcPort) != want
		}
	}
	return from != to
}
