// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/wire"
)

// loopback brings up lo in the calling thread's namespace.
func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return errors.Wrap(err, "cannot find lo")
	}
	return errors.Wrap(netlink.LinkSetUp(lo), "cannot bring up lo")
}

// Loopback adds an address to lo.
func (n *Namespace) Loopback(addr netip.Prefix) error {
	return n.Do(func() error { return address("lo", addr) })
}

// Bridge creates a bridge with one or more addresses.
func (n *Namespace) Bridge(name string, addrs ...netip.Prefix) error {
	return n.Do(func() error {
		// By default, the hardware address of a bridge changes with its ports. A fixed
		// one makes kubelet see a stable node from the start.
		a := netlink.NewLinkAttrs()
		a.Name = name
		first := addrs[0].Addr().As16()
		a.HardwareAddr = net.HardwareAddr(append([]byte{0x02, 0x42}, first[12:]...))
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: a}); err != nil {
			return errors.Wrapf(err, "cannot add bridge %q", name)
		}
		return addresses(name, addrs)
	})
}

// Join creates a pair of links: one in n with addresses, the other as a port of a
// bridge in hub.
func (n *Namespace) Join(name string, addrs []netip.Prefix, hub *Namespace, bridge, port string) error {
	err := n.Do(func() error {
		h, err := netns.GetFromName(hub.Name)
		if err != nil {
			return errors.Wrapf(err, "cannot open network namespace %q", hub.Name)
		}
		defer h.Close() // Only read.
		a := netlink.NewLinkAttrs()
		a.Name = name
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: port, PeerNamespace: netlink.NsFd(int(h))}); err != nil {
			return errors.Wrapf(err, "cannot add link %q", name)
		}
		return addresses(name, addrs)
	})
	if err != nil {
		return err
	}
	return hub.port(bridge, port)
}

// port makes a link a port of a bridge.
func (n *Namespace) port(bridge, port string) error {
	return n.Do(func() error { return join(bridge, port) })
}

// join makes a link a port of a bridge in the calling thread's namespace.
func join(bridge, port string) error {
	l, err := netlink.LinkByName(port)
	if err != nil {
		return errors.Wrapf(err, "cannot find link %q", port)
	}
	b, err := netlink.LinkByName(bridge)
	if err != nil {
		return errors.Wrapf(err, "cannot find bridge %q", bridge)
	}
	if err := netlink.LinkSetMaster(l, b); err != nil {
		return errors.Wrapf(err, "cannot join %q to bridge %q", port, bridge)
	}
	return errors.Wrapf(netlink.LinkSetUp(l), "cannot bring up %q", port)
}

// Disconnect takes a port from its bridge in a named namespace. Both links of the pair stay up, so frames get
// lost without a trace.
func Disconnect(namespace, port string) error {
	return within(namespace, func() error {
		l, err := netlink.LinkByName(port)
		if err != nil {
			return errors.Wrapf(err, "cannot find link %q", port)
		}
		return errors.Wrapf(netlink.LinkSetNoMaster(l), "cannot take %q from its bridge", port)
	})
}

// Connect makes a link a port of a bridge again, after Disconnect.
func Connect(namespace, bridge, port string) error {
	return within(namespace, func() error { return join(bridge, port) })
}

// JoinBy creates a pair of links as Join does, and carries frames between them over a path.
func (n *Namespace) JoinBy(path wire.Path, name string, addrs []netip.Prefix, hub *Namespace, bridge, port string) error {
	near, err := n.tap(name, path.MTU)
	if err != nil {
		return err
	}
	if err := n.Do(func() error { return addresses(name, addrs) }); err != nil {
		return err
	}
	far, err := hub.tap(port, path.MTU)
	if err != nil {
		return err
	}
	if err := hub.port(bridge, port); err != nil {
		return err
	}
	path.Join(near, far, uint64(addrs[0].Addr().As16()[15]))
	return nil
}

// tap creates a link whose frames this process reads and writes. It ends with the process.
func (n *Namespace) tap(name string, mtu int) (*os.File, error) {
	var f *os.File
	err := n.Do(func() error {
		a := netlink.NewLinkAttrs()
		a.Name = name
		t := &netlink.Tuntap{LinkAttrs: a, Mode: modeTAP, Flags: flagNoPI, Queues: 1, NonPersist: true}
		if err := netlink.LinkAdd(t); err != nil {
			return errors.Wrapf(err, "cannot add link %q", name)
		}
		f = t.Fds[0]
		l, err := netlink.LinkByName(name)
		if err != nil {
			return errors.Wrapf(err, "cannot find link %q", name)
		}
		return errors.Wrapf(netlink.LinkSetMTU(l, mtu), "cannot set the MTU of %q", name)
	})
	return f, err
}

// Route adds a route for a range to a link. Kubernetes needs one for its Services:
// without a route, the kernel rejects a packet before kube-proxy's rules apply.
func (n *Namespace) Route(dst netip.Prefix, link string) error {
	return n.Do(func() error {
		l, err := netlink.LinkByName(link)
		if err != nil {
			return errors.Wrapf(err, "cannot find link %q", link)
		}
		r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(dst), Scope: scopeLink}
		return errors.Wrapf(netlink.RouteAdd(r), "cannot add route to %s", dst)
	})
}

// RouteVia adds a route for a range through a gateway.
func (n *Namespace) RouteVia(dst netip.Prefix, gateway netip.Addr) error {
	return n.Do(func() error {
		r := &netlink.Route{Dst: ipNet(dst), Gw: gateway.AsSlice()}
		return errors.Wrapf(netlink.RouteAdd(r), "cannot add route to %s via %s", dst, gateway)
	})
}

// Sysctl sets a kernel setting of the namespace, named as in sysctl(8).
func (n *Namespace) Sysctl(name, value string) error {
	path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
	return n.Do(func() error {
		return errors.Wrapf(os.WriteFile(path, []byte(value), 0o644), "cannot set %s", name) // Not a new file.
	})
}

func addresses(link string, addrs []netip.Prefix) error {
	for _, a := range addrs {
		if err := address(link, a); err != nil {
			return err
		}
	}
	return nil
}

// address adds an address to a link. It is unique, and programs could not listen on an IPv6
// address while the kernel still looked for duplicates.
func address(link string, addr netip.Prefix) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return errors.Wrapf(err, "cannot find link %q", link)
	}
	a := &netlink.Addr{IPNet: ipNet(addr)}
	if addr.Addr().Is6() {
		a.Flags = flagNoDAD
	}
	if err := netlink.AddrAdd(l, a); err != nil {
		return errors.Wrapf(err, "cannot add address %s to %q", addr, link)
	}
	return errors.Wrapf(netlink.LinkSetUp(l), "cannot bring up %q", link)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
