// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package policyfile merges fragments into a tailnet's policy file and removes them again. It
// edits the text: entries of others, with comments, order and white space, are not changed by a
// single byte. Added entries have a comment that names their owner. The package is pure;
// callers read and write the policy file.
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

// Comments that mark the text that this package wrote. Each begins a line, except the last.
const (
	// ownerPrefix and an owner precede an entry. Several owners may share one entry of a map.
	ownerPrefix = "gateway.tailscale.com/owner="

	// sectionMark precedes a section that this package created. The section is removed with its
	// last entry.
	sectionMark = "gateway.tailscale.com/section"

	// newlinePrefix marks an added line break. It is followed by the number of spaces that were
	// added at the beginning of the next line.
	newlinePrefix = "gateway.tailscale.com/newline="
)

// A shape is the structure of a section's entries.
type shape int

const (
	// A list holds values of any kind, which may be equal.
	list shape = iota

	// A set is a list of unique strings.
	set

	// A table is an object with unique keys.
	table
)

// shapes are the structures of the sections that fragments may have, by path. Names in a policy
// file are case-insensitive: older files have ACLs and TagOwners.
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

// An Entry is one entry of a fragment.
type Entry struct {
	// Section is the path of the section, such as grants or
	// autoApprovers.services.
	Section string

	// Key in a section that is an object. Empty otherwise.
	Key string

	// Value is JSON.
	Value json.RawMessage
}

// A Conflict is an entry that could not be written because of another value.
type Conflict struct {
	// Section is the path of the section.
	Section string

	// Key in the section. Empty if the conflict is with the section itself.
	Key string

	// Owner of the existing entry. Empty if it has none.
	Owner string
}

// String describes the existing value and its owner.
func (c Conflict) String() string {
	if c.Key == "" {
		return fmt.Sprintf("%s is of another type than the section should be", c.Section)
	}
	author := "by hand"
	if c.Owner != "" {
		author = "by " + c.Owner
	}
	return fmt.Sprintf("%s %q is set to something else %s", c.Section, c.Key, author)
}

// Options configure Merge.
type Options struct {
	// Adopt takes over entries without an owner, even if their values differ.
	Adopt bool
}

// Merge makes the entries the only ones of owner in a policy file: it adds, corrects and
// removes entries. It returns the new text, and sorted conflicts with entries of others. An
// equal entry of an object is shared with its owners, and an equal entry without an owner is
// not changed.
//
// A second merge changes nothing. An error means that the text is not a policy file, or that an
// entry or the owner is invalid.
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

// Owned returns the number of entries of a policy file that are marked with the owner.
func Owned(text []byte, owner string) (int, error) {
	f, err := parse(text)
	if err != nil {
		return 0, err
	}
	n := 0
	f.entries(func(elem item) {
		if elem.ownedBy(owner) {
			n++
		}
	})
	return n, nil
}

// Owners returns the number of entries of each owner in a policy file. Anybody who edits the file
// can write any mark.
func Owners(text []byte) (map[string]int, error) {
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	f.entries(func(elem item) {
		for _, owner := range elem.ownersBut("") {
			out[owner]++
		}
	})
	return out, nil
}

// entries calls fn for each entry of the sections that fragments may have.
func (f *file) entries(fn func(item)) {
	for s := range shapes {
		vs, _ := f.find(s)
		for _, v := range vs {
			for _, elem := range f.items(v) {
				fn(elem)
			}
		}
	}
}

// A wanted entry.
type wanted struct {
	Entry

	canonical string // Of the value: equal for equal values.
}

// sorted validates entries and groups them by section, in the order of writing.
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
			// The user defines the order of a list.
		}
	}
	return out, nil
}
