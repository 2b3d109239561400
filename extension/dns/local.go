// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"net"
	"net/netip"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
)

// Local returns the families of the pod's addresses, or none if it cannot find out.
func Local(log logging.Logger) address.Families {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		log.Info("Cannot list the pod's addresses; names of backends resolve to IPv4 if they have both families", "error", err)
		return address.Families{}
	}
	return familiesOf(addrs)
}

// familiesOf returns the families of the addresses that others can reach.
func familiesOf(addrs []net.Addr) address.Families {
	var out []netip.Addr
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap().IsGlobalUnicast() {
			out = append(out, ip)
		}
	}
	return address.FamiliesOf(out...)
}
