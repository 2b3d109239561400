// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"
)

// released matches the heading of a released version in the changelog.
var released = regexp.MustCompile(`(?m)^## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}$`)

// TestPublished checks that the README says that nothing is published exactly while the changelog has no
// released version: the commit of a release has the section, and must not have the sentence.
func TestPublished(t *testing.T) {
	const sentence = "**No version is published yet**"
	intro, _, _ := strings.Cut(read(t, "README.md"), "\n## ")
	published := released.MatchString(read(t, "CHANGELOG.md"))
	if strings.Contains(intro, sentence) == published {
		t.Errorf("CHANGELOG.md has a released version: %v; the introduction of README.md has %q: %v", published, sentence, published)
	}
}
