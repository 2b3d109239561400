// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"

	"github.com/vishvananda/netlink"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	// podLinks has a link of four addresses for each pod.
	podLinks = "198.51.100.0/24"

	// podInterface is the name of the pod's end of the link.
	podInterface = "eth0"
)

// NodeAddress returns an address by which pods reach the Gateway's namespace.
func NodeAddress() netip.Addr { return netip.MustParsePrefix(Backends).Addr().Next() }

// A Pod is a network namespace beside a Gateway's, with a link to it as between a pod and its node.
// It has no other links.
type Pod struct {
	// Address of the pod.
	Address netip.Addr

	namespace *namespace
	// node is the Gateway's namespace, and link its end of the pod's link.
	node *namespace
	link string
	dir  string
}

// NewPod returns pod number i, of up to 64.
func (g *Gateway) NewPod(i int) (*Pod, error) {
	base := netip.MustParsePrefix(podLinks).Addr().As4()
	base[3] += byte(4 * i)
	node := netip.AddrFrom4(base).Next()
	p := &Pod{Address: node.Next(), node: g.namespace, link: "pod" + strconv.Itoa(i), dir: g.dir}
	var err error
	if p.namespace, err = newNamespace(); err != nil {
		return nil, err
	}
	err = g.namespace.within(func() error {
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: p.link}, PeerName: podInterface, PeerNamespace: netlink.NsFd(int(p.namespace.file.Fd()))}
		return errors.Join(errors.Wrap(netlink.LinkAdd(l), "cannot link a pod"), address(p.link, node))
	})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	err = p.namespace.within(func() error {
		if err := address(podInterface, p.Address); err != nil {
			return err
		}
		return errors.Wrap(netlink.RouteAdd(&netlink.Route{Gw: node.AsSlice()}), "cannot add a pod's route")
	})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// address sets the address of one end of a link.
func address(link string, a netip.Addr) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return errors.Wrap(err, "cannot find a pod's link")
	}
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(30, 32)}}); err != nil {
		return errors.Wrap(err, "cannot set the address of a pod's link")
	}
	return errors.Wrap(netlink.LinkSetUp(l), "cannot bring up a pod's link")
}

// Run starts a program in the pod. The caller must stop it.
func (p *Pod) Run(log io.Writer, program string, args ...string) (*apiserver.Process, error) {
	return apiserver.StartProcess(apiserver.ProcessOptions{Dir: p.dir, Log: log, Enter: p.namespace.enter}, program, args...)
}

// Listen listens on a port in the pod.
func (p *Pod) Listen(ctx context.Context, port uint16) (net.Listener, error) {
	var l net.Listener
	err := p.namespace.within(func() error {
		var err error
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(p.Address, port).String())
		return err
	})
	return l, err
}

// Drop drops all packets from and to the pod silently until Pass. Packets are dropped on arrival,
// so that the sender gets no error.
func (p *Pod) Drop() error {
	return errors.Join(
		p.namespace.within(func() error { return drop(podInterface) }),
		p.node.within(func() error { return drop(p.link) }),
	)
}

// Pass lets packets pass again.
func (p *Pod) Pass() error {
	return errors.Join(
		p.namespace.within(func() error { return pass(podInterface) }),
		p.node.within(func() error { return pass(p.link) }),
	)
}

// Close releases the namespace, which ends with its last process.
func (p *Pod) Close() error {
	return errors.Wrap(p.namespace.file.Close(), "cannot release a pod's network namespace")
}
