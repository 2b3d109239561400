// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

var (
	addr1 = netip.MustParseAddr("10.96.0.1")
	addr2 = netip.MustParseAddr("10.96.0.2")
)

func TestResolver(t *testing.T) {
	const interval, retry = 30 * time.Second, 5 * time.Second
	type result struct {
		addrs []netip.Addr
		err   error
	}
	boom, missing := result{err: errors.New("boom")}, result{err: &net.DNSError{IsNotFound: true}}
	both := map[string][]netip.Addr{"web": {addr1, addr2}}
	steps := []struct {
		reason  string
		answer  result
		pause   time.Duration
		want    map[string][]netip.Addr
		changes int
	}{
		{reason: "A host that cannot be looked up is not known, which is a result.", answer: boom, want: map[string][]netip.Addr{}, changes: 1},
		{
			reason: "Addresses are sorted and unique.", pause: retry,
			answer: result{addrs: []netip.Addr{addr2, addr1, netip.AddrFrom16(addr1.As16())}},
			want:   both, changes: 2,
		},
		{reason: "The same addresses in another order are no change.", pause: interval, answer: result{addrs: []netip.Addr{addr2, addr1}}, want: both, changes: 2},
		{reason: "A lookup that fails changes nothing.", pause: interval, answer: boom, want: both, changes: 2},
		{reason: "One lookup that does not find the host changes nothing.", pause: retry, answer: missing, want: both, changes: 2},
		{reason: "A host that two lookups in a row do not find has no addresses.", pause: retry, answer: missing, want: map[string][]netip.Addr{"web": nil}, changes: 3},
		{
			reason: "A host without addresses is looked up often.", pause: retry,
			answer: result{addrs: []netip.Addr{addr2}},
			want:   map[string][]netip.Addr{"web": {addr2}}, changes: 4,
		},
		{reason: "An answer without addresses counts as a host that does not exist.", pause: interval, answer: result{}, want: map[string][]netip.Addr{"web": {addr2}}, changes: 4},
		{reason: "It has no addresses after the second one.", pause: retry, answer: result{}, want: map[string][]netip.Addr{"web": nil}, changes: 5},
	}
	synctest.Test(t, func(t *testing.T) {
		lookups, answers := make(chan time.Time), make(chan result)
		changes := 0
		r := New(Options{Lookup: func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			select {
			case lookups <- time.Now():
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			a := <-answers
			return a.addrs, a.err
		}}, func(string) { changes++ })
		ctx, cancel := context.WithCancel(t.Context())
		r.Set(ctx, []string{"web"})
		last := time.Now()
		for _, s := range steps {
			at := <-lookups
			if d := at.Sub(last); d < s.pause || d > s.pause+s.pause/10 {
				t.Errorf("\n%s\nwant a lookup after %s, got one after %s", s.reason, s.pause, d)
			}
			last = at
			answers <- s.answer
			synctest.Wait()
			equal := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
			if diff := cmp.Diff(s.want, r.Addresses(), equal); diff != "" {
				t.Errorf("\n%s\nAddresses(): -want, +got:\n%s", s.reason, diff)
			}
			got, resolved := r.Get("web")
			if want, ok := s.want["web"]; resolved != ok || !cmp.Equal(want, got, equal) {
				t.Errorf("\n%s\nGet(...): want %v, %t, got %v, %t", s.reason, want, ok, got, resolved)
			}
			if changes != s.changes {
				t.Errorf("\n%s\nchanged was called %d times, want %d", s.reason, changes, s.changes)
			}
		}
		r.Set(ctx, nil)
		if n := len(r.Addresses()); n != 0 {
			t.Errorf("Hosts that are no longer set must be forgotten, %d are known", n)
		}
		cancel()
		synctest.Wait()
	})
}
