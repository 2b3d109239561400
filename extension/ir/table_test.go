// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTable edits a Table at random and compares each of its versions with a map: those of earlier Drafts must
// not change.
func TestTable(t *testing.T) {
	type version struct {
		table Table[int, int]
		want  map[int]int
	}
	r := rand.New(rand.NewPCG(1, 2))
	versions := []version{{want: map[int]int{}}}
	for range 100 {
		last := versions[len(versions)-1]
		v := version{table: last.table, want: maps.Clone(last.want)}
		d, writes := &Draft{token: &token{}}, len(v.want) > 0 && len(versions)%10 == 0
		for range r.IntN(20) {
			k, deleted := r.IntN(500), r.IntN(3) == 0
			_, exists := v.want[k]
			writes = writes || exists || !deleted
			v.table.Put(d, k, r.IntN(1000), deleted)
			delete(v.want, k)
			if !deleted {
				v.want[k] = v.table.Get(k)
			}
		}
		// Every tenth version is empty.
		if len(versions)%10 == 0 {
			for k := range v.want {
				v.table.Delete(d, k)
			}
			v.want = map[int]int{}
		}
		if d.Changed() != writes {
			t.Errorf("version %d: Changed() is %t, want %t", len(versions), d.Changed(), writes)
		}
		if (v.table.shards == nil) != (len(v.want) == 0) {
			t.Errorf("version %d has %d entries and shards: %t", len(versions), len(v.want), v.table.shards != nil)
		}
		versions = append(versions, v)
	}
	for i, v := range versions {
		if diff := cmp.Diff(v.want, maps.Collect(v.table.All())); diff != "" {
			t.Fatalf("version %d: -want, +got:\n%s", i, diff)
		}
		if v.table.Len() != len(v.want) {
			t.Errorf("version %d: Len() is %d, want %d", i, v.table.Len(), len(v.want))
		}
		for k := range 500 {
			got, ok := v.table.Lookup(k)
			want, exists := v.want[k]
			if got != want || ok != exists {
				t.Errorf("version %d: Lookup(%d) is %d, %t, want %d, %t", i, k, got, ok, want, exists)
			}
		}
	}
}

// TestTableCost checks that an edit copies what a key needs, and not all entries.
func TestTableCost(t *testing.T) {
	entries := map[int]int{}
	for i := range 10_000 {
		entries[i] = i
	}
	table := newTable(entries)
	d := &Draft{token: &token{}}
	table.Set(d, 7, 8)
	copied := 0
	for _, s := range table.shards {
		if s.owner == d.token {
			copied += len(s.entries)
		}
	}
	if copied == 0 || copied > 200 {
		t.Errorf("an edit of one key copies %d of 10000 entries", copied)
	}
}
