// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// insert returns a splice that adds an item to an object or an array: at its end, or at its
// beginning if its last item has no comma. The added text is contiguous, so that its removal
// restores the original text. body returns the item for its indentation.
func (f *file) insert(v *hujson.Value, mark string, body func(indent, eol string) string) splice {
	items := f.items(v)
	closing := v.EndOffset - 1
	at, until := v.StartOffset+1, closing
	if n := len(items); n > 0 {
		if last := items[n-1]; last.comma >= 0 {
			at = last.comma + 1
		} else {
			until = items[0].start
		}
	}
	// Within a line: insert after its comments.
	pos, inline := f.lineEnd(at, until)
	outer := f.indentAt(v.StartOffset)
	indent := outer + f.unit()
	if v == &f.root {
		indent = f.unit()
	}
	for _, it := range items {
		if f.ownLine(it) {
			indent = f.indentAt(it.start)
		}
	}
	eol := f.eol(pos)
	text := eol + indent + "// " + mark + eol + indent + body(indent, eol) + ","
	if inline {
		after := indent
		if until == closing {
			after = outer
		}
		text += " // " + newlinePrefix + strconv.Itoa(len(after)) + eol + after
	}
	return splice{from: pos, to: pos, text: text}
}

// lineEnd returns the end of the line of at, after its comments. It returns at itself, and
// true, if there is no line break before until.
func (f *file) lineEnd(at, until int) (int, bool) {
	for i := at; i < until; i++ {
		switch {
		case f.text[i] == '\n':
			return max(at, f.beforeCR(i)), false
		case f.text[i] != '/':
		case f.text[i+1] == '*':
			i += 2 + bytes.Index(f.text[i+2:until], []byte("*/")) + 1
		case f.isNewlineMark(i, until):
			return at, false
		default:
			// The loop reads the line break next.
			i += bytes.IndexByte(f.text[i:until], '\n') - 1
		}
	}
	return at, true
}

// isNewlineMark reports whether the line comment at i is a newline mark.
func (f *file) isNewlineMark(i, until int) bool {
	_, ok := f.newlineMark(i, until)
	return ok
}

// newlineMark returns the end of the line break that this package added with the comment at i,
// including the added indentation.
func (f *file) newlineMark(i, until int) (int, bool) {
	line, _, ok := bytes.Cut(f.text[i:until], []byte("\n"))
	count, marked := strings.CutPrefix(string(line), "// "+newlinePrefix)
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if !ok || !marked || err != nil {
		return 0, false
	}
	i += len(line) + 1
	for ; n > 0 && i < until && (f.text[i] == ' ' || f.text[i] == '\t'); n-- {
		i++
	}
	return i, true
}

// remove returns a splice that removes item i of an object or array, with its comments from the
// first mark on.
func (f *file) remove(v *hujson.Value, i int) splice {
	items := f.items(v)
	it := items[i]
	s := splice{from: it.marks[0].from, to: it.end}
	if it.comma >= 0 {
		s.to = it.comma + 1
	}
	until := v.EndOffset - 1
	if i+1 < len(items) {
		until = items[i+1].start
	}
	if it.comma >= 0 && (i == 0 || len(items[i-1].marks) == 0) {
		behind := s.to + len(f.text[s.to:until]) - len(bytes.TrimLeft(f.text[s.to:until], " \t"))
		if end, ok := f.newlineMark(behind, until); ok {
			s.to = end
		}
	}
	// Otherwise, the text after the item in its line would become part of a comment.
	for _, c := range f.comments(it.from, it.marks[0].to) {
		if c.line && c.to == s.from && !f.blankLine(s.to) {
			s.from = it.marks[0].to - len(bytes.TrimLeft(f.text[s.from:it.marks[0].to], " \t\r\n"))
		}
	}
	return s
}

// blankLine reports whether there is only white space from i to the line's end.
func (f *file) blankLine(i int) bool {
	line, _, _ := bytes.Cut(f.text[i:], []byte("\n"))
	return len(bytes.TrimSpace(line)) == 0
}
