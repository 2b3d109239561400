// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package version holds the version of the binary.
package version

// Version of this build, as a semantic version with a leading v. The linker sets it for
// releases.
var Version = "v0.1.0-dev"

// UserAgent returns the value of the User-Agent header.
func UserAgent() string { return "tailscale-gateway/" + Version }
