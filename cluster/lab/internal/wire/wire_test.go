// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// frame returns an Ethernet frame with an IP packet of a protocol and its ports.
func frame(etherType uint16, protocol byte, from, to uint16) []byte {
	f := make([]byte, headerAt, 100)
	binary.BigEndian.PutUint16(f[etherTypeAt:], etherType)
	ports := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	switch etherType {
	case etherIPv4:
		h := make([]byte, 20)
		h[0], h[9] = 0x45, protocol
		return append(append(f, h...), ports...)
	case etherIPv6:
		h := make([]byte, 40)
		h[0], h[6] = 0x60, protocol
		return append(append(f, h...), ports...)
	}
	return append(f, ports...)
}

func TestFateOf(t *testing.T) {
	fragment := frame(etherIPv4, protocolUDP, 0, 0)
	fragment[headerAt+7] = 1
	cases := map[string]struct {
		reason string
		path   Path
		frame  []byte
		want   fate
	}{
		"ARP":        {reason: "Without neighbors no traffic passes.", path: Slow(), frame: frame(0x0806, 0, 0, 0), want: fateSpared},
		"Short":      {reason: "Bytes that are no frame pass.", path: Slow(), frame: []byte{1, 2}, want: fateSpared},
		"WireGuard":  {reason: "A direct path is by UDP.", path: Slow(), frame: frame(etherIPv4, protocolUDP, 41641, 41641), want: fateLost},
		"WireGuard6": {reason: "By IPv6, too.", path: Slow(), frame: frame(etherIPv6, protocolUDP, 41641, 41641), want: fateLost},
		"Fragment":   {reason: "The rest of a datagram has no ports.", path: Slow(), frame: fragment, want: fateLost},
		"DNS":        {reason: "Names resolve.", path: Slow(), frame: frame(etherIPv4, protocolUDP, 40000, 53), want: fateLate},
		"Answer":     {reason: "And their answers return.", path: Slow(), frame: frame(etherIPv4, protocolUDP, 53, 40000), want: fateLate},
		"NodePort":   {reason: "A firewall may let node ports pass.", path: Slow(), frame: frame(etherIPv4, protocolUDP, 41641, 30000), want: fateLate},
		"Pong":       {reason: "Their answers return.", path: Slow(), frame: frame(etherIPv6, protocolUDP, 32767, 41641), want: fateLate},
		"DERP":       {reason: "Relayed traffic is late.", path: Slow(5000), frame: frame(etherIPv4, protocolTCP, 40000, 80), want: fateLate},
		"Registry":   {reason: "Image pulls are not tested.", path: Slow(5000), frame: frame(etherIPv4, protocolTCP, 40000, 5000), want: fateSpared},
		"Layer":      {reason: "Nor are they in the other direction.", path: Slow(5000), frame: frame(etherIPv6, protocolTCP, 5000, 40000), want: fateSpared},
		"Direct":     {reason: "A path that is not relayed carries UDP.", path: Path{}, frame: frame(etherIPv4, protocolUDP, 41641, 41641), want: fateLate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.path.fateOf(tc.frame)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A link is one end, whose frames a test sends and receives.
type link struct{ input, out chan []byte }

func newLink() link { return link{input: make(chan []byte, 1000), out: make(chan []byte, 1000)} }

func (l link) Read(p []byte) (int, error) {
	f, ok := <-l.input
	if !ok {
		return 0, io.EOF
	}
	return copy(p, f), nil
}

func (l link) Write(p []byte) (int, error) {
	l.out <- append([]byte{}, p...)
	return len(p), nil
}

func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newLink(), newLink()
		p := Path{RoundTrip: 150 * time.Millisecond, Relayed: true}
		p.Join(a, b, 1)
		began := time.Now()
		a.input <- frame(etherIPv4, protocolUDP, 1, 2)
		a.input <- frame(etherIPv4, protocolTCP, 1, 2)
		got := <-b.out
		if took := time.Since(began); took != 75*time.Millisecond || got[headerAt+9] != protocolTCP {
			t.Errorf("want the TCP frame alone after half of the round trip, got %x after %s", got, took)
		}
		b.input <- got
		<-a.out
		if took := time.Since(began); took != 150*time.Millisecond {
			t.Errorf("want an answer after the round trip, got it after %s", took)
		}
		close(a.input)
		close(b.input)
	})
}

func TestJoinLoses(t *testing.T) {
	lost := func() int {
		n := 0
		synctest.Test(t, func(*testing.T) {
			a, b := newLink(), newLink()
			p := Path{RoundTrip: time.Second, Loss: 0.1}
			p.Join(a, b, 7)
			for range 500 {
				a.input <- frame(etherIPv4, protocolTCP, 1, 2)
			}
			time.Sleep(2 * time.Second)
			n = 500 - len(b.out)
			close(a.input)
			close(b.input)
		})
		return n
	}
	n := lost()
	if n < 25 || n > 75 {
		t.Errorf("want about a tenth of 500 frames lost, got %d", n)
	}
	if second := lost(); second != n {
		t.Errorf("the same seed loses %d frames, then %d", n, second)
	}
}
