// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

var (
	addr1 = netip.MustParseAddr("10.96.0.1")
	addr2 = netip.MustParseAddr("10.96.0.2")
)

func TestResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Value
		type result struct {
			addrs []netip.Addr
			err   error
		}
		answer.Store(result{err: errors.New("boom")})
		changes := 0
		r := New(func(context.Context, string, string) ([]netip.Addr, error) {
			a := answer.Load().(result)
			return a.addrs, a.err
		}, func() { changes++ })

		steps := []struct {
			reason  string
			answer  result
			wait    time.Duration
			want    map[string][]netip.Addr
			changes int
		}{
			{reason: "A host that cannot be looked up is not known.", answer: result{err: errors.New("boom")}, want: map[string][]netip.Addr{}},
			{
				reason: "Addresses are sorted and unique.", wait: retry,
				answer: result{addrs: []netip.Addr{addr2, addr1, netip.AddrFrom16(addr1.As16())}},
				want:   map[string][]netip.Addr{"web": {addr1, addr2}}, changes: 1,
			},
			{
				reason: "A lookup that fails changes nothing.", wait: interval,
				answer: result{err: errors.New("boom")},
				want:   map[string][]netip.Addr{"web": {addr1, addr2}}, changes: 1,
			},
			{
				reason: "A host that no longer exists has no addresses.", wait: interval,
				answer: result{err: &net.DNSError{IsNotFound: true}},
				want:   map[string][]netip.Addr{"web": nil}, changes: 2,
			},
			{
				reason: "A host without addresses is looked up often.", wait: retry,
				answer: result{addrs: []netip.Addr{addr2}},
				want:   map[string][]netip.Addr{"web": {addr2}}, changes: 3,
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		r.Set(ctx, []string{"web"})
		synctest.Wait()
		for _, s := range steps {
			answer.Store(s.answer)
			time.Sleep(s.wait)
			synctest.Wait()
			if diff := cmp.Diff(s.want, r.Addresses(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("\n%s\nAddresses(): -want, +got:\n%s", s.reason, diff)
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
