// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"sort"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
)

func TestFor(t *testing.T) {
	// Tags of a registry, in no order.
	tags := []string{"v0.1.0-dev.tffffffffffff", "v0.1.1", "v0.2.0-rc.1", "v0.1.0-dev.t000000000000", "v0.1.0", "v0.3.0", "v0.2.0", "v0.2", "latest", "v0.1.2-rc.1"}

	cases := map[string]struct {
		reason     string
		version    string
		want       string
		installs   string
		compatible []string
	}{
		"Release": {
			reason:     "A release accepts its minor version, and installs the newest release of it.",
			version:    "v0.1.0",
			want:       ">=v0.1.0 <v0.2.0",
			installs:   "v0.1.1",
			compatible: []string{"v0.1.0", "v0.1.1"},
		},
		"Patch": {
			reason:     "A patch accepts the releases before it, so that packages can be upgraded one after the other.",
			version:    "v0.1.1",
			want:       ">=v0.1.0 <v0.2.0",
			installs:   "v0.1.1",
			compatible: []string{"v0.1.0", "v0.1.1"},
		},
		"NextMinor": {
			reason:     "A range excludes release candidates of its minor version and of the next one.",
			version:    "v0.2.0",
			want:       ">=v0.2.0 <v0.3.0",
			installs:   "v0.2.0",
			compatible: []string{"v0.2.0"},
		},
		"Candidate": {
			reason:     "A release candidate accepts only itself.",
			version:    "v0.2.0-rc.1",
			want:       "v0.2.0-rc.1",
			installs:   "v0.2.0-rc.1",
			compatible: []string{"v0.2.0-rc.1"},
		},
		"Development": {
			reason:     "Development builds of one minor version do not mix.",
			version:    "v0.1.0-dev.t000000000000",
			want:       "v0.1.0-dev.t000000000000",
			installs:   "v0.1.0-dev.t000000000000",
			compatible: []string{"v0.1.0-dev.t000000000000"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := For(tc.version)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			installs, compatible := resolve(t, got, tags)
			if diff := cmp.Diff(tc.installs, installs); diff != "" {
				t.Errorf("%s: -want installed, +got installed:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.compatible, compatible); diff != "" {
				t.Errorf("%s: -want compatible, +got compatible:\n%s", tc.reason, diff)
			}
		})
	}
}

// resolve selects versions as Crossplane v2.4.0 does, with the same library: the last tag in
// order that satisfies the constraint is installed (internal/controller/pkg/resolver), and an
// installed version that satisfies it is compatible (internal/controller/pkg/revision).
func resolve(t *testing.T, constraint string, tags []string) (string, []string) {
	t.Helper()
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		t.Fatal(err)
	}
	var versions []*semver.Version
	for _, tag := range tags {
		// Crossplane ignores incomplete versions.
		if v, err := semver.NewVersion(tag); err == nil && "v"+v.String() == tag {
			versions = append(versions, v)
		}
	}
	sort.Sort(semver.Collection(versions))
	installs := ""
	var compatible []string
	for _, v := range versions {
		if c.Check(v) {
			installs = v.Original()
			compatible = append(compatible, v.Original())
		}
	}
	return installs, compatible
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "0.1.0", "v0.1", "v1", "v0.1.0+build", "v0.1.0 ", "dev", "vv0.1.0", "v01.2.3"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is a version", bad)
		}
		if _, err := For(bad); err == nil {
			t.Errorf("%q has a constraint", bad)
		}
	}
}
