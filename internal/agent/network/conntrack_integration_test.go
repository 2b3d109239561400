// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package network

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestForgetUDPInKernel deletes flows in a separate network namespace.
func TestForgetUDPInKernel(t *testing.T) {
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
	for _, a := range []string{"10.244.0.1/24", "fd00::1/64"} {
		ip, n, err := net.ParseCIDR(a)
		if err != nil {
			t.Fatal(err)
		}
		n.IP = ip
		if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: n}); err != nil {
			t.Fatalf("AddrAdd(%s): %v", a, err)
		}
	}
	for _, f := range []*netlink.ConntrackFlow{
		flow(unix.IPPROTO_UDP, "10.244.0.1:10000", "100.64.0.9:53"),
		flow(unix.IPPROTO_UDP, "10.244.0.1:10001", "100.64.0.8:53"),
		flow(unix.IPPROTO_UDP, "100.100.0.1:53", "10.96.0.2:53"),
		flow(unix.IPPROTO_UDP, "[fd00::1]:10001", "[fd7a:115c:a1e0::9]:53"),
		flow(unix.IPPROTO_UDP, "203.0.113.1:10001", "203.0.113.1:10001"),
	} {
		if err := netlink.ConntrackCreate(netlink.ConntrackTable, netlink.InetFamily(f.FamilyType), f); err != nil {
			t.Fatalf("ConntrackCreate(...): %v", err)
		}
	}
	for i, want := range []uint{3, 0} {
		if n, err := ForgetUDP(pod().Translations); err != nil || n != want {
			t.Errorf("ForgetUDP(...), time %d: want %d flows, got %d, %v", i, want, n, err)
		}
	}
	var remaining []string
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		l, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range l {
			a, _ := netip.AddrFromSlice(f.Forward.DstIP)
			remaining = append(remaining, fmt.Sprintf("%s:%d", a.Unmap(), f.Forward.DstPort))
		}
	}
	slices.Sort(remaining)
	if diff := cmp.Diff([]string{"10.244.0.1:10000", "203.0.113.1:10001"}, remaining); diff != "" {
		t.Errorf("remaining flows: -want, +got:\n%s", diff)
	}
}
