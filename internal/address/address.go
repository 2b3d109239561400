// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package address judges which addresses may be dialled on behalf of somebody who is not
// trusted to choose any: those that lead back to the machine that dials, to what only
// that machine is to reach, or to no single host are refused. It is pure.
package address

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Reasons why an address is refused, as they stand in sentences.
const (
	Loopback    = "a loopback address"
	LinkLocal   = "a link-local address"
	Unspecified = "an unspecified address"
	Multicast   = "a multicast address"
	Broadcast   = "the broadcast address"
	Metadata    = "an address at which a cloud tells its machines secrets"
	Zoned       = "an address with a zone"
	Localhost   = "a name of the machine itself"
	invalid     = "no address"
)

// embedding is a range of IPv6 addresses that stand for addresses of IPv4, and the byte
// at which those begin.
type embedding struct {
	prefix netip.Prefix
	at     int
}

const (
	bytesIPv4  = 4
	lastBytes  = 12
	afterFirst = 2
)

var (
	shared      = netip.MustParsePrefix("100.64.0.0/10")
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.AddrFrom4([bytesIPv4]byte{255, 255, 255, 255})

	// embeddings are those of RFC 4291 2.5.5 (IPv4-compatible and IPv4-mapped), RFC 7915
	// (IPv4-translated), RFC 6052 and RFC 8215 (NAT64), and RFC 3056 (6to4). Of the local
	// range for NAT64 a prefix of 96 bits is supposed, as of the well-known one.
	embeddings = []embedding{
		{netip.MustParsePrefix("::/96"), lastBytes},
		{netip.MustParsePrefix("::ffff:0:0/96"), lastBytes},
		{netip.MustParsePrefix("::ffff:0:0:0/96"), lastBytes},
		{netip.MustParsePrefix("64:ff9b::/96"), lastBytes},
		{netip.MustParsePrefix("64:ff9b:1::/48"), lastBytes},
		{netip.MustParsePrefix("2002::/16"), afterFirst},
	}

	// metadata are addresses that clouds document beside 169.254.169.254, which is
	// link-local: those of AWS and of Google Cloud for IPv6, and that of Azure's host.
	metadata = map[netip.Addr]bool{
		netip.MustParseAddr("fd00:ec2::254"): true,
		netip.MustParseAddr("fd20:ce::254"):  true,
		netip.MustParseAddr("168.63.129.16"): true,
	}
)

// Refused returns why an address may not be dialled. It is empty if it may.
func Refused(a netip.Addr) string {
	if !a.IsValid() {
		return invalid
	}
	if why := refused(a.WithZone("")); why != "" {
		return why
	}
	if a.Zone() != "" {
		return Zoned
	}
	if in, ok := Embedded(a); ok && refused(in) != "" {
		return fmt.Sprintf("another form of %s, %s", in, refused(in))
	}
	return ""
}

// Embedded returns the address of IPv4 that an address of IPv6 stands for, if any.
func Embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	for _, e := range embeddings {
		if e.prefix.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([bytesIPv4]byte(b[e.at : e.at+bytesIPv4])), true
		}
	}
	return netip.Addr{}, false
}

// refused returns why an address may not be dialled by what it is itself. The methods of
// netip are those that Envoy Gateway judges addresses of OIDC providers by
// (internal/gatewayapi/securitypolicy.go); of a Backend it refuses loopback alone
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

// RefusedHost returns why a host, which is an address or a DNS name, may not be dialled
// before it is looked up. It is empty if it may: the addresses of a name have to be judged
// too.
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

// Public reports whether an address is one of the Internet's: neither private (RFC 1918,
// RFC 4193), nor shared by a provider's customers (RFC 6598), which tailnets have theirs
// of, nor one that is refused.
func Public(a netip.Addr) bool {
	if in, ok := Embedded(a); ok {
		a = in
	}
	return Refused(a) == "" && !a.IsPrivate() && !shared.Contains(a)
}

// A RefusedError is that of a connection to an address that may not be dialled.
type RefusedError struct {
	Address netip.Addr

	// Why as Refused has it.
	Why string
}

// Error names the address and why it is refused.
func (e RefusedError) Error() string { return fmt.Sprintf("%s is refused: it is %s", e.Address, e.Why) }

// Control refuses connections by address. It is a Control of a net.Dialer, which calls it
// with the very address that is dialled, whatever name it was looked up by.
func Control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.Wrapf(err, "cannot judge address %q", address)
	}
	if why := Refused(to.Addr()); why != "" {
		return RefusedError{Address: to.Addr(), Why: why}
	}
	return nil
}
