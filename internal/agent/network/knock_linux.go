// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Fields of a TCP header without options (RFC 9293).
const (
	tcpProtocol = 6
	tcpHeader   = 20
	flagSYN     = 0x02
	flagRST     = 0x04
	tcpWindow   = 64240

	// firstPort and ports are the range of source ports. The pod uses others for its connections
	// (net.ipv4.ip_local_port_range).
	firstPort = 61000
	ports     = 4000
)

// knock sends the first packet of a TCP connection by a raw socket, and reports whether anything
// answers it. The kernel resets the connection, which it does not know. It needs the capability
// NET_RAW.
func knock(ctx context.Context, from netip.Addr, to netip.AddrPort) (bool, error) {
	network := "ip4:tcp"
	if from.Is6() {
		network = "ip6:tcp"
	}
	lc := net.ListenConfig{}
	c, err := lc.ListenPacket(ctx, network, from.String())
	if err != nil {
		return false, errors.Wrap(err, "cannot open raw socket")
	}
	defer func() { _ = c.Close() }()
	source := netip.AddrPortFrom(from, uint16(firstPort+rand.IntN(ports))) //nolint:gosec // The port need not be unpredictable.
	if err := c.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return false, errors.Wrap(err, "cannot set deadline")
	}
	number := rand.Uint32() //nolint:gosec // Nor need the sequence number.
	if _, err := c.WriteTo(segment(source, to, number), &net.IPAddr{IP: to.Addr().AsSlice()}); err != nil {
		return false, errors.Wrap(err, "cannot send")
	}
	b := make([]byte, 1500)
	for {
		n, peer, err := c.ReadFrom(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false, nil
		}
		if err != nil {
			return false, errors.Wrap(err, "cannot receive")
		}
		if a, err := netip.ParseAddr(peer.String()); err == nil && answers(b[:n], netip.AddrPortFrom(a.Unmap(), to.Port()), source, to) {
			return true, nil
		}
	}
}

// segment returns a TCP segment that opens a connection.
func segment(from, to netip.AddrPort, sequence uint32) []byte {
	b := make([]byte, tcpHeader)
	binary.BigEndian.PutUint16(b[0:], from.Port())
	binary.BigEndian.PutUint16(b[2:], to.Port())
	binary.BigEndian.PutUint32(b[4:], sequence)
	b[12] = tcpHeader / 4 << 4
	b[13] = flagSYN
	binary.BigEndian.PutUint16(b[14:], tcpWindow)
	binary.BigEndian.PutUint16(b[16:], checksum(from.Addr(), to.Addr(), b))
	return b
}

// checksum returns the checksum of a segment, whose own checksum is zero.
func checksum(from, to netip.Addr, segment []byte) uint16 {
	sum := uint32(tcpProtocol) + uint32(len(segment))
	for _, part := range [][]byte{from.AsSlice(), to.AsSlice(), segment} {
		for i := 0; i+1 < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// answers reports whether a segment answers one from source to a Service: it accepts or refuses
// the connection.
func answers(segment []byte, peer, source, service netip.AddrPort) bool {
	return len(segment) >= tcpHeader && peer == service &&
		binary.BigEndian.Uint16(segment[0:]) == service.Port() &&
		binary.BigEndian.Uint16(segment[2:]) == source.Port() &&
		segment[13]&(flagSYN|flagRST) != 0
}
