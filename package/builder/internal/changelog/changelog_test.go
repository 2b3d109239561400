// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const page = `# Changelog

## [Unreleased]

### Added

- One.

## [0.2.0] - 2026-12-24

### Fixed

- Two.

## 0.1.0 - 2026-12-01

- Three.

## [0.0.1]

[Unreleased]: https://example.org/unreleased
[0.2.0]: https://example.org/0.2.0
`

func TestNotes(t *testing.T) {
	cases := map[string]struct {
		reason  string
		version string
		want    string
		bad     bool
	}{
		"Linked":     {reason: "A heading may be a link with a date.", version: "v0.2.0", want: "### Fixed\n\n- Two.\n"},
		"Plain":      {reason: "A heading may be plain.", version: "v0.1.0", want: "- Three.\n"},
		"Candidate":  {reason: "A pre-release has the notes of its release.", version: "v0.2.0-rc.1", want: "### Fixed\n\n- Two.\n"},
		"Unreleased": {reason: "A pre-release of a later release has the unreleased changes.", version: "v0.3.0-rc.1", want: "### Added\n\n- One.\n"},
		"Empty":      {reason: "A release without notes is an error.", version: "v0.0.1", bad: true},
		"Absent":     {reason: "A release without a section is an error.", version: "v0.3.0", bad: true},
		"PartOfName": {reason: "A version is no prefix of another.", version: "v0.2", bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Notes(page, tc.version)
			if (err != nil) != tc.bad {
				t.Fatalf("%s: error is %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChangelog checks that the project's changelog has notes for the version of the tree, in
// the groups of Keep a Changelog.
func TestChangelog(t *testing.T) {
	b, err := os.ReadFile("../../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	notes, err := Notes(string(b), version.Version)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(notes, "\n") {
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			switch heading {
			case "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security":
			default:
				t.Errorf("Keep a Changelog has no group %q", heading)
			}
		}
	}
}
