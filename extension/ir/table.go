// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"iter"
	"maps"
)

// A Table is a map of a Snapshot. Snapshots share it until a Draft writes to it: the first
// write of a Draft copies the map.
type Table[K comparable, V any] struct {
	entries map[K]V

	// owner is the token of the Draft that has copied the map and may write to it. A pointer to
	// the Draft would keep its Tables in memory, and through their owners all earlier ones.
	owner *token
}

// newTable returns a Table with entries, which must not be changed afterwards.
func newTable[K comparable, V any](entries map[K]V) Table[K, V] { return Table[K, V]{entries: entries} }

// Get returns the value of a key, or the zero value.
func (t Table[K, V]) Get(k K) V { return t.entries[k] }

// Lookup returns the value of a key, and reports whether the Table has the key.
func (t Table[K, V]) Lookup(k K) (V, bool) {
	v, ok := t.entries[k]
	return v, ok
}

// Len returns the number of keys.
func (t Table[K, V]) Len() int { return len(t.entries) }

// All returns the keys and their values, in no order.
func (t Table[K, V]) All() iter.Seq2[K, V] { return maps.All(t.entries) }

// Values returns the values, in no order.
func (t Table[K, V]) Values() iter.Seq[V] { return maps.Values(t.entries) }

// Set gives a key a value in the Draft.
func (t *Table[K, V]) Set(d *Draft, k K, v V) {
	t.own(d)
	t.entries[k] = v
}

// Delete removes a key in the Draft.
func (t *Table[K, V]) Delete(d *Draft, k K) {
	t.own(d)
	delete(t.entries, k)
}

// Put gives a key a value in the Draft, or removes the key if the value is deleted.
func (t *Table[K, V]) Put(d *Draft, k K, v V, deleted bool) {
	if deleted {
		t.Delete(d, k)
		return
	}
	t.Set(d, k, v)
}

func (t *Table[K, V]) own(d *Draft) {
	if t.owner == d.token {
		return
	}
	t.owner, d.changed = d.token, true
	if t.entries = maps.Clone(t.entries); t.entries == nil {
		t.entries = map[K]V{}
	}
}
