// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestCheck checks a package that compiles only for Linux.
func TestCheck(t *testing.T) {
	for platform, want := range map[string]string{"linux/arm64": "", "darwin/arm64": "unknown field Pdeathsig"} {
		problems, err := check(platform, ".", "./testdata/linuxonly")
		if err != nil {
			t.Fatal(err)
		}
		switch got := strings.Join(problems, "\n"); {
		case want == "" && got != "":
			t.Errorf("%s: %s", platform, got)
		case !strings.Contains(got, want):
			t.Errorf("%s: want %q, got %q", platform, want, got)
		}
	}
}
