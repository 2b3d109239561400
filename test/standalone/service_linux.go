// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ServiceAddress returns the address of all Services of pods.
func ServiceAddress() netip.Addr { return netip.MustParseAddr("203.0.113.1") }

const serviceTable = "services"

// Services forwards connections to ports of ServiceAddress to pods, as kube-proxy does: a
// connection stays with its pod, and one to a port without a pod is refused. The pods replace those
// of the previous call.
func (g *Gateway) Services(pods map[uint16]netip.AddrPort) error {
	return g.namespace.within(func() error {
		if err := routeServices(); err != nil {
			return err
		}
		c, err := nftables.New()
		if err != nil {
			return errors.Wrap(err, "cannot connect to nftables")
		}
		t := c.AddTable(&nftables.Table{Name: serviceTable, Family: nftables.TableFamilyIPv4})
		c.FlushTable(t)
		lead := c.AddChain(&nftables.Chain{Name: "lead", Table: t, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
		for port, pod := range pods {
			c.AddRule(&nftables.Rule{Table: t, Chain: lead, Exprs: append(toService(),
				// The port is at byte 2 of TCP's header.
				&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
				&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, port)},
				&expr.Immediate{Register: 1, Data: pod.Addr().AsSlice()},
				&expr.Immediate{Register: 2, Data: binary.BigEndian.AppendUint16(nil, pod.Port())},
				&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2},
			)})
		}
		rest := c.AddChain(&nftables.Chain{Name: "refuse", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter})
		c.AddRule(&nftables.Rule{Table: t, Chain: rest, Exprs: append(toService(), &expr.Reject{Type: unix.NFT_REJECT_TCP_RST})})
		return errors.Wrap(c.Flush(), "cannot forward connections to pods")
	})
}

// toService matches TCP to ServiceAddress.
func toService() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		// The destination is at byte 16 of IPv4's header.
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: ServiceAddress().AsSlice()},
	}
}

// routeServices adds a route to Services: without one, the kernel rejects a packet before it
// evaluates rules.
func routeServices() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return errors.Wrap(err, "cannot find lo")
	}
	a := ServiceAddress()
	r := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}, Src: NodeAddress().AsSlice()}
	return errors.Wrap(netlink.RouteReplace(r), "cannot add a route to Services")
}
