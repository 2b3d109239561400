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
// restores the original text. Without a mark the item belongs to nobody, and nothing marks what was
// added. body returns the item for its indentation.
func (f *file) insert(v *hujson.Value, mark string, body func(indent, eol string) string) splice {
	items := f.items(v)
	closing := v.EndOffset - 1
	at, limit := v.StartOffset+1, closing
	if n := len(items); n > 0 {
		if last := items[n-1]; last.comma >= 0 {
			at = last.comma + 1
		} else {
			limit = items[0].start
		}
	}
	// Within a line: insert after its comments.
	pos, inline := f.lineEnd(at, limit)
	outer := f.indentAt(v.StartOffset)
	indent := outer + f.unit()
	if v == &f.root {
		indent = f.unit()
	}
	for _, elem := range items {
		if f.ownLine(elem) {
			indent = f.indentAt(elem.start)
		}
	}
	eol := f.eol(pos)
	text := eol + indent + body(indent, eol) + ","
	if mark != "" {
		text = eol + indent + "// " + mark + text
	}
	switch {
	case inline && mark == "" && limit == closing:
		text += eol + outer
	case inline && mark == "":
		text += eol + indent
	case inline:
		trailing := indent
		if limit == closing {
			trailing = outer
		}
		text += " // " + newlinePrefix + strconv.Itoa(len(trailing)) + eol + trailing
	}
	return splice{from: pos, to: pos, text: text}
}

// lineEnd returns the end of the line of pos, after its comments. It returns pos itself, and
// true, if there is no line break before limit.
func (f *file) lineEnd(pos, limit int) (int, bool) {
	for i := pos; i < limit; i++ {
		switch {
		case f.text[i] == '\n':
			return max(pos, f.beforeCR(i)), false
		case f.text[i] != '/':
		case f.text[i+1] == '*':
			i += 2 + bytes.Index(f.text[i+2:limit], []byte("*/")) + 1
		case f.isNewlineMark(i, limit):
			return pos, false
		default:
			// The loop reads the line break next.
			i += bytes.IndexByte(f.text[i:limit], '\n') - 1
		}
	}
	return pos, true
}

// isNewlineMark reports whether the line comment at i is a newline mark.
func (f *file) isNewlineMark(i, limit int) bool {
	_, ok := f.newlineMark(i, limit)
	return ok
}

// newlineMark returns the end of the line break that this package added with the comment at i,
// including the added indentation.
func (f *file) newlineMark(i, limit int) (int, bool) {
	line, _, ok := bytes.Cut(f.text[i:limit], []byte("\n"))
	count, marked := strings.CutPrefix(string(line), "// "+newlinePrefix)
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if !ok || !marked || err != nil {
		return 0, false
	}
	i += len(line) + 1
	for ; n > 0 && i < limit && (f.text[i] == ' ' || f.text[i] == '\t'); n-- {
		i++
	}
	return i, true
}

// remove returns a splice that removes item i of an object or array, with its comments from the
// first mark on.
func (f *file) remove(v *hujson.Value, i int) splice {
	items := f.items(v)
	elem := items[i]
	s := splice{from: elem.marks[0].from, to: elem.end}
	if elem.comma >= 0 {
		s.to = elem.comma + 1
	}
	limit := v.EndOffset - 1
	if i+1 < len(items) {
		limit = items[i+1].start
	}
	if elem.comma >= 0 && (i == 0 || len(items[i-1].marks) == 0) {
		behind := s.to + len(f.text[s.to:limit]) - len(bytes.TrimLeft(f.text[s.to:limit], " \t"))
		if end, ok := f.newlineMark(behind, limit); ok {
			s.to = end
		}
	}
	// Otherwise, the text after the item in its line would become part of a comment.
	for _, c := range f.comments(elem.from, elem.marks[0].to) {
		if c.line && c.to == s.from && !f.blankLine(s.to) {
			s.from = elem.marks[0].to - len(bytes.TrimLeft(f.text[s.from:elem.marks[0].to], " \t\r\n"))
		}
	}
	return s
}

// blankLine reports whether there is only white space from i to the line's end.
func (f *file) blankLine(i int) bool {
	line, _, _ := bytes.Cut(f.text[i:], []byte("\n"))
	return len(bytes.TrimSpace(line)) == 0
}
