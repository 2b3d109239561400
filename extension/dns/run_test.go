// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver"
)

const old = "old.example.com"

var (
	errServer = &net.DNSError{Err: "server misbehaving", Name: old, IsTemporary: true}
	errGone   = &net.DNSError{Err: "no such host", Name: old, IsNotFound: true}
)

// hosts holds the names to look up, and records the addresses that are set.
type hosts struct {
	mu      sync.Mutex
	wanted  map[string][]string
	set     []string
	changed chan struct{}

	// written receives a value after each SetHost, unless it is full.
	written chan struct{}
}

func newHosts(wanted ...string) *hosts {
	return &hosts{wanted: ownedBy("shop", wanted...), changed: make(chan struct{}, 1), written: make(chan struct{}, 1)}
}

// ownedBy returns names that one namespace needs.
func ownedBy(namespace string, names ...string) map[string][]string {
	out := map[string][]string{}
	for _, n := range names {
		out[n] = []string{namespace}
	}
	return out
}

func (h *hosts) Hosts() map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.wanted)
}

func (h *hosts) HostsChanged() <-chan struct{} { return h.changed }

func (h *hosts) SetHost(host string, addresses []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set = append(h.set, strings.Join(append([]string{host}, addresses...), " "))
	select {
	case h.written <- struct{}{}:
	default:
	}
}

func (h *hosts) ForgetHost(host string) { h.SetHost(host, []string{"forgotten"}) }

func (h *hosts) want(wanted ...string) {
	h.mu.Lock()
	h.wanted = ownedBy("shop", wanted...)
	h.mu.Unlock()
	h.changed <- struct{}{}
}

func (h *hosts) said() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.set)
}

// An answer of a fake DNS server. The server repeats its last answer.
type answer struct {
	addresses []string
	err       error
}

// script returns a Lookup that gives the answers in order, and the number of its calls.
func script(answers ...answer) (resolver.Lookup, *int) {
	lookups := new(int)
	return func(context.Context, string, string) ([]netip.Addr, error) {
		a := answers[min(*lookups, len(answers)-1)]
		*lookups++
		var out []netip.Addr
		for _, s := range a.addresses {
			out = append(out, netip.MustParseAddr(s))
		}
		return out, a.err
	}, lookups
}

func TestRun(t *testing.T) {
	cases := map[string]struct {
		reason  string
		local   address.Families
		answers []answer
		elapsed time.Duration
		want    []string
		lookups int
	}{
		"Once": {
			reason:  "The addresses of an answer should be set at once, sorted and without duplicates.",
			answers: []answer{{addresses: []string{"192.0.2.2", "192.0.2.1", "192.0.2.2"}}},
			want:    []string{"old.example.com 192.0.2.1 192.0.2.2"},
			lookups: 1,
		},
		"Same": {
			reason:  "The same addresses should not be set again, even if their order changes.",
			answers: []answer{{addresses: []string{"192.0.2.1", "192.0.2.2"}}, {addresses: []string{"192.0.2.2", "192.0.2.1"}}},
			elapsed: 34 * time.Second,
			want:    []string{"old.example.com 192.0.2.1 192.0.2.2"},
			lookups: 2,
		},
		"Other": {
			reason:  "Different addresses should be set within the interval.",
			answers: []answer{{addresses: []string{"192.0.2.1"}}, {addresses: []string{"192.0.2.2"}}},
			elapsed: 34 * time.Second,
			want:    []string{"old.example.com 192.0.2.1", "old.example.com 192.0.2.2"},
			lookups: 2,
		},
		"BothFamilies": {
			reason:  "IPv4 addresses should be preferred to IPv6 addresses.",
			answers: []answer{{addresses: []string{"2001:db8::1", "::ffff:192.0.2.1"}}},
			want:    []string{"old.example.com 192.0.2.1"},
			lookups: 1,
		},
		"BothFamiliesInBoth": {
			reason:  "IPv4 addresses should be preferred in a dual-stack cluster.",
			local:   address.Families{IPv4: true, IPv6: true},
			answers: []answer{{addresses: []string{"2001:db8::1", "192.0.2.1"}}},
			want:    []string{"old.example.com 192.0.2.1"},
			lookups: 1,
		},
		"BothFamiliesInIPv6": {
			reason:  "Envoys of a cluster without IPv4 should get the addresses that they can reach.",
			local:   address.Families{IPv6: true},
			answers: []answer{{addresses: []string{"2001:db8::1", "192.0.2.1"}}},
			want:    []string{"old.example.com 2001:db8::1"},
			lookups: 1,
		},
		"OnlyIPv4InIPv6": {
			reason:  "A name without IPv6 should keep its addresses: a cluster may translate them.",
			local:   address.Families{IPv6: true},
			answers: []answer{{addresses: []string{"192.0.2.1"}}},
			want:    []string{"old.example.com 192.0.2.1"},
			lookups: 1,
		},
		"OnlyIPv6": {
			reason:  "IPv6 addresses should be used if there are no others.",
			answers: []answer{{addresses: []string{"2001:db8::2", "2001:db8::1"}}},
			want:    []string{"old.example.com 2001:db8::1 2001:db8::2"},
			lookups: 1,
		},
		"Failure": {
			reason:  "The known addresses should stay while no server answers, and another look-up should follow soon.",
			answers: []answer{{addresses: []string{"192.0.2.1"}}, {err: errServer}, {err: errors.New("timeout")}, {addresses: []string{"192.0.2.2"}}},
			elapsed: 45 * time.Second,
			want:    []string{"old.example.com 192.0.2.1", "old.example.com 192.0.2.2"},
			lookups: 4,
		},
		"Gone": {
			reason:  "A name that two look-ups in a row do not find should have no address.",
			answers: []answer{{addresses: []string{"192.0.2.1"}}, {err: errGone}},
			elapsed: 39 * time.Second,
			want:    []string{"old.example.com 192.0.2.1", "old.example.com"},
			lookups: 3,
		},
		"GoneOnce": {
			reason:  "One look-up that does not find the name should not remove its addresses.",
			answers: []answer{{addresses: []string{"192.0.2.1"}}, {err: errGone}, {addresses: []string{"192.0.2.1"}}},
			elapsed: 39 * time.Second,
			want:    []string{"old.example.com 192.0.2.1"},
			lookups: 3,
		},
		"Never": {
			reason:  "A name that does not exist should have no addresses, which is known at once.",
			answers: []answer{{err: errGone}},
			elapsed: 6 * time.Second,
			want:    []string{"old.example.com"},
			lookups: 2,
		},
		"FailsFirst": {
			reason:  "Nobody should wait for a name after the first failure.",
			answers: []answer{{err: errServer}, {addresses: []string{"192.0.2.1"}}},
			elapsed: 6 * time.Second,
			want:    []string{"old.example.com", "old.example.com 192.0.2.1"},
			lookups: 2,
		},
		"Empty": {
			reason:  "An answer without addresses should count as a name that does not exist.",
			answers: []answer{{addresses: []string{"192.0.2.1"}}, {}},
			elapsed: 39 * time.Second,
			want:    []string{"old.example.com 192.0.2.1", "old.example.com"},
			lookups: 3,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHosts(old)
				lookup, lookups := script(tc.answers...)
				run(t, h, tc.local, lookup)
				time.Sleep(tc.elapsed)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, h.said()); diff != "" {
					t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
				}
				if *lookups != tc.lookups {
					t.Errorf("%s\nwant %d look-ups, got %d", tc.reason, tc.lookups, *lookups)
				}
			})
		})
	}
}

// run looks up names until the test ends.
func run(t *testing.T, h Hosts, local address.Families, lookup resolver.Lookup) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Run(ctx, h, local, resolver.Options{Lookup: lookup}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestWanted adds a name, removes it and adds it again.
func TestWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts()
		lookup, lookups := script(answer{addresses: []string{"192.0.2.1"}})
		run(t, h, address.Families{}, lookup)
		h.want(old)
		synctest.Wait()
		h.want()
		synctest.Wait()
		h.want(old)
		synctest.Wait()
		if diff := cmp.Diff([]string{old + " 192.0.2.1", old + " forgotten", old + " 192.0.2.1"}, h.said()); diff != "" {
			t.Errorf("-want, +got\n%s", diff)
		}
		h.want()
		synctest.Wait()
		previous := *lookups
		time.Sleep(time.Hour)
		synctest.Wait()
		if *lookups != previous {
			t.Errorf("a removed name was looked up %d times", *lookups-previous)
		}
	})
}

// TestStops checks that the addresses stay when Run ends: Envoys still use
// them.
func TestStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(old)
		lookup, _ := script(answer{addresses: []string{"192.0.2.1"}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- Run(ctx, h, address.Families{}, resolver.Options{Lookup: lookup}) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{old + " 192.0.2.1"}, h.said()); diff != "" {
			t.Errorf("-want, +got\n%s", diff)
		}
	})
}

// TestLookupSlots lets the lookups of one namespace hang, and names one of its hosts from another
// namespace.
func TestLookupSlots(t *testing.T) {
	const many = 1000
	cases := map[string]struct {
		reason string
		wanted func(hostile map[string][]string)
		host   string
	}{
		"Other": {
			reason: "A host that another namespace names should be looked up each interval.",
			wanted: func(h map[string][]string) { h[old] = []string{"shop"} },
			host:   old,
		},
		"Both": {
			reason: "So should one that both name.",
			wanted: func(h map[string][]string) { h[old] = []string{"hostile", "shop"} },
			host:   old,
		},
		"Later": {
			reason: "So should one that the other namespace names while it waits.",
			wanted: func(h map[string][]string) { h["zz.hang"] = []string{"hostile", "shop"} },
			host:   "zz.hang",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHosts()
				for i := range many {
					h.wanted[fmt.Sprintf("h%d.hang", i)] = []string{"hostile"}
				}
				var mu sync.Mutex
				lookups := map[string]int{}
				run(t, h, address.Families{}, func(ctx context.Context, _, host string) ([]netip.Addr, error) {
					mu.Lock()
					lookups[host]++
					mu.Unlock()
					if host == old {
						return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
					}
					<-ctx.Done()
					return nil, ctx.Err()
				})
				<-time.After(time.Minute)
				h.mu.Lock()
				if tc.host != old {
					h.wanted[tc.host] = []string{"hostile"}
				}
				h.mu.Unlock()
				h.changed <- struct{}{}
				synctest.Wait()
				h.mu.Lock()
				tc.wanted(h.wanted)
				h.mu.Unlock()
				h.changed <- struct{}{}
				<-time.After(100 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				if lookups[tc.host] < 3 {
					t.Errorf("%s It was looked up %d times in 100 seconds.", tc.reason, lookups[tc.host])
				}
			})
		})
	}
}
