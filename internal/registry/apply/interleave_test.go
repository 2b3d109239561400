// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

// A tape records choices and replays them.
type tape struct {
	played []int
	more   func(n int) int // Chooses at the end of the tape.

	position int
	choices  []int
	sizes    []int
}

func (t *tape) choose(n int) int {
	c := 0
	if t.position < len(t.played) {
		c = min(t.played[t.position], n-1)
	} else if t.more != nil {
		c = t.more(n)
	}
	t.position++
	t.choices, t.sizes = append(t.choices, c), append(t.sizes, n)
	return c
}

// storm runs random steps of users, faults and clusters, and waits until the clusters are idle;
// then all clusters detach.
func storm(t *tape, n, steps int) *world {
	w := newWorld(n, t.choose, true)
	defer w.close()
	for _, c := range w.clusters {
		c.start()
		if t.choose(2) == 1 {
			w.toggle(c)
		}
	}
	for range steps {
		if w.broken != "" {
			return w
		}
		c := w.clusters[t.choose(n)]
		switch t.choose(40) {
		case 1, 2:
			w.toggle(c)
		case 3:
			w.crash(c)
		case 4, 5:
			w.advance(30 * time.Second)
		case 6, 7, 8:
			w.advance(time.Second)
		case 9:
			w.advance(10 * time.Second)
		case 10, 11:
			if len(w.late) > 0 {
				w.deliver(t.choose(len(w.late)))
			}
		default:
			c.step()
		}
	}
	w.finish()
	return w
}

// finish waits until the clusters are idle, detaches all, and waits again.
func (w *world) finish() {
	w.settle()
	for _, c := range w.clusters {
		if c.persisted.attached {
			w.toggle(c)
		}
	}
	w.settle()
}

func TestModelRandom(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 300
	}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 0))
		n, steps := 2+r.IntN(4), 50+r.IntN(400)
		if seed%500 == 499 {
			n, steps = 20, 4000
		}
		tp := &tape{more: r.IntN}
		if w := storm(tp, n, steps); w.broken != "" {
			report(t, tp.choices, func(tp *tape) *world { return storm(tp, n, steps) }, "seed %d: %d clusters, %d steps", seed, n, steps)
			return
		}
	}
}

// report shrinks a failing run and prints it.
func report(t *testing.T, choices []int, run func(*tape) *world, format string, args ...any) {
	t.Helper()
	fails := func(c []int) bool { return run(&tape{played: c}).broken != "" }
	best := slices.Clone(choices)
	for size := len(best) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(best); i += size {
			try := slices.Clone(best)
			for j := i; j < i+size; j++ {
				try[j] = 0
			}
			if !slices.Equal(try, best) && fails(try) {
				best = try
			}
		}
	}
	w := run(&tape{played: best})
	t.Errorf(format, args...)
	t.Errorf("%s\n%s", w.broken, strings.Join(w.log, "\n"))
}

// TestModelExhaustive runs all orders of the requests of two clusters, from states where races
// matter.
func TestModelExhaustive(t *testing.T) {
	cases := map[string]struct {
		reason  string
		prepare func(w *world)
	}{
		"BothAttach": {
			reason: "Two clusters attach at once.",
			prepare: func(w *world) {
				w.toggle(w.clusters[0])
				w.toggle(w.clusters[1])
			},
		},
		"LastLeavesWhileOneComes": {
			reason: "The last check and deletion of a detaching cluster races with an attachment.",
			prepare: func(w *world) {
				w.attachAlone(w.clusters[0])
				w.toggle(w.clusters[0])
				w.drain(w.clusters[0])
				w.advance(registry.Pause + time.Second)
				w.toggle(w.clusters[1])
			},
		},
		"BothDetach": {
			reason: "Two clusters detach at once.",
			prepare: func(w *world) {
				for _, c := range w.clusters {
					w.attachAlone(c)
				}
				for _, c := range w.clusters {
					w.toggle(c)
				}
			},
		},
		"NewcomerWithOldList": {
			reason: "A cluster that creates the service again uses no list from before its deletion.",
			prepare: func(w *world) {
				a, b := w.clusters[0], w.clusters[1]
				old := w.view()
				w.toggle(a)
				for range 3 {
					a.run()
				}
				delete(w.services, modelService)
				a.cache, b.cache = nil, &old
				w.toggle(b)
			},
		},
		"ServiceIsGone": {
			reason: "The service was deleted while it has two members, which both create it again.",
			prepare: func(w *world) {
				for range 2 {
					for _, c := range w.clusters {
						w.attachAlone(c)
					}
				}
				delete(w.services, modelService)
				for _, c := range w.clusters {
					c.cache = nil
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limit, runs := 20000, 0
			if testing.Short() {
				limit = 500
			}
			run := func(tp *tape) *world {
				w := newWorld(2, tp.choose, false)
				defer w.close()
				for _, c := range w.clusters {
					c.start()
				}
				tc.prepare(w)
				// Only orders are chosen: how the next requests interleave.
				for range 11 {
					w.clusters[tp.choose(2)].step()
				}
				w.finish()
				return w
			}
			for next, ok := []int{}, true; ok && runs < limit; runs++ {
				tp := &tape{played: next}
				if w := run(tp); w.broken != "" {
					report(t, tp.choices, run, "%s: order %v", tc.reason, tp.choices)
					return
				}
				next, ok = successor(tp)
			}
			t.Logf("%d orders", runs)
		})
	}
}

// successor returns the next run in the order of choices, and false after the last one.
func successor(tp *tape) ([]int, bool) {
	for i := len(tp.choices) - 1; i >= 0; i-- {
		if tp.choices[i]+1 < tp.sizes[i] {
			return append(slices.Clone(tp.choices[:i]), tp.choices[i]+1), true
		}
	}
	return nil, false
}

// attachAlone runs one cluster until it is attached and idle.
func (w *world) attachAlone(c *cluster) {
	if !c.persisted.attached {
		w.toggle(c)
	}
	w.drain(c)
}

// drain runs one cluster alone until it writes no more.
func (w *world) drain(c *cluster) {
	for writes := -1; writes != w.writes; {
		writes = w.writes
		c.run()
		w.advance(3 * time.Second)
	}
}
