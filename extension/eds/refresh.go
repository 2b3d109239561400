// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"maps"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// applied is the number of unchanged lists that are updated while the lock is held once.
	applied = 256

	// built is the number of changed lists that are updated while the lock is held once.
	built = 64

	// turn is the time after which lists are updated to a newer snapshot, if there is one, before the
	// others are updated to the current one.
	turn = 20 * time.Millisecond
)

// refresh updates the subscribed lists that have changed. It returns the number of changed lists, and of
// streams that get them. Only one goroutine may call it at a time.
func (s *Server) refresh() (lists, streams int) {
	for done := false; !done; {
		var l, st int
		l, st, done = s.update()
		lists, streams = lists+l, streams+st
	}
	return lists, streams
}

// due returns the entries to compare with the newest snapshot: those whose lists are announced, and the
// tuned ones if policies have other tunings.
func (s *Server) due() ([]*entry, *ir.Snapshot) {
	s.mu.Lock()
	all, announced, retuned := s.all, s.announced, s.retuned
	s.all, s.announced, s.retuned = false, map[string]struct{}{}, false
	// The snapshot is not older than that of any of the entries. Those that are added from here on are
	// made of it, or of one that is announced afterwards.
	snap := s.snapshot()
	due := map[*entry]struct{}{}
	for l := range announced {
		maps.Copy(due, s.byList[l])
	}
	if retuned {
		maps.Copy(due, s.tuned)
	}
	out := slices.Collect(maps.Keys(due))
	if all {
		out = slices.Collect(maps.Values(s.entries))
	}
	s.mu.Unlock()
	return out, snap
}

// update updates the lists to the newest snapshot. It holds the lock only to apply what it has built,
// and the owners of lists take turns, so that no tenant's lists delay those of others. It returns false
// if there is a newer snapshot before all lists are updated.
func (s *Server) update() (lists, streams int, done bool) {
	entries, snap := s.due()
	began := time.Now()
	var fresh []update
	stale := map[string][]update{}
	for _, e := range entries {
		u := e.compare(snap)
		if u.stale {
			stale[e.owner] = append(stale[e.owner], u)
			continue
		}
		fresh = append(fresh, u)
	}
	for part := range slices.Chunk(fresh, applied) {
		s.mu.Lock()
		for _, u := range part {
			s.apply(u)
		}
		s.mu.Unlock()
	}
	for rest := inTurns(stale); len(rest) > 0; {
		if time.Since(began) > turn && s.snapshot() != snap {
			s.mu.Lock()
			for _, u := range rest {
				s.announced[u.entry.canonical] = struct{}{}
			}
			s.mu.Unlock()
			return lists, streams, false
		}
		var ready []update
		ready, rest = s.buildSome(rest)
		s.mu.Lock()
		for _, u := range ready {
			if s.apply(u) {
				lists++
				streams += len(u.entry.streams)
				s.publish(u.entry)
			}
		}
		s.mu.Unlock()
	}
	return lists, streams, true
}

// buildSome builds the first updates, as many as a turn has time for: streams get them in one response
// if possible. It returns those that are ready, and the rest.
func (s *Server) buildSome(updates []update) (ready, rest []update) {
	began, rest := time.Now(), updates
	for len(rest) > 0 && len(ready) < built && time.Since(began) <= turn {
		u := rest[0]
		rest = rest[1:]
		if err := u.build(); err != nil {
			s.opts.Log.Info("Cannot serve endpoints", "xds-cluster", u.entry.list, "error", err)
			continue
		}
		ready = append(ready, u)
	}
	return ready, rest
}

// apply applies an update, and reports whether streams must get it. The caller holds the lock.
func (s *Server) apply(u update) bool {
	if s.entries[u.entry.name] != u.entry {
		// The last subscription ended meanwhile.
		return false
	}
	changed := u.apply()
	s.usage.charge(u.entry)
	return changed
}

// inTurns returns the updates of all owners: the first of each owner, then the second of each, and so
// on.
func inTurns(byOwner map[string][]update) []update {
	var out []update
	for i := 0; len(byOwner) > 0; i++ {
		for owner, us := range byOwner {
			if i == len(us) {
				delete(byOwner, owner)
				continue
			}
			out = append(out, us[i])
		}
	}
	return out
}
