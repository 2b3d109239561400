// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// newWaiting returns a fixture that serves a Tailscale Service, whose dials are late after half a second. It returns three
// connections that were dialled; the first one has carried a request and its answer.
func newWaiting(t *testing.T) (f *doubtful, conns [3]net.Conn) {
	t.Helper()
	f = newDoubtfulRoute(t, 500*time.Millisecond, Route{Target: "svc", Addr: addrDB, Service: true})
	for i := range conns {
		conns[i] = f.connect(10000)
	}
	f.carries(conns[0])
	p := f.server.port(10000)
	f.eventually("The target must be dialled for each client.", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		dialled := 0
		for _, c := range p.conns {
			if c.presence != nil {
				dialled++
			}
		}
		return dialled == len(conns)
	})
	return f, conns
}

// isReset fails the test unless a connection is reset.
func isReset(t *testing.T, c net.Conn, reason string) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("\n%s\nRead(...): want a reset, got %v", reason, err)
	}
}

// TestEndWaits checks that clients that wait for a service are reset once it answers no dial, so that they may find
// another host, and that connections over which nobody waits stay.
func TestEndWaits(t *testing.T) {
	f, conns := newWaiting(t)
	requested, late, idle := conns[0], conns[1], conns[2]
	f.mute.Store(true)
	f.hang.Store(true)
	if _, err := io.WriteString(requested, "ping"); err != nil {
		t.Fatal(err)
	}
	dialled := f.connect(10000)
	isReset(t, requested, "A client that has sent a request must be reset.")
	isReset(t, dialled, "A client whose dial gets no answer must be reset.")
	if f.isOpen() {
		t.Error("The port must be closed")
	}
	if _, err := io.WriteString(late, "ping"); err != nil {
		t.Fatal(err)
	}
	isReset(t, late, "A client that sends a request later must be reset, too.")

	f.mute.Store(false)
	f.hang.Store(false)
	f.eventually("The port must open once the service answers.", func() bool { return !f.server.Unanswered(10000) && f.isOpen() })
	f.carries(idle)
}

// watched waits until a service has accepted a dial for a client that waits since a request.
func (f *doubtful) watched(request time.Time) {
	f.t.Helper()
	p := f.server.port(10000)
	f.eventually("The service must be dialled while a client waits.", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.answered.After(request)
	})
	if _, waits, _ := unproven(p, time.Now()); waits {
		f.t.Error("A service that is slow to answer must be dialled once for a request")
	}
}

// TestWatchWaits checks that a client that waits for a service is reset though nobody opens a connection, and that the
// service is dialled once for a request that it is slow to answer.
func TestWatchWaits(t *testing.T) {
	f, conns := newWaiting(t)
	f.mute.Store(true)
	request := time.Now()
	if _, err := io.WriteString(conns[0], "ping"); err != nil {
		t.Fatal(err)
	}
	f.watched(request)
	f.mute.Store(false)
	f.carries(conns[1])

	f.mute.Store(true)
	f.hang.Store(true)
	if _, err := io.WriteString(conns[1], "ping"); err != nil {
		t.Fatal(err)
	}
	isReset(t, conns[1], "A client that waits must be reset, though no other client connects.")
}

// TestEndWaitsUnconfirmed checks that a request continues if the service refuses dials, which a host that is alive does,
// or accepts the dial after a late one.
func TestEndWaitsUnconfirmed(t *testing.T) {
	cases := map[string]struct {
		reason string
		fail   func(t *testing.T, f *doubtful)

		// continues reports whether the target has been dialled again. former is the first address of the port.
		continues func(f *doubtful, former string) bool
	}{
		"Refused": {
			reason: "A host that refuses is alive.",
			fail: func(t *testing.T, f *doubtful) {
				t.Helper()
				f.failures.Store(forever)
				if err := f.knock(10000); err == nil {
					t.Fatal("The target is down")
				}
			},
			continues: func(f *doubtful, _ string) bool { return f.server.Unanswered(10000) && f.dials.Load() > 10 },
		},
		"Answered": {
			reason: "A late dial may have been lost.",
			fail: func(_ *testing.T, f *doubtful) {
				f.slow <- make(chan struct{})
				f.connect(10000)
			},
			continues: func(f *doubtful, former string) bool { return f.address() != former },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, conns := newWaiting(t)
			f.mute.Store(true)
			request := time.Now()
			if _, err := io.WriteString(conns[0], "ping"); err != nil {
				t.Fatal(err)
			}
			f.watched(request)
			former := f.address()
			tc.fail(t, f)
			f.eventually("The target must be dialled again.", func() bool { return tc.continues(f, former) })
			f.mute.Store(false)
			f.failures.Store(0)
			f.carries(conns[0])
		})
	}
}

// TestEndWaitsLater checks that waits end, too, if a host first refuses dials and then vanishes.
func TestEndWaitsLater(t *testing.T) {
	f, conns := newWaiting(t)
	f.mute.Store(true)
	f.failures.Store(forever)
	if _, err := io.WriteString(conns[0], "ping"); err != nil {
		t.Fatal(err)
	}
	if err := f.knock(10000); err == nil {
		t.Fatal("The target is down")
	}
	f.eventually("The port must be closed.", func() bool { return f.server.Unanswered(10000) })
	f.hang.Store(true)
	isReset(t, conns[0], "A client must be reset once the host is silent.")
}

// TestEndWaitsOutside checks that waits end, too, if control takes the address from a host before a late dial is confirmed.
func TestEndWaitsOutside(t *testing.T) {
	f, conns := newWaiting(t)
	f.mute.Store(true)
	f.slow <- make(chan struct{})
	f.connect(10000)
	f.eventually("The dial must wait.", func() bool { return len(f.slow) == 0 })
	f.outside.Store(true)
	if _, err := io.WriteString(conns[0], "ping"); err != nil {
		t.Fatal(err)
	}
	isReset(t, conns[0], "A client must be reset once no node has the address.")
}

// TestCutLeft checks which clients are reset when the netmap has had the address of a service at no node for a while.
func TestCutLeft(t *testing.T) {
	f, conns := newWaiting(t)
	p := f.server.port(10000)
	f.mute.Store(true)
	f.outside.Store(true)
	if _, err := io.WriteString(conns[0], "ping"); err != nil {
		t.Fatal(err)
	}
	f.eventually("The service must be silent for as long as a dial that is late.", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for client := range p.conns {
			if s, err := silenceOf(client); err != nil || !s.lasts(f.server.lateAfter) {
				return false
			}
		}
		return true
	})
	f.presence.Store(int32(localapi.Absent))
	start := time.Now()
	f.server.CutGone(start)
	if n := cutLeft(p, start.Add(leftFor-1)); n > 0 {
		t.Errorf("An address that no node has for a moment must reset no client, got %d", n)
	}
	f.presence.Store(int32(localapi.Present))
	if n := cutLeft(p, start.Add(leftFor)); n > 0 {
		t.Errorf("An address that is back must reset no client, got %d", n)
	}
	f.presence.Store(int32(localapi.Absent))
	f.server.CutGone(start)
	if n := cutLeft(p, start.Add(leftFor)); n != 1 {
		t.Errorf("Only the client that waits must be reset, got %d", n)
	}
	isReset(t, conns[0], "A client that waits must be reset.")
	f.mute.Store(false)
	f.carries(conns[1])
}

// TestSilence checks which clients wait for an answer.
func TestSilence(t *testing.T) {
	cases := map[string]struct {
		reason  string
		silence silence
		want    bool
	}{
		"Request":  {reason: "A request without an answer waits.", silence: silence{client: 2 * time.Second, target: 7 * time.Second, requested: true}, want: true},
		"JustSent": {reason: "A request may take a second: the target may be back.", silence: silence{client: 900 * time.Millisecond, target: 7 * time.Second, requested: true}},
		"Answered": {reason: "Nobody waits if the target has spoken last.", silence: silence{client: 8 * time.Second, target: 7 * time.Second, requested: true}},
		"Unused":   {reason: "A connection without data is idle.", silence: silence{client: 8 * time.Second, target: 8 * time.Second}},
		"SameTick": {reason: "Of an answer and a request at the same time, the request may be the later.", silence: silence{client: 7 * time.Second, target: 7 * time.Second, requested: true}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.silence.waits(time.Second); got != tc.want {
				t.Errorf("%s\nwaits(...): got %t", tc.reason, got)
			}
		})
	}
}
