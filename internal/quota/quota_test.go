// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAllocate(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC) }
	cases := map[string]struct {
		reason   string
		limit    int
		requests []Request
		want     []int
	}{
		"Fits":         {reason: "Within the limit, everything stays.", limit: 5, requests: []Request{{Cost: 2}, {Cost: 3}}, want: []int{2, 3}},
		"ServesFirst":  {reason: "An item that serves stays, whatever newcomers' age, rank and place are.", limit: 2, requests: []Request{{Cost: 1, Created: at(1), Rank: -1}, {Cost: 1, Allocated: 1, Created: at(2)}, {Cost: 1, Allocated: 1, Created: at(3)}}, want: []int{0, 1, 1}},
		"Oldest":       {reason: "Of newcomers, the oldest come first.", limit: 1, requests: []Request{{Cost: 1, Created: at(2)}, {Cost: 1, Created: at(1)}}, want: []int{0, 1}},
		"UID":          {reason: "At the same age, the UID decides.", limit: 1, requests: []Request{{Cost: 1, Created: at(1), UID: "b"}, {Cost: 1, Created: at(1), UID: "a"}}, want: []int{0, 1}},
		"Rank":         {reason: "The rank comes before the age.", limit: 1, requests: []Request{{Cost: 1, Created: at(1), Rank: 2}, {Cost: 1, Created: at(2), Rank: 1}}, want: []int{0, 1}},
		"Growth":       {reason: "An item that grows beyond the limit keeps its part, and removes nothing.", limit: 5, requests: []Request{{Cost: 4, Allocated: 2, Created: at(1)}, {Cost: 3, Allocated: 3, Created: at(2)}}, want: []int{2, 3}},
		"GrowthLast":   {reason: "An old item's growth comes after a newcomer.", limit: 5, requests: []Request{{Cost: 5, Allocated: 2, Created: at(1)}, {Cost: 1, Created: at(9)}}, want: []int{2, 1}},
		"GrowthFits":   {reason: "Growth within the limit is granted.", limit: 5, requests: []Request{{Cost: 4, Allocated: 2}, {Cost: 1, Allocated: 1}}, want: []int{4, 1}},
		"Shrinks":      {reason: "The part that an item no longer needs is free.", limit: 5, requests: []Request{{Cost: 1, Allocated: 5}, {Cost: 4}}, want: []int{1, 4}},
		"LimitShrank":  {reason: "If what serves exceeds the limit, the oldest stays.", limit: 2, requests: []Request{{Cost: 1, Allocated: 1, Created: at(3)}, {Cost: 1, Allocated: 1, Created: at(1)}, {Cost: 1, Allocated: 1, Created: at(2)}}, want: []int{0, 1, 1}},
		"Smaller":      {reason: "A newcomer that does not fit leaves its place to a smaller one.", limit: 3, requests: []Request{{Cost: 4, Created: at(1)}, {Cost: 3, Created: at(2)}}, want: []int{0, 3}},
		"Share":        {reason: "One owner's newcomers leave a quarter to others.", limit: 4, requests: []Request{{Owner: "a", Cost: 1}, {Owner: "a", Cost: 1}, {Owner: "a", Cost: 1}, {Owner: "a", Cost: 1, Created: at(1)}, {Owner: "b", Cost: 1, Created: at(9)}}, want: []int{1, 1, 1, 0, 0}},
		"ShareOther":   {reason: "Another owner gets three quarters of what is left.", limit: 16, requests: []Request{{Owner: "a", Cost: 16, Allocated: 0}, {Owner: "a", Cost: 12}, {Owner: "b", Cost: 4}, {Owner: "b", Cost: 3}}, want: []int{0, 12, 0, 3}},
		"ShareServes":  {reason: "A share removes nothing that serves.", limit: 4, requests: []Request{{Owner: "a", Cost: 4, Allocated: 4}}, want: []int{4}},
		"ShareGrowth":  {reason: "Growth counts for the share.", limit: 4, requests: []Request{{Owner: "a", Cost: 4, Allocated: 1}}, want: []int{1}},
		"NoOwner":      {reason: "The owner of the limit may use all of it.", limit: 4, requests: []Request{{Cost: 4}}, want: []int{4}},
		"ExistingCost": {reason: "Items of others that serve count for the rest.", limit: 8, requests: []Request{{Owner: "a", Cost: 4, Allocated: 4}, {Owner: "b", Cost: 3}, {Owner: "b", Cost: 1}}, want: []int{4, 3, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Allocate(tc.limit, tc.requests)); diff != "" {
				t.Errorf("\n%s\nAllocate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestProperties verifies for random requests that the order of the items decides nothing, that the
// limit holds, that what serves never shrinks for newcomers, and that a second decision changes
// nothing.
func TestProperties(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + r.IntN(60)
		allocated, requests := 0, []Request{}
		for i := range r.IntN(40) {
			c := Request{Owner: strconv.Itoa(r.IntN(4)), Cost: 1 + r.IntN(6), UID: strconv.Itoa(i), Created: time.Unix(int64(r.IntN(5)), 0), Rank: r.IntN(2)}
			if h := r.IntN(6); allocated+h <= limit {
				c.Allocated, allocated = h, allocated+h
			}
			requests = append(requests, c)
		}
		got := Allocate(limit, requests)
		shuffled := r.Perm(len(requests))
		reordered := make([]Request, len(requests))
		for to, from := range shuffled {
			reordered[to] = requests[from]
		}
		other, sum := Allocate(limit, reordered), 0
		for to, from := range shuffled {
			if other[to] != got[from] {
				t.Fatalf("seed %d: request %d gets %d, and %d in another order", seed, from, got[from], other[to])
			}
		}
		repeat := make([]Request, len(requests))
		for i, c := range requests {
			if sum += got[i]; got[i] < min(c.Allocated, c.Cost) {
				t.Fatalf("seed %d: request %d had %d and gets %d", seed, i, c.Allocated, got[i])
			}
			repeat[i] = c
			repeat[i].Allocated = got[i]
		}
		if sum > limit {
			t.Fatalf("seed %d: %d of %d are used", seed, sum, limit)
		}
		for i, part := range Allocate(limit, repeat) {
			if part < got[i] {
				t.Fatalf("seed %d: request %d has %d and gets %d", seed, i, got[i], part)
			}
		}
	}
}

func TestKeep(t *testing.T) {
	got, omitted := Keep(2, []string{"a", "b", "c"}, []string{"c", "gone"})
	if diff := cmp.Diff([]string{"a", "c"}, got); diff != "" || omitted != 1 {
		t.Errorf("Keep(...): %d omitted, -want, +got:\n%s", omitted, diff)
	}
}
