// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import "net/netip"

// Translations are the destinations that containerboot has set up in the kernel for UDP packets
// that arrive at the pod.
type Translations struct {
	// Ports maps ports of the pod to their targets, one of each family. It holds all ports that
	// have one.
	Ports map[uint16][]netip.AddrPort

	// Addresses maps the machine's addresses for services to their targets.
	Addresses map[netip.Addr]netip.Addr
}

// Forwarded are the destinations of connections that the kernel forwards.
type Forwarded struct {
	// First and Last are the range of the pod's ports that lead to targets.
	First, Last uint16

	// Addresses are the machine's addresses for services.
	Addresses map[netip.Addr]bool
}
