// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package network

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownNamespace gives the test's thread a network namespace with addresses on lo.
func ownNamespace(t *testing.T, addrs ...string) {
	t.Helper()
	runtime.LockOSThread()
	// The test does not unlock the thread, so that the thread and its namespace end with the test's
	// goroutine.
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("Unshare(...): %v", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip, n, err := net.ParseCIDR(a)
		if err != nil {
			t.Fatal(err)
		}
		n.IP = ip
		if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: n, Flags: unix.IFA_F_NODAD}); err != nil {
			t.Fatalf("AddrAdd(%s): %v", a, err)
		}
	}
}

// TestCheckTun checks that a container that may use a TUN device is not reported, and that a
// missing right is.
func TestCheckTun(t *testing.T) {
	ownNamespace(t)
	root := t.TempDir()
	if r := Check(t.Context(), root, netip.AddrPort{}); r != (Report{}) {
		t.Errorf("Check(...): the device must be created and opened, got %+v", r)
	}
	if _, err := netlink.LinkByName(tunName); err == nil {
		t.Error("The interface of the check must end with it.")
	}
	// A file that is no device cannot create an interface, as a device that the container runtime
	// denies cannot.
	path := filepath.Join(root, tunDevice)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := Check(t.Context(), root, netip.AddrPort{}); r.Tun == "" || r.TunAbsent {
		t.Errorf("Check(...): want a problem with the device, got %+v", r)
	}
}

// TestCheckServices checks that a network that answers only connections of sockets is noticed. A
// rule drops packets that raw sockets send, in place of Cilium's socket load balancer: both treat
// connections of sockets and other packets differently.
func TestCheckServices(t *testing.T) {
	for name, addr := range map[string]string{"IPv4": "10.96.0.1", "IPv6": "fd00::1"} {
		t.Run(name, func(t *testing.T) {
			ownNamespace(t, netip.PrefixFrom(netip.MustParseAddr(addr), netip.MustParseAddr(addr).BitLen()).String())
			l, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			service := netip.MustParseAddrPort(l.Addr().String())
			if r := Check(t.Context(), t.TempDir(), service); r.Dropped != "" {
				t.Errorf("Check(...): a network that answers all packets is no problem, got %+v", r)
			}
			dropFrom(t, firstPort, firstPort+ports-1)
			if r := Check(t.Context(), t.TempDir(), service); r.Dropped != service.String() {
				t.Errorf("Check(...): dropped packets must be noticed, got %+v", r)
			}
			_ = l.Close()
			if r := Check(t.Context(), t.TempDir(), service); r.Dropped != "" {
				t.Errorf("Check(...): nothing is known about a Service that refuses connections, got %+v", r)
			}
		})
	}
}

// dropFrom drops TCP packets from a range of ports.
func dropFrom(t *testing.T, first, last uint16) {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	table := c.AddTable(&nftables.Table{Name: "test", Family: nftables.TableFamilyINet})
	chain := c.AddChain(&nftables.Chain{Name: "in", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 2},
		&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: binaryutil.BigEndian.PutUint16(first), ToData: binaryutil.BigEndian.PutUint16(last)},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
}
