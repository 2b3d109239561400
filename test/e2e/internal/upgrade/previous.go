// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"path/filepath"
	"regexp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Patterns of what an upgrade installs from the source of the previous version, whose top folders may have other
// names than those of this version.
const (
	// Charts matches the folder of our charts.
	Charts = "*/charts"

	// Values matches the folder of values for Envoy Gateway's chart.
	Values = "*/envoy-gateway"
)

// Version is the version under which the previous commit is built and installed. As a pre-release,
// its Configuration accepts only its own packages.
const Version = "v0.0.0-previous"

// previous matches the line of CHANGELOG.md that names the commit.
var previous = regexp.MustCompile(`(?m)^\[previous\]: \S+/commit/([0-9a-f]{40})$`)

// Previous returns the commit of the previous version, from the text of CHANGELOG.md.
func Previous(changelog string) (string, error) {
	found := previous.FindAllStringSubmatch(changelog, -1)
	if len(found) != 1 {
		return "", errors.Errorf("the changelog has %d lines like [previous]: https://.../commit/HASH, not one", len(found))
	}
	return found[0][1], nil
}

// Find returns the path that a pattern matches in a folder, which is an error unless the pattern matches exactly one.
func Find(dir, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", errors.Wrapf(err, "cannot look for %s", pattern)
	}
	if len(found) != 1 {
		return "", errors.Errorf("%d paths in %s match %s, not one", len(found), dir, pattern)
	}
	return found[0], nil
}
