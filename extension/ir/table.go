// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"hash/maphash"
	"iter"
	"maps"
)

// shardCount is the number of maps of a Table. An edit copies a map for each key that it writes, of one
// entry in shardCount, and a slice of this length: with 256, an edit among ten thousand targets copies
// 40 of them and 4 KiB.
const shardCount = 256

// seed is that of the hashes that choose shards.
var seed = maphash.MakeSeed()

// A Table is a map of a Snapshot. Snapshots share its shards until a Draft writes to them: the first write
// of a Draft to a shard copies the shard.
type Table[K comparable, V any] struct {
	// shards are nil while the Table is empty.
	shards *[shardCount]shard[K, V]
	size   int

	// owner is the token of the Draft that has copied the array of shards and may write to it. A pointer
	// to the Draft would keep its Tables in memory, and through their owners all earlier ones.
	owner *token
}

// A shard holds the entries whose keys have the same hash modulo shardCount.
type shard[K comparable, V any] struct {
	entries map[K]V

	// owner is the token of the Draft that has copied the entries.
	owner *token
}

// newTable returns a Table with entries.
func newTable[K comparable, V any](entries map[K]V) Table[K, V] {
	var t Table[K, V]
	d := &Draft{token: &token{}}
	for k, v := range entries {
		t.Set(d, k, v)
	}
	return t
}

// shardOf returns the index of a key's shard.
func shardOf[K comparable](k K) uint64 { return maphash.Comparable(seed, k) % shardCount }

// Get returns the value of a key, or the zero value.
func (t Table[K, V]) Get(k K) V {
	v, _ := t.Lookup(k)
	return v
}

// Lookup returns the value of a key, and reports whether the Table has the key.
func (t Table[K, V]) Lookup(k K) (V, bool) {
	if t.shards == nil {
		var zero V
		return zero, false
	}
	v, ok := t.shards[shardOf(k)].entries[k]
	return v, ok
}

// Len returns the number of keys.
func (t Table[K, V]) Len() int { return t.size }

// All returns the keys and their values, in no order.
func (t Table[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if t.shards == nil {
			return
		}
		for i := range t.shards {
			for k, v := range t.shards[i].entries {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

// Values returns the values, in no order.
func (t Table[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range t.All() {
			if !yield(v) {
				return
			}
		}
	}
}

// Set gives a key a value in the Draft.
func (t *Table[K, V]) Set(d *Draft, k K, v V) {
	entries := t.own(d, k)
	if _, ok := entries[k]; !ok {
		t.size++
	}
	entries[k] = v
}

// Delete removes a key in the Draft.
func (t *Table[K, V]) Delete(d *Draft, k K) {
	if _, ok := t.Lookup(k); !ok {
		return
	}
	delete(t.own(d, k), k)
	if t.size--; t.size == 0 {
		t.shards = nil
	}
}

// Put gives a key a value in the Draft, or removes the key if the value is deleted.
func (t *Table[K, V]) Put(d *Draft, k K, v V, deleted bool) {
	if deleted {
		t.Delete(d, k)
		return
	}
	t.Set(d, k, v)
}

// own returns the entries of a key's shard, which the Draft may change.
func (t *Table[K, V]) own(d *Draft, k K) map[K]V {
	if t.owner != d.token || t.shards == nil {
		t.owner, d.changed = d.token, true
		shards := &[shardCount]shard[K, V]{}
		if t.shards != nil {
			*shards = *t.shards
		}
		t.shards = shards
	}
	s := &t.shards[shardOf(k)]
	if s.owner != d.token {
		s.owner = d.token
		if s.entries = maps.Clone(s.entries); s.entries == nil {
			s.entries = map[K]V{}
		}
	}
	return s.entries
}
