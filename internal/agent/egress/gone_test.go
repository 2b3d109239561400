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

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// TestCutGone checks that connections end once their node was gone for a minute without a break.
func TestCutGone(t *testing.T) {
	present := &atomic.Bool{}
	present.Store(true)
	followed := make(chan netip.Addr, 1)
	f := newFixture(t, echo, WithFollower(func(addr netip.Addr) func() bool {
		followed <- addr
		return present.Load
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
		reason  string
		second  int
		present bool
		unknown bool
		next    time.Time
	}{
		{reason: "A node in the netmap needs no further call.", second: 0, present: true},
		{reason: "A node that is gone is due after a minute.", second: 10, next: at(70)},
		{reason: "It is not due earlier.", second: 69, next: at(70)},
		{reason: "A node that is back is not gone.", second: 69, present: true},
		{reason: "The minute begins again.", second: 75, next: at(135)},
		{reason: "While the netmap is not known, no node is gone.", second: 130, unknown: true},
		{reason: "The minute begins when it is known again.", second: 140, next: at(200)},
	}
	for _, s := range steps {
		present.Store(s.present)
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
	if next := f.server.CutGone(at(200)); !next.IsZero() {
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
