// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package constraint computes which versions of its dependencies a configuration accepts.
package constraint

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// For returns the constraint on dependencies of a configuration of a version.
//
// A release accepts all releases of its minor version: Crossplane installs the newest of them
// (crossplane/crossplane internal/controller/pkg/resolver, findDependencyVersionToInstall), and
// the configuration stays healthy while its dependencies are upgraded one after the other.
//
// A pre-release accepts only itself. Development builds end in a hash, which has no order, so
// the newest version of a range would be an arbitrary one.
func For(version string) (string, error) {
	v, err := Parse(version)
	if err != nil {
		return "", err
	}
	if v.Prerelease() != "" {
		return version, nil
	}
	return fmt.Sprintf(">=v%d.%d.0 <v%d.%d.0", v.Major(), v.Minor(), v.Major(), v.Minor()+1), nil
}

// Parse returns a version that packages can have: complete, with a leading v, and without build
// metadata, which tags of images cannot hold.
func Parse(version string) (*semver.Version, error) {
	number, ok := strings.CutPrefix(version, "v")
	v, err := semver.StrictNewVersion(number)
	if !ok || err != nil || v.Metadata() != "" {
		return nil, errors.Errorf("%q is not a version like v0.1.0 or v0.1.0-rc.1", version)
	}
	return v, nil
}
