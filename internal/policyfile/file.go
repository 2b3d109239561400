// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A file is the text of a policy file with its syntax tree.
type file struct {
	text []byte
	root hujson.Value
}

func parse(text []byte) (*file, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse policy file")
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, errors.New("cannot parse policy file: it is not an object")
	}
	return &file{text: text, root: root}, nil
}

// An item is a member of an object or an element of an array.
type item struct {
	key   string // Of a member.
	from  int    // Where what is before it begins: behind the last comma or bracket.
	start int    // Where its name, or the element, begins.
	end   int    // Where its value ends.
	comma int    // Where the comma behind it is, or -1.
	value *hujson.Value
	marks []mark
}

// A mark is a comment of this package before an item.
type mark struct {
	owner   string // Empty for a section's.
	section bool

	// from is the offset of the line break before the comment, or of the comment itself if it
	// does not begin a line; to is the end of the comment.
	from, to int
}

func (elem item) ownedBy(owner string) bool {
	return slices.ContainsFunc(elem.marks, func(m mark) bool { return m.owner == owner && !m.section })
}

// ownersBut returns the other owners of an item, sorted.
func (elem item) ownersBut(owner string) []string {
	var out []string
	for _, m := range elem.marks {
		if !m.section && m.owner != owner {
			out = append(out, m.owner)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (elem item) isSection() bool {
	return slices.ContainsFunc(elem.marks, func(m mark) bool { return m.section })
}

// find returns the objects or arrays of a section, by its path. There may be several, because
// names are case-insensitive. It returns false if a value has another type than the section.
func (f *file) find(section string) ([]*hujson.Value, bool) {
	kind := hujson.Kind('[')
	if shapes[section] == table {
		kind = '{'
	}
	parent, name := &f.root, section
	if outer, inner, nested := strings.Cut(section, "."); nested {
		parents, ok := f.members(parent, outer, '{')
		if len(parents) == 0 {
			return nil, ok
		}
		parent, name = parents[0], inner
	}
	return f.members(parent, name, kind)
}

// members returns the values of a kind that an object has under a name, and false if it has a
// value of another kind.
func (f *file) members(parent *hujson.Value, name string, kind hujson.Kind) ([]*hujson.Value, bool) {
	var out []*hujson.Value
	ok := true
	for _, elem := range f.items(parent) {
		switch {
		case !strings.EqualFold(elem.key, name):
		case elem.value.Value.Kind() != kind:
			ok = false
		default:
			out = append(out, elem.value)
		}
	}
	return out, ok
}

// items returns the items of an object or an array, in order.
func (f *file) items(v *hujson.Value) []item {
	var out []item
	add := func(key string, first, last *hujson.Value) {
		elem := item{
			key: key, from: first.StartOffset - len(first.BeforeExtra), start: first.StartOffset,
			end: last.EndOffset, comma: -1, value: last,
		}
		if c := last.EndOffset + len(last.AfterExtra); f.text[c] == ',' {
			elem.comma = c
		}
		elem.marks = f.marks(elem.from, elem.start)
		out = append(out, elem)
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			m := &c.Members[i]
			lit, _ := m.Name.Value.(hujson.Literal)
			add(lit.String(), &m.Name, &m.Value)
		}
	case *hujson.Array:
		for i := range c.Elements {
			add("", &c.Elements[i], &c.Elements[i])
		}
	}
	return out
}

// A comment in the text, without the line break after it.
type comment struct {
	from, to int
	line     bool // Not a block.
}

// comments returns the comments between two offsets with only comments and spaces between them.
func (f *file) comments(from, to int) []comment {
	var out []comment
	for i := from; i < to; i++ {
		if f.text[i] != '/' {
			continue
		}
		if f.text[i+1] == '*' {
			end := i + 2 + bytes.Index(f.text[i+2:to], []byte("*/")) + 2
			out = append(out, comment{from: i, to: end})
			i = end - 1
			continue
		}
		// A line comment ends with a line break, because it is within brackets.
		end := i + bytes.IndexByte(f.text[i:], '\n')
		out = append(out, comment{from: i, to: f.beforeCR(end), line: true})
		i = end
	}
	return out
}

// beforeCR returns the end of the line whose line feed is at i.
func (f *file) beforeCR(i int) int {
	if i > 0 && f.text[i-1] == '\r' {
		return i - 1
	}
	return i
}

// marks returns the marks between two offsets.
func (f *file) marks(from, to int) []mark {
	var out []mark
	for _, c := range f.comments(from, to) {
		if !c.line {
			continue
		}
		text := strings.TrimSpace(string(f.text[c.from+len("//") : c.to]))
		owner, owned := strings.CutPrefix(text, ownerPrefix)
		if !owned && text != sectionMark {
			continue
		}
		m := mark{section: !owned, from: c.from, to: c.to}
		if owned {
			m.owner = owner
		}
		if i := f.lineStart(c.from); i > from && f.blank(i, c.from) {
			m.from = f.beforeCR(i - 1)
		}
		out = append(out, m)
	}
	return out
}

// lineStart returns the beginning of the line of i.
func (f *file) lineStart(i int) int { return bytes.LastIndexByte(f.text[:i], '\n') + 1 }

// blank reports whether there is only white space between two offsets.
func (f *file) blank(from, to int) bool { return len(bytes.TrimSpace(f.text[from:to])) == 0 }

// indentAt returns the indentation of the line of i.
func (f *file) indentAt(i int) string {
	line := f.text[f.lineStart(i):i]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// eol returns the line break to write at an offset, in the style of the file. A line break
// after a lone carriage return must not merge with it.
func (f *file) eol(i int) string {
	if bytes.Contains(f.text, []byte("\r\n")) || (i > 0 && f.text[i-1] == '\r') {
		return "\r\n"
	}
	return "\n"
}

// unit returns the unit of indentation: that of the first member that begins a line.
func (f *file) unit() string {
	for _, elem := range f.items(&f.root) {
		if indent := f.indentAt(elem.start); indent != "" && f.ownLine(elem) {
			return indent
		}
	}
	return "\t"
}

// ownLine reports whether an item begins a line.
func (f *file) ownLine(elem item) bool {
	s := f.lineStart(elem.start)
	return s > elem.from && f.blank(s, elem.start)
}

// A splice replaces a part of the text.
type splice struct {
	from, to int
	text     string
}

// splice returns the file with one part replaced.
func (f *file) splice(s splice) (*file, error) {
	text := slices.Concat(f.text[:s.from], []byte(s.text), f.text[s.to:])
	g, err := parse(text)
	return g, errors.Wrap(err, "a change would break the policy file")
}
