// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"regexp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
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
