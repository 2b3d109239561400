// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

func healthy(address string, weight, priority int) Backend {
	return Backend{Address: address, Weight: weight, Priority: priority, Health: probe.Healthy}
}

func with(b Backend, h probe.Health) Backend {
	b.Health = h
	return b
}

// connections opens n connections that stay open, and returns their backends in order.
func connections(p *Picker, at time.Time, n int) string {
	var out []string
	for range n {
		backend, _ := p.Choose().Next(at)
		out = append(out, backend.Address)
	}
	return strings.Join(out, "")
}

// requests does n requests one after the other, and returns their backends in order.
func requests(p *Picker, at time.Time, n int) string {
	var out []string
	for range n {
		c := p.Choose()
		backend, _ := c.Next(at)
		out = append(out, backend.Address)
		c.Done()
	}
	return strings.Join(out, "")
}

func TestChoices(t *testing.T) {
	cases := map[string]struct {
		reason           string
		backends         []Backend
		leastConnections bool
		requests         bool
		n                int
		want             string
	}{
		"RoundRobin": {
			reason:   "Backends of equal weight take turns.",
			backends: []Backend{healthy("a", 1, 0), healthy("b", 1, 0), healthy("c", 1, 0)},
			n:        7, want: "abcabca",
		},
		"Weighted": {
			reason:   "Turns are by weight, and spread.",
			backends: []Backend{healthy("a", 3, 0), healthy("b", 1, 0)},
			n:        8, want: "aabaaaba",
		},
		"Spread": {
			reason:   "The sequence is that of nginx for the weights 5, 1 and 1.",
			backends: []Backend{healthy("a", 5, 0), healthy("b", 1, 0), healthy("c", 1, 0)},
			n:        7, want: "aabacaa",
		},
		"Failover": {
			reason:   "The first healthy backend in order receives everything.",
			backends: []Backend{healthy("c", 1, 2), with(healthy("a", 1, 0), probe.Unhealthy), healthy("b", 1, 1)},
			n:        3, want: "bbb",
		},
		"FailoverWeighted": {
			reason:   "Weights count among the backends of one priority.",
			backends: []Backend{with(healthy("a", 1, 0), probe.Unhealthy), healthy("b", 2, 1), healthy("c", 1, 1)},
			n:        6, want: "bcbbcb",
		},
		"Unhealthy": {
			reason:   "An unhealthy backend receives nothing while another one is healthy.",
			backends: []Backend{healthy("a", 1, 0), with(healthy("b", 9, 0), probe.Unhealthy)},
			n:        3, want: "aaa",
		},
		"UnknownLast": {
			reason:   "A backend of unknown health receives nothing while another one is known to be healthy.",
			backends: []Backend{with(healthy("a", 1, 0), probe.Unknown), healthy("b", 1, 1)},
			n:        2, want: "bb",
		},
		"Unknown": {
			reason:   "If nothing is known to be healthy, backends of unknown health come before unhealthy ones.",
			backends: []Backend{with(healthy("a", 1, 0), probe.Unhealthy), with(healthy("b", 1, 1), probe.Unknown)},
			n:        2, want: "bb",
		},
		"AllUnhealthy": {
			reason:   "If all are unhealthy, they are tried as if they were healthy: another one does not answer either.",
			backends: []Backend{with(healthy("a", 1, 0), probe.Unhealthy), with(healthy("b", 1, 0), probe.Unhealthy)},
			n:        4, want: "abab",
		},
		"LeastConnections": {
			reason:           "Connections that stay open are equal in number, however they began.",
			backends:         []Backend{healthy("a", 1, 0), healthy("b", 1, 0), healthy("c", 1, 0)},
			leastConnections: true, n: 6, want: "abcabc",
		},
		"LeastWeighted": {
			reason:           "A backend of double weight has twice the connections.",
			backends:         []Backend{healthy("a", 1, 0), healthy("b", 2, 0)},
			leastConnections: true, n: 6, want: "babbab",
		},
		"LeastTies": {
			reason:           "Requests that do not overlap take turns: otherwise the first backend would receive them all.",
			backends:         []Backend{healthy("a", 1, 0), healthy("b", 1, 0)},
			leastConnections: true, requests: true, n: 4, want: "abab",
		},
		"LeastFailover": {
			reason:           "A backend of the next priority receives nothing, however many connections the first has.",
			backends:         []Backend{healthy("a", 1, 0), healthy("b", 1, 1)},
			leastConnections: true, n: 3, want: "aaa",
		},
		"None": {
			reason: "Without backends there is no choice.",
			n:      2, want: "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(1000, 0)
			p := &Picker{}
			p.Set(Config{Backends: tc.backends, LeastConnections: tc.leastConnections}, at)
			use := connections
			if tc.requests {
				use = requests
			}
			if diff := cmp.Diff(tc.want, use(p, at, tc.n)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLeast opens connections of different lengths.
func TestLeast(t *testing.T) {
	at := time.Unix(1000, 0)
	p := &Picker{}
	p.Set(Config{Backends: []Backend{healthy("a", 1, 0), healthy("b", 1, 0)}, LeastConnections: true}, at)
	var open []*Choice
	for range 4 {
		c := p.Choose()
		if backend, ok := c.Next(at); !ok || backend.Address == "" {
			t.Fatal("there is no backend")
		}
		open = append(open, c)
	}
	// The first and third are of a.
	open[0].Done()
	open[2].Done()
	open[2].Done()
	if diff := cmp.Diff(map[string]int{"a": 0, "b": 2}, p.Open()); diff != "" {
		t.Errorf("Open(): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("aa", connections(p, at, 2)); diff != "" {
		t.Errorf("A backend with fewer connections receives the next ones. -want, +got:\n%s", diff)
	}
}

// TestNext tries all backends for one connection.
func TestNext(t *testing.T) {
	at := time.Unix(1000, 0)
	p := &Picker{}
	backends := []Backend{with(healthy("d", 1, 0), probe.Unhealthy), with(healthy("c", 1, 1), probe.Unknown), healthy("b", 1, 2), healthy("a", 1, 1)}
	p.Set(Config{Backends: backends}, at)
	c := p.Choose()
	var got []string
	for {
		backend, ok := c.Next(at)
		if !ok {
			break
		}
		got = append(got, backend.Address)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, got); diff != "" {
		t.Errorf("Each is tried once, the best first. -want, +got:\n%s", diff)
	}
	c.Done()
	if diff := cmp.Diff(map[string]int{"a": 0, "b": 0, "c": 0, "d": 0}, p.Open()); diff != "" {
		t.Errorf("A failed attempt is no connection. -want, +got:\n%s", diff)
	}
}

// TestAvoid verifies that a backend to which a connection has failed is avoided for a moment.
func TestAvoid(t *testing.T) {
	at := time.Unix(1000, 0)
	p := &Picker{}
	p.Set(Config{Backends: []Backend{healthy("a", 1, 0), healthy("b", 1, 1)}}, at)
	c := p.Choose()
	for _, want := range []string{"a", "b"} {
		if backend, _ := c.Next(at); backend.Address != want {
			t.Fatalf("want %s, got %s", want, backend.Address)
		}
	}
	c.Done()
	if got := requests(p, at.Add(avoidance-1), 1); got != "b" {
		t.Errorf("want b while a is avoided, got %s", got)
	}
	if got := requests(p, at.Add(avoidance), 1); got != "a" {
		t.Errorf("want a again, got %s", got)
	}
}

// TestFailback follows the health of a primary.
func TestFailback(t *testing.T) {
	start := time.Unix(1000, 0)
	primary, secondary := healthy("a", 1, 0), healthy("b", 1, 1)
	primary.FailbackDelay = time.Minute
	p := &Picker{}
	steps := []struct {
		reason  string
		elapsed time.Duration
		a, b    probe.Health
		want    string
	}{
		{reason: "A primary that was never unhealthy receives everything at once.", a: probe.Healthy, b: probe.Healthy, want: "a"},
		{reason: "The secondary takes over.", elapsed: time.Second, a: probe.Unhealthy, b: probe.Healthy, want: "b"},
		{reason: "The primary has just returned.", elapsed: time.Minute, a: probe.Healthy, b: probe.Healthy, want: "b"},
		{reason: "Nothing else changes.", elapsed: 119 * time.Second, a: probe.Healthy, b: probe.Healthy, want: "b"},
		{reason: "A healthy primary is better than an unhealthy secondary.", elapsed: 119 * time.Second, a: probe.Healthy, b: probe.Unhealthy, want: "a"},
		{reason: "Its delay is over.", elapsed: 2 * time.Minute, a: probe.Healthy, b: probe.Healthy, want: "a"},
		{reason: "It fails again.", elapsed: 3 * time.Minute, a: probe.Unhealthy, b: probe.Healthy, want: "b"},
		{reason: "Unknown health is no return.", elapsed: 4 * time.Minute, a: probe.Unknown, b: probe.Healthy, want: "b"},
		{reason: "The delay begins with the return.", elapsed: 5 * time.Minute, a: probe.Healthy, b: probe.Healthy, want: "b"},
		{reason: "And ends.", elapsed: 6 * time.Minute, a: probe.Healthy, b: probe.Healthy, want: "a"},
	}
	for _, s := range steps {
		at := start.Add(s.elapsed)
		p.Set(Config{Backends: []Backend{with(primary, s.a), with(secondary, s.b)}}, at)
		if got := requests(p, at, 1); got != s.want {
			t.Errorf("%s\nafter %s: want %s, got %s", s.reason, s.elapsed, s.want, got)
		}
	}
}

// TestSet verifies that backends keep what is known of them.
func TestSet(t *testing.T) {
	at := time.Unix(1000, 0)
	p := &Picker{}
	p.Set(Config{Backends: []Backend{healthy("a", 1, 0), healthy("a", 1, 0), healthy("b", 1, 0)}, LeastConnections: true}, at)
	if got := connections(p, at, 3); got != "aab" {
		t.Fatalf("want aab, got %s", got)
	}
	p.Set(Config{Backends: []Backend{healthy("c", 1, 0), healthy("b", 1, 0), healthy("a", 1, 0)}, LeastConnections: true}, at)
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 0}, p.Open()); diff != "" {
		t.Errorf("Open(): -want, +got:\n%s", diff)
	}
	if got := connections(p, at, 1); got != "c" {
		t.Errorf("want the new backend, which has no connection, got %s", got)
	}
}

func TestEqual(t *testing.T) {
	c := Config{Backends: []Backend{healthy("a", 1, 0)}}
	cases := map[string]struct {
		reason string
		o      Config
		want   bool
	}{
		"Health": {reason: "Health does not count.", o: Config{Backends: []Backend{with(healthy("a", 1, 0), probe.Unhealthy)}}, want: true},
		"Weight": {reason: "A weight does.", o: Config{Backends: []Backend{healthy("a", 2, 0)}}},
		"Number": {reason: "So does the number of backends.", o: Config{}},
		"Least":  {reason: "So does the strategy.", o: Config{Backends: c.Backends, LeastConnections: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.Equal(tc.o); got != tc.want {
				t.Errorf("%s\nEqual(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestConcurrency has connections begin and end while backends and their health change. Run it with
// the race detector.
func TestConcurrency(t *testing.T) {
	at := time.Unix(1000, 0)
	p := &Picker{}
	p.Set(Config{Backends: []Backend{healthy("a", 1, 0), healthy("b", 2, 0), healthy("c", 1, 1)}, LeastConnections: true}, at)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 500 {
				c := p.Choose()
				if _, ok := c.Next(at); !ok {
					t.Error("there is always a backend to try first")
				}
				if i%2 == 0 {
					// The second attempt may find that only one backend is left.
					c.Next(at)
				}
				c.Done()
			}
		})
	}
	wg.Go(func() {
		for i := range 500 {
			h := []probe.Health{probe.Healthy, probe.Unhealthy, probe.Unknown}[i%3]
			p.Set(Config{Backends: []Backend{with(healthy("a", 1, 0), h), healthy("b", 2, 0), healthy("c", 1, 1)}, LeastConnections: i%2 == 0}, at)
		}
	})
	wg.Wait()
	if diff := cmp.Diff(map[string]int{"a": 0, "b": 0, "c": 0}, p.Open()); diff != "" {
		t.Errorf("Open(): -want, +got:\n%s", diff)
	}
}

// TestReweighted checks that a change of weights has its effect at once.
func TestReweighted(t *testing.T) {
	at := time.Unix(1000, 0)
	p := &Picker{}
	picks := func(n int) string {
		var out strings.Builder
		for range n {
			c := p.Choose()
			address, _ := c.Next(at)
			c.Done()
			out.WriteString(address.Address)
		}
		return out.String()
	}
	p.Set(Config{Backends: []Backend{healthy("a", 1000, 0), healthy("b", 1, 0)}}, at)
	picks(400)
	p.Set(Config{Backends: []Backend{healthy("a", 1, 0), healthy("b", 1, 0)}}, at)
	if diff := cmp.Diff("abababab", picks(8)); diff != "" {
		t.Errorf("Backends of equal weight take turns: -want, +got:\n%s", diff)
	}
}
