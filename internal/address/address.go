// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package address decides which addresses may be dialed for a user who is not trusted: it
// refuses addresses that lead back to the dialing machine, to services for that machine alone,
// or to several hosts. It is pure.
package address

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Reasons for refused addresses, as parts of sentences.
const (
	Loopback    = "a loopback address"
	LinkLocal   = "a link-local address"
	Unspecified = "an unspecified address"
	Multicast   = "a multicast address"
	Broadcast   = "the broadcast address"
	Metadata    = "a metadata address of a cloud"
	Zoned       = "an address with a zone"
	Localhost   = "a name of the machine itself"
	invalid     = "no address"
)

// embedding is a range of IPv6 addresses that contain IPv4 addresses, and the index of their
// first byte.
type embedding struct {
	prefix netip.Prefix
	index  int
}

const (
	bytesIPv4  = 4
	lastBytes  = 12
	afterFirst = 2

	// isatap precedes the IPv4 address in the interface identifier of any prefix, with or without
	// the bit of a universal address (RFC 5214 6.1).
	isatap          = 0x00005efe
	isatapUniversal = 0x02000000
)

var (
	shared      = netip.MustParsePrefix("100.64.0.0/10")
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	teredo      = netip.MustParsePrefix("2001::/32")
	broadcast   = netip.AddrFrom4([bytesIPv4]byte{255, 255, 255, 255})

	// embeddings are those of RFC 4291 2.5.5 (IPv4-compatible and IPv4-mapped), RFC 7915
	// (IPv4-translated), RFC 6052 and RFC 8215 (NAT64), and RFC 3056 (6to4). For the local
	// range of NAT64, a prefix of 96 bits is assumed, as for the well-known one. Teredo and
	// ISATAP are in Embedded.
	embeddings = []embedding{
		{netip.MustParsePrefix("::/96"), lastBytes},
		{netip.MustParsePrefix("::ffff:0:0/96"), lastBytes},
		{netip.MustParsePrefix("::ffff:0:0:0/96"), lastBytes},
		{netip.MustParsePrefix("64:ff9b::/96"), lastBytes},
		{netip.MustParsePrefix("64:ff9b:1::/48"), lastBytes},
		{netip.MustParsePrefix("2002::/16"), afterFirst},
	}

	// metadata are addresses that clouds document in addition to 169.254.169.254, which is
	// link-local: those of AWS and of Google Cloud for IPv6, that of Azure's host, that of
	// Alibaba Cloud, which is not one of a tailnet's devices (100.100.100.0/24 is reserved:
	// https://tailscale.com/kb/1304/ip-pool), and that of Oracle's classic cloud.
	metadata = map[netip.Addr]bool{
		netip.MustParseAddr("fd00:ec2::254"):   true,
		netip.MustParseAddr("fd20:ce::254"):    true,
		netip.MustParseAddr("168.63.129.16"):   true,
		netip.MustParseAddr("100.100.100.200"): true,
		netip.MustParseAddr("192.0.0.192"):     true,
	}
)

// Refused returns why an address may not be dialed, and "" if it may.
func Refused(a netip.Addr) string {
	if !a.IsValid() {
		return invalid
	}
	if reason := refused(a.WithZone("")); reason != "" {
		return reason
	}
	if a.Zone() != "" {
		return Zoned
	}
	if embedded, ok := Embedded(a); ok && refused(embedded) != "" {
		return fmt.Sprintf("another form of %s, %s", embedded, refused(embedded))
	}
	return ""
}

// Embedded returns the IPv4 address that an IPv6 address contains, if any.
func Embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	for _, e := range embeddings {
		if e.prefix.Contains(a) {
			return netip.AddrFrom4([bytesIPv4]byte(b[e.index : e.index+bytesIPv4])), true
		}
	}
	last := [bytesIPv4]byte(b[lastBytes:])
	switch {
	case teredo.Contains(a):
		// The client's address is inverted (RFC 4380 4).
		for i := range last {
			last[i] = ^last[i]
		}
		return netip.AddrFrom4(last), true
	case binary.BigEndian.Uint32(b[lastBytes-bytesIPv4:])&^isatapUniversal == isatap:
		return netip.AddrFrom4(last), true
	}
	return netip.Addr{}, false
}

// refused returns why an address may not be dialed, regardless of embedded addresses. It uses
// the same methods of netip as Envoy Gateway for the addresses of OIDC providers
// (internal/gatewayapi/securitypolicy.go); for a Backend, Envoy Gateway refuses only loopback
// (internal/gatewayapi/backend.go).
func refused(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return Loopback
	case a.IsLinkLocalUnicast():
		return LinkLocal
	case a.IsUnspecified(), thisNetwork.Contains(a):
		return Unspecified
	case a.IsMulticast():
		return Multicast
	case a == broadcast:
		return Broadcast
	case metadata[a]:
		return Metadata
	}
	return ""
}

// RefusedHost returns why a host, which is an address or a DNS name, may not be dialed, before
// it is resolved, and "" if it may: the resolved addresses must be checked, too.
func RefusedHost(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return Refused(a)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return Localhost
	}
	return ""
}

// suffixService ends the names of Services, NAME.NAMESPACE.svc, to which a pod's search list adds the
// cluster's domain.
const suffixService = ".svc"

// ServiceHost returns the host of a Service without the cluster's domain, which a pod's search list
// adds.
func ServiceHost(namespace, name string) string { return name + "." + namespace + suffixService }

// Absolute returns a host that a pod looks up without its search list: a name with a trailing dot.
// The list completes NAME.NAMESPACE to the name of a Service of any namespace, which who looks at the
// host does not recognize. The exceptions lead to no other namespace than the one they name: the
// names of Services without the cluster's domain, and a name without a dot, which is that of a
// Service of the pod's namespace.
func Absolute(host string) string {
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".") {
		return host
	}
	if strings.HasSuffix(strings.ToLower(host), suffixService) && strings.Count(host, ".") > 1 {
		return host
	}
	return host + "."
}

// Public reports whether an address is on the Internet: not private (RFC 1918, RFC 4193), not
// shared by a provider's customers (RFC 6598), such as those of tailnets, and not refused.
func Public(a netip.Addr) bool {
	if embedded, ok := Embedded(a); ok {
		a = embedded
	}
	return Refused(a) == "" && !a.IsPrivate() && !shared.Contains(a)
}

// A RefusedError is the error of a connection to an address that may not be dialed.
type RefusedError struct {
	Address netip.Addr

	// Reason is the reason, as Refused returns it.
	Reason string
}

// Error returns the address and the reason.
func (e RefusedError) Error() string {
	return fmt.Sprintf("%s is refused: it is %s", e.Address, e.Reason)
}

// Control refuses connections by address. It is the Control function of a net.Dialer, which
// calls it with the dialed address, after resolution.
func Control(_, address string, _ syscall.RawConn) error {
	dst, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.Wrapf(err, "cannot parse address %q", address)
	}
	if reason := Refused(dst.Addr()); reason != "" {
		return RefusedError{Address: dst.Addr(), Reason: reason}
	}
	return nil
}
