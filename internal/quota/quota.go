// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package quota decides what stays where there is more than a limit allows. It is pure: callers
// that know the same objects decide alike. Every list that is cut at a limit uses it, except lists
// that only people read, which TestCuts names.
//
// Items that serve stay, and are never removed for a newcomer. Newcomers, and then the growth of
// items that serve, get the rest: the oldest first. They leave a quarter of it to other owners, so
// that no namespace alone uses up a limit.
package quota

import (
	"cmp"
	"slices"
	"time"
)

// A newcomer's owner may use shareOfOwner/shareOfAll of what the other owners do not use.
const (
	shareOfOwner = 3
	shareOfAll   = 4
)

// A Request is what an item asks of a limit.
type Request struct {
	// Owner is who shares the limit with others, such as a namespace. An empty owner is the one that
	// the limit belongs to: it may use all that is left.
	Owner string

	// Cost is the item's part of the limit. Allocated is the part that it already has, which is zero for
	// a newcomer. Less than the cost means that the item has grown.
	Cost, Allocated int

	// Rank orders newcomers before their age does. The lowest rank comes first.
	Rank int

	// Created is the item's age. Items without one are the oldest.
	Created time.Time

	// UID orders items of the same age. Its default is the order of the items.
	UID string
}

// compare compares requests by rank, age and UID.
func compare(a, b Request) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// Allocate divides a limit among requests. It returns the part that each gets: its cost, what it held
// before, or zero.
func Allocate(limit int, requests []Request) []int {
	order := make([]int, len(requests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(requests[a], requests[b]) })
	a := allocation{limit: limit, parts: make([]int, len(requests)), owners: map[string]int{}}
	for _, i := range order {
		if r := requests[i]; r.Allocated > 0 && a.used+min(r.Allocated, r.Cost) <= limit {
			a.give(i, r.Owner, min(r.Allocated, r.Cost))
		}
	}
	for _, i := range order {
		if r := requests[i]; r.Allocated == 0 && a.allows(r.Owner, r.Cost) {
			a.give(i, r.Owner, r.Cost)
		}
	}
	for _, i := range order {
		if r := requests[i]; r.Allocated > 0 && a.parts[i] == r.Allocated && a.allows(r.Owner, r.Cost-r.Allocated) {
			a.give(i, r.Owner, r.Cost-r.Allocated)
		}
	}
	return a.parts
}

// An allocation is a limit that is partly used.
type allocation struct {
	limit, used int

	// parts are those of the requests, and owners those of their owners.
	parts  []int
	owners map[string]int
}

// allows reports whether an owner may use more.
func (a *allocation) allows(owner string, more int) bool {
	if a.used+more > a.limit {
		return false
	}
	own := a.owners[owner]
	remaining := a.limit - (a.used - own)
	return owner == "" || more <= 0 || (own+more)*shareOfAll <= remaining*shareOfOwner
}

// give adds to the part of a request.
func (a *allocation) give(i int, owner string, more int) {
	a.parts[i] += more
	a.owners[owner] += more
	a.used += more
}

// Admit returns the items that stay if there may be no more than a limit, in their order, and
// how many do not. An item's cost is one.
func Admit[T any](limit int, items []T, request func(T) Request) (admitted []T, omitted int) {
	requests := make([]Request, len(items))
	for i, item := range items {
		requests[i] = request(item)
		requests[i].Cost, requests[i].Allocated = 1, min(requests[i].Allocated, 1)
	}
	for i, part := range Allocate(limit, requests) {
		if part > 0 {
			admitted = append(admitted, items[i])
		}
	}
	return admitted, len(items) - len(admitted)
}

// Keep admits the items of a list that belongs to one owner: those that were in it before come
// first, and the others in their order.
func Keep[T comparable](limit int, items, previous []T) (admitted []T, omitted int) {
	allocated := make(map[T]int, len(previous))
	for _, item := range previous {
		allocated[item] = 1
	}
	return Admit(limit, items, func(item T) Request { return Request{Allocated: allocated[item]} })
}
