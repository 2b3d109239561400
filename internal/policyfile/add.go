// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Read returns the entries of a section in their order, each as JSON without comments.
func Read(text []byte, section string) ([]Entry, error) {
	if _, ok := shapes[section]; !ok {
		return nil, errors.Errorf("section %q is not one that fragments may have", section)
	}
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	var out []Entry
	containers, _ := f.find(section)
	for _, v := range containers {
		for _, elem := range f.items(v) {
			c, err := canonicalOf(*elem.value, list)
			if err != nil {
				return nil, errors.Wrapf(err, "cannot read section %s", section)
			}
			out = append(out, Entry{Section: section, Key: elem.key, Value: json.RawMessage(c)})
		}
	}
	return out, nil
}

// Has reports whether a policy file has a section, also an empty one.
func Has(text []byte, section string) (bool, error) {
	f, err := parse(text)
	if err != nil {
		return false, err
	}
	containers, ok := f.find(section)
	return len(containers) > 0 || !ok, nil
}

// Add adds entries that nobody owns, as a person would write them: they have no mark, and no later merge
// changes them. An entry that exists is not added again. A list under an existing key gets the elements
// that it lacks; another value there is a conflict, and stays. Nothing is removed.
func Add(text []byte, entries []Entry) ([]byte, []Conflict, error) {
	f, err := parse(text)
	if err != nil {
		return nil, nil, err
	}
	m := &merge{file: f}
	for _, e := range entries {
		sh, ok := shapes[e.Section]
		if !ok || (e.Key != "") != (sh == table) {
			return nil, nil, errors.Errorf("section %q does not have entries with the key %q", e.Section, e.Key)
		}
		if err := m.add(e, sh); err != nil {
			return nil, nil, errors.Wrapf(err, "cannot add to section %s", e.Section)
		}
	}
	return m.file.text, m.conflicts, nil
}

// add adds one entry, or the elements that an existing one lacks.
func (m *merge) add(e Entry, sh shape) error {
	want, err := canonical(e.Value, sh)
	if err != nil {
		return err
	}
	containers, _ := m.file.find(e.Section)
	for _, v := range containers {
		for _, elem := range m.file.items(v) {
			c, err := canonicalOf(*elem.value, sh)
			switch {
			case err == nil && c == want && elem.key == e.Key:
				return nil
			case sh == table && elem.key == e.Key:
				return m.extend(e, elem.value)
			}
		}
	}
	at, err := m.ensure(e.Section)
	if err != nil {
		return err
	}
	if at == nil {
		m.conflicts = append(m.conflicts, Conflict{Section: e.Section})
		return nil
	}
	text, err := render(e.Value)
	if err != nil {
		return err
	}
	if e.Key != "" {
		text = string(hujson.String(e.Key)) + ": " + text
	}
	return m.apply(m.file.insert(at, "", func(string, string) string { return text }))
}

// extend adds to an existing list what it lacks of an entry's.
func (m *merge) extend(e Entry, existing *hujson.Value) error {
	var want []json.RawMessage
	if err := json.Unmarshal(e.Value, &want); err != nil || existing.Value.Kind() != '[' {
		m.conflicts = append(m.conflicts, Conflict{Section: e.Section, Key: e.Key})
		return nil //nolint:nilerr // A value that is no list cannot be added to one.
	}
	var present []string
	for _, elem := range m.file.items(existing) {
		if c, err := canonicalOf(*elem.value, list); err == nil {
			present = append(present, c)
		}
	}
	var lacking []byte
	for _, w := range want {
		text, err := render(w)
		if err != nil {
			return err
		}
		if slices.Contains(present, text) {
			continue
		}
		if len(lacking) > 0 || len(present) > 0 {
			lacking = append(lacking, ", "...)
		}
		lacking, present = append(lacking, text...), append(present, text)
	}
	if len(lacking) == 0 {
		return nil
	}
	items := m.file.items(existing)
	if len(items) == 0 {
		at := existing.StartOffset + 1
		return m.apply(splice{from: at, to: at, text: string(lacking)})
	}
	at := items[len(items)-1].end
	return m.apply(splice{from: at, to: at, text: string(lacking)})
}
