// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommands(t *testing.T) {
	cases := map[string]struct {
		reason   string
		markdown string
		want     []string
	}{
		"Lines": {
			reason:   "Each line of indented code is a command, until the next section.",
			markdown: "# a\n\n## Install\n\nText:\n\n    one --flag\n    two\n\nText.\n\n    three\n\n## Next\n\n    four\n",
			want:     []string{"one --flag", "two", "three"},
		},
		"Continued": {
			reason:   "A backslash continues a command in the next line.",
			markdown: "# a\n\n## Install\n\n    one \\\n      --flag \\\n      --last\n    two\n",
			want:     []string{"one --flag --last", "two"},
		},
		"NoCommands": {
			reason:   "Prompts show output, and comments do nothing.",
			markdown: "# a\n\n## Install\n\n    $ one\n    # or two\n    three\n",
			want:     []string{"three"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := commands(tc.markdown, "## Install")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got, err := commands("# a\n", "## Install"); err == nil {
		t.Errorf("a file without the section has the commands %q", got)
	}
}

// ran are the prefixes of the commands that the demo runs.
var ran = []string{
	"helm upgrade --install crossplane ", "helm upgrade --install tailscale-gateway ", "kubectl wait configuration", "kubectl wait xrd",
	"kubectl apply -f " + examples + "quickstart/namespace.yaml", "kubectl create secret", "kubectl apply -f " + examples + "quickstart/tailnet.yaml",
	"kubectl apply -f " + examples + "quickstart/web", "kubectl wait tailscaleservices",
}

// TestREADME checks that the demo runs every command of the README's section, in its order, and that
// the files that they name exist.
func TestREADME(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", readme))
	if err != nil {
		t.Fatal(err)
	}
	all, err := commands(string(b), installSection)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, c := range all {
		switch {
		case next > 0 && strings.HasPrefix(c, ran[next-1]):
			// A prefix covers several commands.
		case next < len(ran) && strings.HasPrefix(c, ran[next]):
			next++
		default:
			t.Errorf("the demo does not run the command %q, or not in this order", c)
		}
		if _, path, ok := strings.Cut(c, examples); ok {
			if _, err := os.Stat(filepath.Join("..", "..", "examples", path)); err != nil {
				t.Errorf("the command %q: %v", c, err)
			}
		}
	}
	if next < len(ran) {
		t.Errorf("the README has no command %q", ran[next])
	}
}
