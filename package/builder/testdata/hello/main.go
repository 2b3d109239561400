// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command hello is the binary of the release test: it contains one other module, and answers
// --version.
package main

import (
	"os"

	"golang.org/x/mod/semver"
)

func main() {
	// Binaries of ours print the version that the linker sets, which is valid.
	if len(os.Args) == 2 && os.Args[1] == "--version" && semver.IsValid("v1.2.3") {
		_, _ = os.Stdout.WriteString("v1.2.3\n")
	}
}
