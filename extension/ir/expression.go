// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Envoy compiles expressions by RE2. The syntax of Go's package regexp is nearly the same.
// Envoy refuses all routes of a listener with one expression that it cannot compile, so each
// expression is checked here, character by character.

// MaxProgram is the limit of the size of a compiled expression, by an estimate of RE2's own
// measure. RE2 compiles up to 87,381 instructions: its memory is 8 MiB by default, of which
// the forward program has two thirds and the code a quarter of that (google/re2 re2.cc,
// compile.cc). Envoy's own limit, re2.max_program_size.error_level, is 100 by default, and
// Envoy Gateway turns it off (internal/xds/bootstrap/bootstrap.yaml.tpl).
const MaxProgram = 50_000

// MaxPolicyPrograms is the limit for all expressions of a policy together. It bounds what a policy
// costs this process and Envoys, which compile its expressions again for each route.
const MaxPolicyPrograms = 4 * MaxProgram

// classes are the names after \p that both RE2 and Go know. Go also knows newer scripts and
// other spellings.
var classes = map[string]bool{
	"Any": true,
	"C":   true, "Cc": true, "Cf": true, "Co": true,
	"L": true, "Ll": true, "Lm": true, "Lo": true, "Lt": true, "Lu": true,
	"M": true, "Mc": true, "Me": true, "Mn": true,
	"N": true, "Nd": true, "Nl": true, "No": true,
	"P": true, "Pc": true, "Pd": true, "Pe": true, "Pf": true, "Pi": true, "Po": true, "Ps": true,
	"S": true, "Sc": true, "Sk": true, "Sm": true, "So": true,
	"Z": true, "Zl": true, "Zp": true, "Zs": true,
	"Arabic": true, "Armenian": true, "Bengali": true, "Common": true, "Cyrillic": true,
	"Devanagari": true, "Ethiopic": true, "Georgian": true, "Greek": true, "Gujarati": true,
	"Gurmukhi": true, "Han": true, "Hangul": true, "Hebrew": true, "Hiragana": true,
	"Kannada": true, "Katakana": true, "Khmer": true, "Lao": true, "Latin": true,
	"Malayalam": true, "Mongolian": true, "Myanmar": true, "Sinhala": true, "Tamil": true,
	"Telugu": true, "Thai": true, "Tibetan": true,
}

// Programs are the compiled sizes of a policy's expressions, each of which counts once.
type Programs struct {
	checked map[string]program
	total   int
}

// A program is the result of the check of an expression.
type program struct {
	size int
	err  error
}

// NewPrograms returns the sizes for a policy without expressions.
func NewPrograms() *Programs { return &Programs{checked: map[string]program{}} }

// Check returns the size of a compiled expression. It returns an error if Envoy may refuse the
// expression, or if the policy has too many others.
func (ps *Programs) Check(e string) (int, error) {
	if p, ok := ps.checked[e]; ok {
		return p.size, p.err
	}
	if ps.total > MaxPolicyPrograms {
		// Not even the size is known: to compile it is what costs.
		return 0, errors.Errorf("is beyond the limit of a policy: its expressions together compile to more than about %d instructions", MaxPolicyPrograms)
	}
	p := program{}
	p.size, p.err = compiledSize(e)
	ps.checked[e] = p
	ps.total += p.size
	return p.size, p.err
}

// CheckPath returns the size of the expression that a path match becomes. It returns an error if
// Envoy may refuse the expression.
func (ps *Programs) CheckPath(kind, path string) (int, error) {
	if gwapiv1.PathMatchType(kind) == gwapiv1.PathMatchRegularExpression {
		// An error in the expression itself means more to its author.
		if _, err := ps.Check(path); err != nil {
			return 0, err
		}
	}
	expression := PathExpression(kind, path)
	if expression == "" {
		return 0, nil
	}
	n, err := ps.Check(expression)
	return n, errors.Wrapf(err, "cannot be used as part of %s, which is what Envoy is sent; close each \\Q by \\E", expression)
}

// PathExpression returns the expression that a path with its query must match as a whole. It
// is empty if every path matches.
func PathExpression(kind, path string) string {
	const query = `(?:\?.*)?`
	switch gwapiv1.PathMatchType(kind) {
	case gwapiv1.PathMatchExact:
		return regexp.QuoteMeta(path) + query
	case gwapiv1.PathMatchRegularExpression:
		return "(?:" + path + ")" + query
	case gwapiv1.PathMatchPathPrefix:
		if p := strings.TrimSuffix(path, "/"); p != "" {
			return regexp.QuoteMeta(p) + `(?:[/?].*)?`
		}
	}
	return ""
}

// CheckExpression returns an error if Envoy may refuse an expression.
func CheckExpression(e string) error {
	_, err := compiledSize(e)
	return err
}

// compiledSize returns the estimated number of RE2 instructions of an expression, and an error if
// Envoy may refuse it. It compiles nothing of which the parts alone are too large.
func compiledSize(e string) (int, error) {
	if e == "" {
		return 0, errors.New("an expression must not be empty")
	}
	re, err := syntax.Parse(e, syntax.Perl)
	if err != nil {
		return 0, errors.Wrap(err, "cannot be compiled")
	}
	if err := unknown(e); err != nil {
		return 0, err
	}
	n := leaves(re)
	if n <= MaxProgram {
		p, err := syntax.Compile(re.Simplify())
		if err != nil {
			return 0, errors.Wrap(err, "cannot be compiled")
		}
		n = programSize(p)
	}
	if n > MaxProgram {
		return n, errors.Errorf("is too large for Envoy: it compiles to more than about %d instructions; repeat less, or smaller classes", MaxProgram)
	}
	return n, nil
}

// leaves returns the number of characters and classes of an expression, repeated ones as often as
// they are compiled, or a number beyond MaxProgram. Each becomes one instruction or more.
func leaves(re *syntax.Regexp) int {
	n := 0
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		n = 1
	}
	for _, sub := range re.Sub {
		n = min(n+leaves(sub), MaxProgram+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, MaxProgram+1)
}

// unknown returns an error for the first part of an expression that Envoy may not know. The
// expression must be valid in Go. Envoy 1.39 configures RE2 to compare bytes (Latin-1), so
// RE2 refuses code points beyond them, and treats a character in a class as several bytes.
func unknown(e string) error {
	class := false
	for i := 0; i < len(e); i++ {
		switch {
		case class && e[i] >= utf8.RuneSelf:
			return errors.New("cannot be compiled: Envoy compares bytes; write characters beyond ASCII as alternatives, and not in a class")
		case !class && e[i] == '[':
			// A bracket that comes first belongs to the class.
			rest := strings.TrimPrefix(strings.TrimPrefix(e[i+1:], "^"), "]")
			class, i = true, len(e)-len(rest)-1
			continue
		case class && e[i] == '[':
			// [:alpha:] ends by a bracket that does not end the class.
			if name, _, ok := strings.Cut(e[i:], ":]"); ok && strings.HasPrefix(name, "[:") {
				i += len(name) + 1
			}
			continue
		case class && e[i] == ']':
			class = false
			continue
		case e[i] != '\\' || i+1 == len(e):
			continue
		}
		i++
		switch c := e[i]; {
		case c == 'Q':
			quoted, _, _ := strings.Cut(e[i+1:], `\E`)
			i += len(quoted) + len(`\E`)
		case c == 'p' || c == 'P':
			name, written := className(e[i+1:])
			if !classes[name] {
				return errors.Errorf("cannot be compiled: Envoy may not know the class %s; use a general category of Unicode, such as \\p{Lu}, or a range", e[i-1:i+1+written])
			}
		case c == 'x' && strings.HasPrefix(e[i+1:], "{"):
			digits, _, _ := strings.Cut(e[i+2:], "}")
			if n, err := strconv.ParseUint(digits, hexadecimal, bitsOfRune); err != nil || n > lastByte {
				return errors.Errorf("cannot be compiled: Envoy compares bytes, and \\x{%s} is none", digits)
			}
		case '0' <= c && c <= '7':
			if n, err := strconv.ParseUint(e[i:min(i+octalDigits, len(e))], octal, bitsOfRune); err == nil && n > lastByte {
				return errors.Errorf("cannot be compiled: Envoy compares bytes, and \\%o is none", n)
			}
		}
	}
	return nil
}

const (
	octal, hexadecimal, bitsOfRune = 8, 16, 32

	octalDigits = 3
	lastByte    = 0xff
)

// className returns the name after \p, and the length of its spelling.
func className(rest string) (name string, written int) {
	if !strings.HasPrefix(rest, "{") {
		_, n := utf8.DecodeRuneInString(rest)
		return rest[:n], n
	}
	end := strings.IndexByte(rest, '}')
	if end < 0 {
		return "", len(rest)
	}
	return strings.TrimPrefix(rest[1:end], "^"), end + 1
}

// programSize estimates the number of RE2 instructions of a Go program. RE2 compares bytes
// of UTF-8 where Go compares code points. It needs fewer instructions if it compares bytes
// of Latin-1. It stops to count beyond MaxProgram.
func programSize(p *syntax.Prog) int {
	const anything, folded = 12, 4
	n := 0
	for i := 0; i < len(p.Inst) && n <= MaxProgram; i++ {
		inst := &p.Inst[i]
		switch inst.Op {
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			n += anything
		case syntax.InstRune, syntax.InstRune1:
			if len(inst.Rune) == 1 {
				n += folded * utf8.RuneLen(max(inst.Rune[0], 0))
				continue
			}
			for pair := range slices.Chunk(inst.Rune, 2) {
				n += rangeSize(pair[0], pair[len(pair)-1])
			}
		default:
			n++
		}
	}
	return n
}

// continued is the number of code point bits in a continuation byte of UTF-8.
const continued = 6

// rangeSize returns the number of instructions of a range of code points: one for each byte
// of the byte ranges that it is divided into, and one to choose between them.
func rangeSize(lo, hi rune) int {
	if lo > hi {
		return 0
	}
	for _, last := range []rune{0x7f, 0x7ff, 0xffff} {
		if lo <= last && last < hi {
			return rangeSize(lo, last) + rangeSize(last+1, hi)
		}
	}
	size := utf8Size(hi)
	for i := 1; i < size; i++ {
		m := rune(1)<<(continued*i) - 1
		if lo&^m == hi&^m {
			continue
		}
		if lo&m != 0 {
			return rangeSize(lo, lo|m) + rangeSize((lo|m)+1, hi)
		}
		if hi&m != m {
			return rangeSize(lo, hi&^m-1) + rangeSize(hi&^m, hi)
		}
	}
	return size + 1
}

// utf8Size returns the size of a code point in UTF-8, surrogates included.
func utf8Size(r rune) int {
	const surrogate = 3
	if n := utf8.RuneLen(r); n > 0 {
		return n
	}
	return surrogate
}
