// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Backend addresses. The namespace owns every address of these ranges, so that a test may listen on
// any number of them. Envoy Gateway rejects 127.0.0.0/8 for a Backend.
const (
	// Backends is the range for documentation.
	Backends = "192.0.2.0/24"
	// Tailnet is the range of tailnets' addresses.
	Tailnet = "100.64.0.0/10"
)

// A namespace is a network namespace without a name. It ends with its last user.
type namespace struct{ file *os.File }

// newNamespace returns a namespace that owns the addresses of the ranges.
func newNamespace(ranges ...string) (*namespace, error) {
	n := &namespace{}
	done := make(chan error)
	go func() {
		// Not unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		done <- n.make(ranges)
	}()
	return n, <-done
}

// make moves the calling thread to the new namespace.
func (n *namespace) make(ranges []string) error {
	if err := unshare(newNetwork); err != nil {
		return errors.Wrap(err, "cannot create a network namespace: run as root")
	}
	var err error
	if n.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return errors.Wrap(err, "cannot open network namespace")
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return errors.Wrap(err, "cannot find lo")
	}
	for _, r := range ranges {
		p := netip.MustParsePrefix(r)
		// The kernel treats a whole range on lo as local, as 127.0.0.0/8.
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().Next().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if err := netlink.AddrAdd(lo, a); err != nil {
			return errors.Wrapf(err, "cannot add %s to lo", r)
		}
	}
	return errors.Wrap(netlink.LinkSetUp(lo), "cannot bring up lo")
}

// enter moves the calling thread to the namespace.
func (n *namespace) enter() error {
	return errors.Wrap(setns(int(n.file.Fd()), newNetwork), "cannot enter network namespace")
}

// within runs f on a new thread in the namespace. Goroutines that f starts are not in the
// namespace.
func (n *namespace) within(f func() error) error {
	done := make(chan error)
	go func() {
		// Not unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		if err := n.enter(); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// Dial connects to an address in the namespace, which must be literal.
func (g *Gateway) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var c net.Conn
	err := g.namespace.within(func() error {
		var err error
		c, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return err
	})
	return c, err
}

// Drop drops all packets to an address of Backends or Tailnet silently, until the Gateway stops. It
// supports one address.
func (g *Gateway) Drop(addr netip.Addr) error {
	const nowhere = "nowhere"
	route := &netlink.Route{
		Dst: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())},
		// This route precedes the route of the range, which makes the address local.
		Table: tableLocal,
		Scope: scopeLink,
	}
	return g.namespace.within(func() error {
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: nowhere}, PeerName: nowhere + "-end"}
		if err := netlink.LinkAdd(l); err != nil {
			return errors.Wrap(err, "cannot create the link for dropped packets")
		}
		for _, name := range []string{l.Name, l.PeerName} {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return errors.Wrap(err, "cannot find the link for dropped packets")
			}
			// Without ARP: no host would answer for the address.
			if err := errors.Join(netlink.LinkSetARPOff(link), netlink.LinkSetUp(link)); err != nil {
				return errors.Wrap(err, "cannot bring up the link for dropped packets")
			}
			if name == l.Name {
				route.LinkIndex = link.Attrs().Index
			}
		}
		return errors.Wrapf(netlink.RouteAdd(route), "cannot drop packets to %s", addr)
	})
}

// Listen listens in the namespace, for example on an address of Backends.
func (g *Gateway) Listen(ctx context.Context, network, addr string) (net.Listener, error) {
	var l net.Listener
	err := g.namespace.within(func() error {
		var err error
		l, err = (&net.ListenConfig{}).Listen(ctx, network, addr)
		return err
	})
	return l, err
}

// ListenPacket is like Listen, for datagrams.
func (g *Gateway) ListenPacket(ctx context.Context, network, addr string) (net.PacketConn, error) {
	var l net.PacketConn
	err := g.namespace.within(func() error {
		var err error
		l, err = (&net.ListenConfig{}).ListenPacket(ctx, network, addr)
		return err
	})
	return l, err
}
