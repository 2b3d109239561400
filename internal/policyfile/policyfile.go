// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package policyfile merges fragments into a tailnet's policy file and takes
// them out again. It works on the text: what others wrote, with comments, order
// and spaces, stays as it is, byte for byte. What it adds carries a comment that
// names its owner. It is pure; where a policy file comes from and goes to is
// not its business.
package policyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Comments that mark what this package wrote. Each has a line of its own, but
// for the last.
const (
	// ownerPrefix and an owner stand before an entry. Several owners may share
	// one entry of a map.
	ownerPrefix = "gateway.tailscale.com/owner="

	// sectionMark stands before a section that was made for entries. It goes
	// with the last of them.
	sectionMark = "gateway.tailscale.com/section"

	// newlinePrefix ends a line where there was no line break before. A number
	// follows: of the spaces at the beginning of the next line that were not
	// there either.
	newlinePrefix = "gateway.tailscale.com/newline="
)

// A shape is how a section holds its entries.
type shape int

const (
	// A list holds values of any kind. Equal ones may stand side by side.
	list shape = iota

	// A set is a list of strings, where one of a kind is enough.
	set

	// A table is an object: its keys are unique.
	table
)

// shapes of the sections that fragments may have, by path. Names in a policy
// file are taken in any case: older files have ACLs and TagOwners.
var shapes = map[string]shape{
	"acls":                   list,
	"autoApprovers.exitNode": set,
	"autoApprovers.routes":   table,
	"autoApprovers.services": table,
	"grants":                 list,
	"groups":                 table,
	"hosts":                  table,
	"nodeAttrs":              list,
	"postures":               table,
	"ssh":                    list,
	"sshTests":               list,
	"tagOwners":              table,
	"tests":                  list,
}

// An Entry is one thing that a fragment wants in the policy file.
type Entry struct {
	// Section is the path of the section, such as grants or
	// autoApprovers.services.
	Section string

	// Key in a section that is an object; else empty.
	Key string

	// Value is JSON.
	Value json.RawMessage
}

// A Conflict is an entry that could not be written because something else has
// its place.
type Conflict struct {
	// Section is the path of the section.
	Section string

	// Key in the section. Empty if the section itself is in the way.
	Key string

	// Owner of what is there; empty if it is nobody that marks entries.
	Owner string
}

// String says what is in the way and whose it is.
func (c Conflict) String() string {
	if c.Key == "" {
		return fmt.Sprintf("%s is of another type than the section should be", c.Section)
	}
	who := "by hand"
	if c.Owner != "" {
		who = "by " + c.Owner
	}
	return fmt.Sprintf("%s %q is set to something else %s", c.Section, c.Key, who)
}

// Options of Merge.
type Options struct {
	// Adopt takes over entries that nobody marked, also those that differ.
	Adopt bool
}

// Merge makes the entries the whole of what owner has in a policy file: it adds
// and corrects what is wanted and removes what is not. It returns the new text,
// and the wanted entries that somebody else's stand in the way of, sorted. An
// entry of an object that others have just like it is shared with them, one that
// nobody marked satisfies as it is.
//
// Merging twice changes nothing the second time. An error means that the text is
// no policy file, or that an entry or the owner is none that can be written.
func Merge(text []byte, owner string, entries []Entry, o Options) ([]byte, []Conflict, error) {
	want, err := sorted(owner, entries)
	if err != nil {
		return nil, nil, err
	}
	f, err := parse(text)
	if err != nil {
		return nil, nil, err
	}
	m := &merge{file: f, owner: owner, adopt: o.Adopt}
	for _, s := range slices.Sorted(maps.Keys(shapes)) {
		if err := m.section(s, want[s]); err != nil {
			return nil, nil, errors.Wrapf(err, "cannot merge section %s", s)
		}
	}
	if err := m.removeEmptySections(); err != nil {
		return nil, nil, err
	}
	return m.file.text, m.conflicts, nil
}

// Owned returns how many entries of a policy file are marked with the owner.
func Owned(text []byte, owner string) (int, error) {
	f, err := parse(text)
	if err != nil {
		return 0, err
	}
	n := 0
	for s := range shapes {
		vs, _ := f.find(s)
		for _, v := range vs {
			for _, it := range f.items(v) {
				if it.ownedBy(owner) {
					n++
				}
			}
		}
	}
	return n, nil
}

// A wanted entry.
type wanted struct {
	Entry

	canonical string // Of the value: equal for equal values.
}

// sorted checks entries and sorts them by section, in the order in which they
// are to be written.
func sorted(owner string, entries []Entry) (map[string][]wanted, error) {
	if owner == "" || strings.ContainsFunc(owner, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return nil, errors.Errorf("owner %q is empty or has spaces", owner)
	}
	out := map[string][]wanted{}
	for _, e := range entries {
		sh, ok := shapes[e.Section]
		if !ok {
			return nil, errors.Errorf("section %q is not one that fragments may have", e.Section)
		}
		c, err := canonical(e.Value, sh)
		if err != nil {
			return nil, errors.Wrapf(err, "entry of section %s is not valid JSON", e.Section)
		}
		if (e.Key != "") != (sh == table) {
			return nil, errors.Errorf("entry of section %s must have a key if the section is an object, and only then", e.Section)
		}
		out[e.Section] = append(out[e.Section], wanted{Entry: e, canonical: c})
	}
	for s, ws := range out {
		switch shapes[s] {
		case table:
			slices.SortStableFunc(ws, func(a, b wanted) int { return strings.Compare(a.Key, b.Key) })
			for i := 1; i < len(ws); i++ {
				if ws[i].Key == ws[i-1].Key {
					return nil, errors.Errorf("%s has the key %q twice", s, ws[i].Key)
				}
			}
		case set:
			slices.SortFunc(ws, func(a, b wanted) int { return strings.Compare(a.canonical, b.canonical) })
			out[s] = slices.CompactFunc(ws, func(a, b wanted) bool { return a.canonical == b.canonical })
		case list:
			// The order of a list is the user's.
		}
	}
	return out, nil
}
