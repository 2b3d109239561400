// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// TestCutGone checks that connections end once their node was gone for a minute, or another node had the address
// for a second, without a break.
func TestCutGone(t *testing.T) {
	presence := &atomic.Int32{}
	followed := make(chan netip.Addr, 1)
	f := newFixture(t, echo, WithFollower(func(addr netip.Addr) func() localapi.Presence {
		followed <- addr
		return func() localapi.Presence { return localapi.Presence(presence.Load()) }
	}, time.Minute))
	if errs := f.server.Set(t.Context(), map[uint16]Route{1: {Target: "db", Addr: addrDB}}); len(errs) > 0 {
		t.Fatal(errs)
	}
	c := f.connect(1)
	if got := <-followed; got != addrDB.Addr() {
		t.Fatalf("want the node of %s followed, got %s", addrDB.Addr(), got)
	}

	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	steps := []struct {
		reason   string
		second   int
		presence localapi.Presence
		unknown  bool
		next     time.Time
	}{
		{reason: "A node in the netmap needs no further call.", second: 0, presence: localapi.Present},
		{reason: "A node that is gone is due after a minute.", second: 10, presence: localapi.Absent, next: at(70)},
		{reason: "It is not due earlier.", second: 69, presence: localapi.Absent, next: at(70)},
		{reason: "A node that is back is not gone.", second: 69, presence: localapi.Present},
		{reason: "The minute begins again.", second: 75, presence: localapi.Absent, next: at(135)},
		{reason: "While the netmap is not known, no node is gone.", second: 130, unknown: true},
		{reason: "The minute begins when it is known again.", second: 140, presence: localapi.Absent, next: at(200)},
		{reason: "An address that moves back at once keeps its connections.", second: 150, presence: localapi.Present},
		{reason: "An address that no node has is due after a minute.", second: 155, presence: localapi.Absent, next: at(215)},
		{reason: "Once another node has the address, a second is enough.", second: 160, presence: localapi.Moved, next: at(161)},
	}
	for _, s := range steps {
		presence.Store(int32(s.presence))
		if s.unknown {
			f.server.ForgetGone()
			continue
		}
		// The connection is followed in a separate goroutine.
		f.eventually(s.reason, func() bool { return f.server.CutGone(at(s.second)).Equal(s.next) })
		if err := echoed(c); err != nil {
			t.Fatalf("\n%s\nThe connection was cut at %d s: %v", s.reason, s.second, err)
		}
	}
	if next := f.server.CutGone(at(161)); !next.IsZero() {
		t.Errorf("want no further call after the last connection was cut, got %s", next.Sub(start))
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("want the connection to be reset, got %v", err)
	}
	f.eventually("the port still has the connection", func() bool { return f.server.Idle(1) })
}

// echoed returns an error unless a byte comes back.
func echoed(c net.Conn) error {
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 1))
	return err
}
