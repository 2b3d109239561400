// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package changelog reads release notes from a changelog in the form of
// https://keepachangelog.com.
package changelog

import (
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Unreleased is the section of changes that no release has yet.
const Unreleased = "Unreleased"

// Section returns the text below the heading of a version, such as "## [0.1.0] - 2026-12-01", or
// of Unreleased, without the heading itself.
func Section(changelog, version string) (string, error) {
	var out []string
	found := false
	for _, line := range strings.Split(changelog, "\n") {
		heading, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case isHeading && found:
			return finish(out, version)
		case isHeading:
			name, _, _ := strings.Cut(strings.TrimPrefix(heading, "["), " ")
			found = strings.TrimSuffix(name, "]") == version
		case found && isLink(line):
			// Links of headings are at the end of the page.
		case found:
			out = append(out, line)
		}
	}
	if !found {
		return "", errors.Errorf("the changelog has no section %q", version)
	}
	return finish(out, version)
}

// Notes returns the release notes of a version with a leading v. A pre-release has those of the
// release that it precedes, or the unreleased changes.
func Notes(changelog, version string) (string, error) {
	number := strings.TrimPrefix(version, "v")
	release, _, pre := strings.Cut(number, "-")
	names := []string{number}
	if pre {
		names = append(names, release, Unreleased)
	}
	var first error
	for _, name := range names {
		notes, err := Section(changelog, name)
		if err == nil {
			return notes, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}

func finish(lines []string, version string) (string, error) {
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	if text == "" {
		return "", errors.Errorf("section %q of the changelog is empty", version)
	}
	return text + "\n", nil
}

// isLink reports whether a line defines the target of a heading, such as "[0.1.0]: https://...".
func isLink(line string) bool {
	return strings.HasPrefix(line, "[") && strings.Contains(line, "]: ")
}
