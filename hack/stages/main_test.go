// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A canceler cancels a context at the first write, and keeps what is written.
type canceler struct {
	strings.Builder
	cancel context.CancelFunc
}

func (c *canceler) Write(b []byte) (int, error) {
	c.cancel()
	return c.Builder.Write(b)
}

// TestInterrupt interrupts a target that runs: it ends by SIGTERM, and the next one does not run.
func TestInterrupt(t *testing.T) {
	program := filepath.Join(t.TempDir(), "make")
	script := "#!/bin/sh\ntrap 'echo terminated; exit 1' TERM\necho \"ran $2\"\nwhile :; do sleep 0.05; done\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := &canceler{cancel: cancel}
	if err := (&cli{Make: program, Targets: []string{"first", "second"}}).run(ctx, out, out); err == nil {
		t.Error("want an error after an interrupt")
	}
	for _, want := range []string{"ran first\nterminated\n", "first   FAILED", "second  skipped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q, got:\n%s", want, out)
		}
	}
}

func TestRun(t *testing.T) {
	// The program prints its target, and fails for targets that begin with bad.
	program := filepath.Join(t.TempDir(), "make")
	script := "#!/bin/sh\necho \"ran $2\"\ncase $2 in bad*) exit 3;; esac\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		reason  string
		ctx     context.Context
		targets []string
		want    string
		err     string
	}{
		"Passed": {
			reason:  "Targets run in the order of the arguments.",
			ctx:     t.Context(),
			targets: []string{"lint", "test"},
			want:    "ran lint\nran test\n\nSTAGE RESULT TIME\nlint passed TIME\ntest passed TIME\ntotal TIME\n",
		},
		"Failed": {
			reason:  "The targets after one that fails run, too.",
			ctx:     t.Context(),
			targets: []string{"bad-lint", "test"},
			want:    "ran bad-lint\nran test\n\nSTAGE RESULT TIME\nbad-lint FAILED TIME\ntest passed TIME\ntotal TIME\n",
			err:     "1 of 2 stages did not pass",
		},
		"Interrupted": {
			reason:  "After an interrupt, no target counts as passed.",
			ctx:     canceled,
			targets: []string{"lint"},
			want:    "\nSTAGE RESULT TIME\nlint skipped TIME\ntotal TIME\n",
			err:     "1 of 1 stages did not pass",
		},
	}
	spaces, times := regexp.MustCompile(` +`), regexp.MustCompile(`(?m) [0-9ms]+$`)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := &strings.Builder{}
			err := (&cli{Make: program, Targets: tc.targets}).run(tc.ctx, out, out)
			if got := times.ReplaceAllString(spaces.ReplaceAllString(out.String(), " "), " TIME"); got != tc.want {
				t.Errorf("%s\n%s", tc.reason, cmp.Diff(tc.want, got))
			}
			if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}
