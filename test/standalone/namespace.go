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
	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Backend addresses. Every address of these ranges is the namespace's own, so
// that a test may listen on as many as it likes. Envoy Gateway takes none of
// 127.0.0.0/8 for a Backend.
const (
	// Backends is the documentation's range.
	Backends = "192.0.2.0/24"
	// Tailnet is the range of tailnets' addresses.
	Tailnet = "100.64.0.0/10"
)

// A namespace is a network namespace without a name. It is gone when nobody uses
// it any more.
type namespace struct{ file *os.File }

// newNamespace whose own addresses are those of the ranges.
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

// make leaves the calling thread in the new namespace.
func (n *namespace) make(ranges []string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return errors.Wrap(err, "cannot make a network namespace: run as root")
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
		// A range on lo is local as a whole, as 127.0.0.0/8 is.
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().Next().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if err := netlink.AddrAdd(lo, a); err != nil {
			return errors.Wrapf(err, "cannot add %s to lo", r)
		}
	}
	return errors.Wrap(netlink.LinkSetUp(lo), "cannot bring up lo")
}

// enter moves the calling thread into the namespace.
func (n *namespace) enter() error {
	return errors.Wrap(unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET), "cannot enter network namespace")
}

// within runs f on a thread of its own in the namespace. What f starts in
// goroutines of its own is not in there.
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

// Drop has all packets to an address of Backends or Tailnet vanish, without a word
// to who sends them, until the Gateway stops. It is for one address.
func (g *Gateway) Drop(addr netip.Addr) error {
	const nowhere = "nowhere"
	route := &netlink.Route{
		Dst: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())},
		// It goes before the range's own, which says that the address is here.
		Table: unix.RT_TABLE_LOCAL,
		Scope: netlink.SCOPE_LINK,
	}
	return g.namespace.within(func() error {
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: nowhere}, PeerName: nowhere + "-end"}
		if err := netlink.LinkAdd(l); err != nil {
			return errors.Wrap(err, "cannot make a link that leads nowhere")
		}
		for _, name := range []string{l.Name, l.PeerName} {
			of, err := netlink.LinkByName(name)
			if err != nil {
				return errors.Wrap(err, "cannot find the link that leads nowhere")
			}
			// Nobody would answer who has the address.
			if err := errors.Join(netlink.LinkSetARPOff(of), netlink.LinkSetUp(of)); err != nil {
				return errors.Wrap(err, "cannot bring up the link that leads nowhere")
			}
			if name == l.Name {
				route.LinkIndex = of.Attrs().Index
			}
		}
		return errors.Wrapf(netlink.RouteAdd(route), "cannot have packets to %s vanish", addr)
	})
}

// Listen listens in the namespace, for instance on an address of Backends.
func (g *Gateway) Listen(ctx context.Context, network, addr string) (net.Listener, error) {
	var l net.Listener
	err := g.namespace.within(func() error {
		var err error
		l, err = (&net.ListenConfig{}).Listen(ctx, network, addr)
		return err
	})
	return l, err
}

// ListenPacket is Listen for datagrams.
func (g *Gateway) ListenPacket(ctx context.Context, network, addr string) (net.PacketConn, error) {
	var l net.PacketConn
	err := g.namespace.within(func() error {
		var err error
		l, err = (&net.ListenConfig{}).ListenPacket(ctx, network, addr)
		return err
	})
	return l, err
}
