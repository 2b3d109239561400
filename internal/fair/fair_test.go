// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestShares(t *testing.T) {
	cases := map[string]struct {
		reason string
		size   int
		ask    []string
		want   map[string]int
	}{
		"One": {
			reason: "One owner should get half of the pool.",
			size:   8, ask: []string{"a", "a", "a", "a", "a", "a"},
			want: map[string]int{"a": 4},
		},
		"Others": {
			reason: "Further owners should get half of the rest, and at least one slot.",
			size:   8, ask: []string{"a", "a", "a", "a", "a", "b", "b", "b", "c", "c", "d", "d", "e"},
			want: map[string]int{"a": 4, "b": 2, "c": 1, "d": 1},
		},
		"Single": {
			reason: "The only slot of a pool should serve.",
			size:   1, ask: []string{"a", "a", "b"},
			want: map[string]int{"a": 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewShares(tc.size)
			for _, o := range tc.ask {
				if s.Allows(o) {
					s.Take(o)
				}
			}
			if diff := cmp.Diff(tc.want, s.slots); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for o, n := range tc.want {
				for range n {
					s.Release(o)
				}
			}
			if s.Taken() != 0 || len(s.slots) != 0 {
				t.Errorf("%d slots are taken after all were released: %v", s.Taken(), s.slots)
			}
		})
	}
}

// TestSlots lets an owner ask for more slots than there are, and others after it.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(8)
		ctx, cancel := context.WithCancel(t.Context())
		got, end := make(chan string, 32), make(chan struct{})
		ask := func(as string, owners ...string) {
			go func() {
				release, err := s.Acquire(ctx, owners...)
				if err != nil {
					got <- "gave up " + as
					return
				}
				got <- as
				<-end
				release()
			}()
			synctest.Wait()
		}
		count := func() map[string]int {
			synctest.Wait()
			out := map[string]int{}
			for len(got) > 0 {
				out[<-got]++
			}
			return out
		}
		step := func(reason string, want map[string]int) {
			t.Helper()
			if diff := cmp.Diff(want, count()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", reason, diff)
			}
		}
		for range 10 {
			ask("hostile", "hostile")
		}
		step("One owner should get half of the slots.", map[string]int{"hostile": 4})
		ask("victim", "victim")
		step("Another owner should get a slot at once.", map[string]int{"victim": 1})
		ask("both", "hostile", "victim")
		step("Work of two owners should take the slot of one that has few.", map[string]int{"both": 1})
		ask("third", "third")
		ask("fourth", "fourth")
		ask("fifth", "fifth")
		step("The last slots should serve owners without one.", map[string]int{"third": 1, "fourth": 1})
		end <- struct{}{}
		step("A slot that becomes free should serve the owner with the fewest.", map[string]int{"fifth": 1})
		cancel()
		step("Waiters should give up when their context ends.", map[string]int{"gave up hostile": 6})
		close(end)
		synctest.Wait()
		if s.shares.Taken() != 0 || len(s.waiting) != 0 {
			t.Errorf("%d slots are taken, and %d owners wait after the end", s.shares.Taken(), len(s.waiting))
		}
	})
}
