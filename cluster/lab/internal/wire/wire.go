// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire carries Ethernet frames between two links like a bad path of the Internet: with
// latency and loss, and without the UDP that direct connections of a tailnet need. The kernel's
// emulation (tc-netem) is a module that many machines lack.
package wire

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// A Path describes a path between two links.
type Path struct {
	// RoundTrip is the time that a frame and its answer take together.
	RoundTrip time.Duration `json:"roundTrip"`

	// Loss is the share of frames that get lost in each direction, from 0 to 1.
	Loss float64 `json:"loss"`

	// MTU of both links, in bytes.
	MTU int `json:"mtu"`

	// Relayed drops all UDP except DNS and that of a cluster's node ports, so that nodes of a
	// tailnet have no direct paths and use DERP over TCP, unless their cluster opens a node port.
	Relayed bool `json:"relayed"`

	// Spared are TCP ports whose frames are neither delayed nor lost, for traffic that tests do
	// not measure.
	Spared []uint16 `json:"spared,omitempty"`
}

// Slow returns a relayed path across the world with a tunnel in it: 150 ms, 1% loss, and the
// smallest MTU that IPv6 permits.
func Slow(spared ...uint16) Path {
	return Path{RoundTrip: 150 * time.Millisecond, Loss: 0.01, MTU: 1280, Relayed: true, Spared: spared}
}

// A fate is what happens to a frame.
type fate int

const (
	fateLate fate = iota
	fateSpared
	fateLost
)

// Protocol numbers (IANA), and offsets of fields in a frame.
const (
	etherTypeAt = 12
	headerAt    = 14
	etherIPv4   = 0x0800
	etherIPv6   = 0x86dd
	protocolTCP = 6
	protocolUDP = 17
	portDNS     = 53

	// Kubernetes' default range of node ports.
	firstNodePort, lastNodePort = 30000, 32767
)

// passes reports whether a firewall lets UDP of a port pass: names resolve, and node ports are open.
func passes(port uint16) bool {
	return port == portDNS || port >= firstNodePort && port <= lastNodePort
}

// transport returns the protocol above IP in a frame, and its ports. Protocol 0 means that the
// frame is not IP. A fragment without the ports has none.
func transport(frame []byte) (protocol byte, ports []uint16) {
	if len(frame) < headerAt {
		return 0, nil
	}
	packet := frame[headerAt:]
	var offset int
	switch binary.BigEndian.Uint16(frame[etherTypeAt:]) {
	case etherIPv4:
		if len(packet) < 20 {
			return 0, nil
		}
		protocol, offset = packet[9], int(packet[0]&0x0f)*4
		if binary.BigEndian.Uint16(packet[6:])&0x1fff != 0 {
			return protocol, nil
		}
	case etherIPv6:
		if len(packet) < 40 {
			return 0, nil
		}
		protocol, offset = packet[6], 40
	default:
		return 0, nil
	}
	if len(packet) < offset+4 || protocol != protocolTCP && protocol != protocolUDP {
		return protocol, nil
	}
	return protocol, []uint16{binary.BigEndian.Uint16(packet[offset:]), binary.BigEndian.Uint16(packet[offset+2:])}
}

// fateOf returns the fate of a frame before random losses.
func (p Path) fateOf(frame []byte) fate {
	protocol, ports := transport(frame)
	switch {
	case protocol == 0:
		// ARP and the like, without which a link that is up has no neighbors.
		return fateSpared
	case protocol == protocolUDP && p.Relayed && !slices.ContainsFunc(ports, passes):
		return fateLost
	case protocol == protocolTCP && slices.ContainsFunc(ports, func(n uint16) bool { return slices.Contains(p.Spared, n) }):
		return fateSpared
	}
	return fateLate
}

// Join carries frames between two links in both directions, until a Read fails. Each Read of a
// link returns a frame, and each Write takes one. The same seed loses the same frames.
func (p Path) Join(a, b io.ReadWriter, seed uint64) {
	go p.carry(a, b, rand.New(rand.NewPCG(seed, 1))) //nolint:gosec // Dice, no secret.
	go p.carry(b, a, rand.New(rand.NewPCG(seed, 2))) //nolint:gosec // As above.
}

// A parcel is a frame in transit.
type parcel struct {
	frame []byte
	due   time.Time
}

// onTheWay limits the frames in transit per direction. Further frames are lost, as at a router.
const onTheWay = 4096

func (p Path) carry(from io.Reader, to io.Writer, dice *rand.Rand) {
	queue := make(chan parcel, onTheWay)
	defer close(queue)
	go func() {
		for f := range queue {
			time.Sleep(time.Until(f.due))
			_, _ = to.Write(f.frame) // A link that does not take a frame loses it.
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		switch p.fateOf(buf[:n]) {
		case fateLost:
		case fateSpared:
			_, _ = to.Write(buf[:n]) // As above.
		case fateLate:
			if dice.Float64() < p.Loss {
				continue
			}
			select {
			case queue <- parcel{slices.Clone(buf[:n]), time.Now().Add(p.RoundTrip / 2)}:
			default:
			}
		}
	}
}
