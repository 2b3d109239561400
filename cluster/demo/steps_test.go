// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

func TestUntil(t *testing.T) {
	errBoom := errors.New("boom")
	type answer struct {
		missing string
		err     error
	}
	type want struct {
		err   string
		shown []string
	}
	cases := map[string]struct {
		reason  string
		answers []answer
		want    want
	}{
		"AtOnce": {
			reason:  "Nothing is printed when nothing is waited for.",
			answers: []answer{{}},
		},
		"EachChangeOnce": {
			reason:  "A changed result is printed.",
			answers: []answer{{missing: "a"}, {missing: "a"}, {missing: "b"}, {}},
			want:    want{shown: []string{"waiting: a", "waiting: b"}},
		},
		"ErrorsAreWaitedOut": {
			reason:  "A check that fails is tried again.",
			answers: []answer{{err: errBoom}, {}},
			want:    want{shown: []string{"waiting: boom"}},
		},
		"TimesOut": {
			reason:  "The error says what was missing last.",
			answers: []answer{{missing: "the end"}},
			want:    want{err: "gave up after 10s: the end", shown: []string{"waiting: the end"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &bytes.Buffer{}
				p := &progress{out: out, began: time.Now()}
				n := 0
				err := p.until(t.Context(), 10*time.Second, func(context.Context) (string, error) {
					a := tc.answers[min(n, len(tc.answers)-1)]
					n++
					return a.missing, a.err
				})
				got := ""
				if err != nil {
					got = err.Error()
				}
				if diff := cmp.Diff(tc.want.err, got); diff != "" {
					t.Errorf("%s\nuntil(...): -want error, +got error:\n%s", tc.reason, diff)
				}
				var shown []string
				for line := range strings.Lines(out.String()) {
					_, text, _ := strings.Cut(line, "  w")
					shown = append(shown, "w"+strings.TrimSpace(text))
				}
				if diff := cmp.Diff(tc.want.shown, shown); diff != "" {
					t.Errorf("%s\nuntil(...): -want shown, +got shown:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestRun(t *testing.T) {
	errBoom := errors.New("boom")
	var done []string
	ok := func(name string) step {
		return step{name: name, action: func(context.Context, *progress) error { done = append(done, name); return nil }}
	}
	err := run(t.Context(), &bytes.Buffer{}, []step{
		ok("first"),
		{name: "second", action: func(context.Context, *progress) error { return errBoom }},
		ok("third"),
	})
	if diff := cmp.Diff(errBoom, err, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("run(...): -want error, +got error:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first"}, done); diff != "" {
		t.Errorf("A step that fails ends the run: -want done, +got done:\n%s", diff)
	}
}

func TestExports(t *testing.T) {
	type want struct {
		env map[string]string
		err error
	}
	cases := map[string]struct {
		reason string
		input  string
		want   want
	}{
		"Quoted": {
			reason: "Values are quoted as Go and shells do.",
			input:  "export A=\"x y\"\nexport B=\"\"\n",
			want:   want{env: map[string]string{"A": "x y", "B": ""}},
		},
		"ErrNoAssignment": {reason: "Anything else is not read as if it were.", input: "lab: not up\n", want: want{err: cmpopts.AnyError}},
		"ErrNotQuoted":    {reason: "An unquoted value is refused.", input: "export A=x\n", want: want{err: cmpopts.AnyError}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := exports(tc.input)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nexports(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.env, got); diff != "" {
				t.Errorf("%s\nexports(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
