// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// repository reads what git has, and what it would add.
func repository(t *testing.T) tree {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list files: %v", err)
	}
	out, err := readTree(os.DirFS(root), strings.Fields(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReferences checks that each path, test and make target that a text names exists, that each package with a build
// tag is linted and tested, and that a workflow runs each target.
func TestReferences(t *testing.T) {
	all := repository(t)
	for _, r := range all.check(slices.Collect(maps.Keys(all))) {
		t.Error(r)
	}
}

// TestFolders checks that each folder of test/ has a target with its name that tests this folder alone.
func TestFolders(t *testing.T) {
	folders, err := os.ReadDir(filepath.Join(root, "test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "make", "--dry-run", "--no-print-directory", "test-"+f.Name())
		cmd.Dir = root
		recipe, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("make test-%s: %s", f.Name(), recipe)
			continue
		}
		if tested := folder.FindAllString(string(recipe), -1); !slices.Equal(tested, []string{"./test/" + f.Name() + "/"}) {
			t.Errorf("make test-%s tests %v, want ./test/%s/ alone", f.Name(), tested, f.Name())
		}
	}
}

// TestCheck puts defects into the repository, and expects each to be found.
func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		add    string
		want   []string
	}{
		"Script":      {reason: "A script applies a folder that is gone.", file: "hack/dev-kind.sh", add: "kubectl apply -f cluster/kind/", want: []string{"cluster/kind/"}},
		"Owner":       {reason: "An owners' rule is for a folder that is gone.", file: codeowners, add: "/cluster/kind/ @tailscale-gateway/security", want: []string{"/cluster/kind/"}},
		"Comment":     {reason: "A comment names a file that has moved.", file: "internal/fair/gone.go", add: "package fair // See extension/lanes/lanes.go.", want: []string{"extension/lanes/lanes.go."}},
		"Page":        {reason: "A page names a file that has moved.", file: "docs/limits.md", add: "See `extension/lanes`.", want: []string{"extension/lanes"}},
		"Example":     {reason: "An example names a page that does not exist, beside the name of another project.", file: "examples/egress.yaml", add: "# Crossplane v2: docs/lanes.md.", want: []string{"docs/lanes.md."}},
		"Chart":       {reason: "The page of a chart names a folder that is gone.", file: "package/charts/tailscale-gateway/README.md", add: "Apply `cluster/kind`.", want: []string{"cluster/kind"}},
		"Upstream":    {reason: "A file of another project, named with its version, is none of ours.", file: "docs/limits.md", add: "See Envoy Gateway v1.9.1, internal/lanes/lanes.go."},
		"Test":        {reason: "A page names a test that does not exist.", file: "SECURITY.md", add: "`TestNothing` shows it.", want: []string{"TestNothing"}},
		"Target":      {reason: "A page names a target that does not exist.", file: "docs/limits.md", add: "Run `make test-nothing`.", want: []string{"make test-nothing"}},
		"Sentence":    {reason: "A verb is no target.", file: "docs/limits.md", add: "Both make it slower."},
		"Tag":         {reason: "A build tag is not linted and not tested.", file: "internal/fair/gone_test.go", add: "//go:build nothing\n\npackage fair", want: []string{"no target tests the package with the tag nothing", "the linter does not build the tag nothing"}},
		"Integration": {reason: "No target runs the integration tests of a package.", file: "internal/fair/gone_test.go", add: "//go:build integration\n\npackage fair", want: []string{"no target tests the package with the tag integration"}},
		"Workflow":    {reason: "No workflow runs a target.", file: makefile, add: ".PHONY: test-lanes\ntest-lanes: ## Test.\n\tgo test ./lanes", want: []string{"no workflow runs test-lanes"}},
		"Scheduled":   {reason: "A workflow runs a target that is listed as an exception.", file: workflows + "nightly.yaml", add: "    - run: make tidy", want: []string{"tidy is listed as outside of workflows, and one runs it"}},
	}
	base := repository(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed := maps.Clone(base)
			changed[tc.file] += "\n" + tc.add + "\n"
			var got []string
			for _, r := range changed.check([]string{tc.file}) {
				_, message, _ := strings.Cut(r, ": ")
				got = append(got, message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ncheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
