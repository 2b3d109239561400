// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

func TestAmong(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	d := destinations{
		netip.MustParseAddrPort("10.96.0.10:8080"): true,
		netip.MustParseAddrPort("[fd00::1]:8080"):  true,
		netip.MustParseAddrPort("127.0.0.1:9443"):  true,
	}
	cases := map[string]struct {
		reason string
		table  string
		want   bool
	}{
		"None":        {reason: "An empty table has no open connection.", table: head},
		"Established": {reason: "A connection to a backend is open.", table: head + "   0: 0C00400A:9C40 0A00600A:1F90 01 00000000:00000000 00:00000000 00000000  1000 0 1\n", want: true},
		"CloseWait":   {reason: "A connection that only the backend has closed may still carry data.", table: head + "   0: 0C00400A:9C40 0A00600A:1F90 08 00000000:00000000 00:00000000 00000000  1000 0 1\n", want: true},
		"TimeWait":    {reason: "A connection in TIME_WAIT is closed.", table: head + "   0: 0C00400A:9C40 0A00600A:1F90 06 00000000:00000000 00:00000000 00000000  1000 0 1\n"},
		"Listen":      {reason: "A listener is no connection.", table: head + "   0: 0C00400A:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 1\n"},
		"OtherPort":   {reason: "A connection to another port does not count.", table: head + "   0: 0C00400A:9C40 0A00600A:1F91 01 00000000:00000000 00:00000000 00000000  1000 0 1\n"},
		"IPv6":        {reason: "An IPv6 address has four words.", table: head + "   0: 00000000000000000000000001000000:9C40 000000FD000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1000 0 1\n", want: true},
		"Mapped":      {reason: "An IPv6 socket can have an IPv4 address.", table: head + "   0: 0000000000000000FFFF00000C00400A:9C40 0000000000000000FFFF00000A00600A:1F90 01 00000000:00000000 00:00000000 00000000  1000 0 1\n", want: true},
		"Garbage":     {reason: "A line that cannot be parsed does not count.", table: "x x zz:1F90 01\nx x 0A:zz 01\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := d.among(strings.NewReader(tc.table)); got != tc.want {
				t.Errorf("\n%s\namong(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// listening returns a listener on loopback, and handlers that forward to it.
func listening(t *testing.T) (net.Listener, map[string]plan.Handlers) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln, map[string]plan.Handlers{"svc:web": {80: {Forward: ln.Addr().String()}}}
}

// TestDrainOpenConnections checks the steps of a drain. A connection of this process stands for
// tailscaled's connection to a backend: both are in the table of the network namespace.
func TestDrainOpenConnections(t *testing.T) {
	ln, handlers := listening(t)
	at := time.Unix(1000, 0)
	type moment struct {
		reason    string
		elapsed   time.Duration
		withdrawn bool
		closed    bool
		ended     bool
	}
	cases := map[string][]moment{
		"Closed": {
			{reason: "Clients have time to move.", elapsed: 19 * time.Second},
			{reason: "The drain waits for a connection that is still open.", elapsed: 21 * time.Second},
			{reason: "The drain ends with the connection.", elapsed: 22 * time.Second, closed: true, ended: true},
		},
		"Cut": {
			{reason: "The drain waits for a connection.", elapsed: 34 * time.Second},
			{reason: "The connection is cut while there is time for a clean stop.", elapsed: 35 * time.Second, ended: true},
		},
		"LateWithdrawal": {
			{reason: "Tailscaled took long to read its config.", elapsed: 8 * time.Second, withdrawn: true},
			{reason: "The clients' time begins when tailscaled has read its config.", elapsed: 27 * time.Second, closed: true},
			{reason: "The drain ends when the clients' time is over.", elapsed: 28 * time.Second, closed: true, ended: true},
		},
		"TooLateWithdrawal": {
			{reason: "Tailscaled took very long to read its config.", elapsed: 34 * time.Second, withdrawn: true},
			{reason: "The drain ends with the grace period.", elapsed: 45 * time.Second, closed: true, ended: true},
		},
	}
	for name, moments := range cases {
		t.Run(name, func(t *testing.T) {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			l, _ := newLoop(t, t.TempDir())
			l.drains.find = func(d *drain, _ map[string]plan.Handlers) { d.destinations = destinationsOf(t.Context(), handlers) }
			l.drains.grace = time.Minute
			l.setSecret(secret())
			l.advertised = []string{"svc:web"}
			l.setTailnet(localapi.State{Session: 1, Running: true, Accepted: map[string]bool{"svc:web": true}})
			l.step(t.Context(), at)
			l.startDrain(at)
			release(l, "svc:web")
			l.step(t.Context(), at)
			for _, m := range moments {
				if m.closed {
					if err := conn.(*net.TCPConn).SetLinger(0); err == nil {
						_ = conn.Close() // The second call finds it closed.
					}
				}
				if m.withdrawn {
					l.drains.current.withdrawn(at.Add(m.elapsed))
				}
				next := l.step(t.Context(), at.Add(m.elapsed))
				if l.drains.current.over() != m.ended {
					t.Fatalf("\n%s\nafter %s: want over %t, got %t", m.reason, m.elapsed, m.ended, l.drains.current.over())
				}
				if !m.ended && !next.After(at.Add(m.elapsed)) {
					t.Errorf("after %s: nothing is due", m.elapsed)
				}
			}
		})
	}
}
