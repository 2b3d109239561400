// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package fair shares a pool of slots among owners, such as namespaces, so that one owner whose
// work hangs does not stop that of others.
//
// An owner gets a slot only while it holds fewer than are free: alone it gets half of the pool, a
// second one half of the rest, and so on. This is the dynamic threshold of Choudhury and Hahne
// ("Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM Transactions on
// Networking 6(2), 1998) with the factor 1: it needs no number of owners, and keeps slots free for an
// owner that has none.
package fair

// Shares are a pool's slots by owner. They are not safe for concurrent use; Slots are.
type Shares struct {
	size, used int
	slots      map[string]int
}

// NewShares returns a pool of slots.
func NewShares(size int) *Shares { return &Shares{size: size, slots: map[string]int{}} }

// Allows reports whether an owner may take another slot. An owner without slots may while there is
// a free one.
func (s *Shares) Allows(owner string) bool {
	free := s.size - s.used
	return free > 0 && (s.slots[owner] == 0 || s.slots[owner] < free)
}

// Held returns the number of slots of an owner.
func (s *Shares) Held(owner string) int { return s.slots[owner] }

// Taken returns the number of slots of all owners.
func (s *Shares) Taken() int { return s.used }

// Take gives an owner a slot, whether or not Allows.
func (s *Shares) Take(owner string) {
	s.slots[owner]++
	s.used++
}

// Release takes a slot back.
func (s *Shares) Release(owner string) {
	s.used--
	if s.slots[owner]--; s.slots[owner] <= 0 {
		delete(s.slots, owner)
	}
}
