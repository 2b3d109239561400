// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A merge is one run of Merge. Each change replaces its file.
type merge struct {
	file      *file
	owner     string
	adopt     bool
	conflicts []Conflict
}

// section makes the wanted entries the only ones of the owner in a section.
func (m *merge) section(section string, want []wanted) error {
	missing, err := m.settle(section, want)
	if err != nil {
		return err
	}
	for _, w := range missing {
		at, err := m.ensure(section)
		if err != nil {
			return err
		}
		if at == nil {
			m.conflicts = append(m.conflicts, Conflict{Section: section})
			return nil
		}
		text, err := render(w.Value)
		if err != nil {
			return err
		}
		if w.Key != "" {
			text = string(hujson.String(w.Key)) + ": " + text
		}
		s := m.file.insert(at, ownerPrefix+m.owner, func(string, string) string { return text })
		if err := m.apply(s); err != nil {
			return err
		}
	}
	return nil
}

// settle corrects existing entries until all are correct, and returns the entries to add.
func (m *merge) settle(section string, want []wanted) ([]wanted, error) {
	for {
		p := m.plan(section, want)
		if p.change == nil {
			m.conflicts = append(m.conflicts, p.conflicts...)
			return p.missing, nil
		}
		if err := m.apply(*p.change); err != nil {
			return nil, err
		}
	}
}

// A plan lists the changes of a section.
type plan struct {
	change    *splice // To make first; nil if there is none.
	conflicts []Conflict
	missing   []wanted
}

func (m *merge) plan(section string, want []wanted) plan {
	containers, _ := m.file.find(section)
	if shapes[section] == list {
		return m.planList(containers, want)
	}
	return m.planKeyed(section, containers, want)
}

// planList matches entries by their value. Entries of others are not changed.
func (m *merge) planList(containers []*hujson.Value, want []wanted) plan {
	missing := slices.Clone(want)
	match := func(elem item) bool {
		c, err := canonicalOf(*elem.value, list)
		i := slices.IndexFunc(missing, func(w wanted) bool { return err == nil && w.canonical == c })
		if i < 0 {
			return false
		}
		missing = slices.Delete(missing, i, i+1)
		return true
	}
	for _, v := range containers {
		for i, elem := range m.file.items(v) {
			if elem.ownedBy(m.owner) && !match(elem) {
				return plan{change: m.disown(v, i)}
			}
		}
	}
	if !m.adopt {
		return plan{missing: missing}
	}
	for _, v := range containers {
		for _, elem := range m.file.items(v) {
			if len(elem.marks) == 0 && match(elem) {
				return plan{change: m.own(elem)}
			}
		}
	}
	return plan{missing: missing}
}

// planKeyed matches entries by their key, in a set by their value.
func (m *merge) planKeyed(section string, containers []*hujson.Value, want []wanted) plan {
	sh := shapes[section]
	found := map[string]bool{}
	var p plan
	for _, v := range containers {
		for i, elem := range m.file.items(v) {
			c, err := canonicalOf(*elem.value, sh)
			w := slices.IndexFunc(want, func(w wanted) bool {
				return (sh == table && w.Key == elem.key) || (sh == set && w.canonical == c)
			})
			if w < 0 {
				if elem.ownedBy(m.owner) {
					return plan{change: m.disown(v, i)}
				}
				continue
			}
			change, conflict := m.planEntry(v, i, elem, want[w], err == nil && want[w].canonical == c)
			if change != nil {
				return plan{change: change}
			}
			if conflict != nil && !found[want[w].canonical+elem.key] {
				conflict.Section = section
				p.conflicts = append(p.conflicts, *conflict)
			}
			found[want[w].canonical+elem.key] = true
		}
	}
	for _, w := range want {
		if !found[w.canonical+w.Key] {
			p.missing = append(p.missing, w)
		}
	}
	return p
}

// planEntry decides about a wanted entry whose key exists.
func (m *merge) planEntry(v *hujson.Value, i int, elem item, w wanted, equal bool) (*splice, *Conflict) {
	others := elem.ownersBut(m.owner)
	owned := elem.ownedBy(m.owner)
	switch {
	case owned && equal:
		return nil, nil
	case owned && len(others) == 0:
		return m.replace(elem, w), nil
	case owned:
		// Others own the entry, too: it remains theirs.
		return m.disown(v, i), nil
	case equal && (len(others) > 0 || m.adopt):
		return m.own(elem), nil
	case equal:
		return nil, nil
	case len(others) > 0:
		return nil, &Conflict{Key: elem.key, Owner: others[0]}
	case m.adopt:
		return m.own(elem), nil
	}
	return nil, &Conflict{Key: elem.key}
}

// replace replaces the value of an entry.
func (m *merge) replace(elem item, w wanted) *splice {
	text, err := render(w.Value)
	if err != nil {
		// The value has a canonical form, so it is valid JSON.
		return nil
	}
	return &splice{from: elem.value.StartOffset, to: elem.end, text: text}
}

// own marks an entry with the owner.
func (m *merge) own(elem item) *splice {
	f := m.file
	eol := f.eol(elem.start)
	text := "// " + ownerPrefix + m.owner
	if n := len(elem.marks); n > 0 {
		at := elem.marks[n-1].to
		return &splice{from: at, to: at, text: eol + f.indentAt(elem.start) + text}
	}
	if f.ownLine(elem) {
		return &splice{from: elem.start, to: elem.start, text: text + eol + f.indentAt(elem.start)}
	}
	indent := eol + f.indentAt(elem.start) + f.unit()
	return &splice{from: elem.start, to: elem.start, text: indent + text + indent}
}

// disown removes the owner's mark from an entry, and the entry if there is no other owner.
func (m *merge) disown(v *hujson.Value, i int) *splice {
	elem := m.file.items(v)[i]
	if len(elem.ownersBut(m.owner)) == 0 {
		s := m.file.remove(v, i)
		return &s
	}
	for _, k := range elem.marks {
		if k.owner == m.owner {
			return &splice{from: k.from, to: k.to}
		}
	}
	return nil
}

// ensure returns the object or array of a section, and creates it if it does not exist. It
// returns nil if the name has another value.
func (m *merge) ensure(section string) (*hujson.Value, error) {
	outer, name, nested := strings.Cut(section, ".")
	if !nested {
		name = outer
	}
	for {
		found, ok := m.file.find(section)
		if len(found) > 0 {
			return found[0], nil
		}
		if !ok {
			return nil, nil // Nothing is an answer.
		}
		parent, key, brackets := &m.file.root, name, "[]"
		if shapes[section] == table {
			brackets = "{}"
		}
		if nested {
			if outers, _ := m.file.members(parent, outer, '{'); len(outers) > 0 {
				parent = outers[0]
			} else {
				key, brackets = outer, "{}"
			}
		}
		mark := sectionMark
		if m.owner == "" {
			mark = ""
		}
		err := m.apply(m.file.insert(parent, mark, func(indent, eol string) string {
			return string(hujson.String(key)) + ": " + brackets[:1] + eol + indent + brackets[1:]
		}))
		if err != nil {
			return nil, err
		}
	}
}

// removeEmptySections removes sections that this package created and that are empty now, inner
// ones first.
func (m *merge) removeEmptySections() error {
	for {
		s := m.emptySection(&m.file.root)
		if s == nil {
			return nil
		}
		if err := m.apply(*s); err != nil {
			return err
		}
	}
}

func (m *merge) emptySection(v *hujson.Value) *splice {
	for i, elem := range m.file.items(v) {
		if k := elem.value.Value.Kind(); k != '{' && k != '[' {
			continue
		}
		if v == &m.file.root && elem.value.Value.Kind() == '{' {
			if s := m.emptySection(elem.value); s != nil {
				return s
			}
		}
		if elem.isSection() && m.file.blank(elem.value.StartOffset+1, elem.value.EndOffset-1) {
			s := m.file.remove(v, i)
			return &s
		}
	}
	return nil
}

func (m *merge) apply(s splice) error {
	f, err := m.file.splice(s)
	if err != nil {
		return err
	}
	m.file = f
	return nil
}
