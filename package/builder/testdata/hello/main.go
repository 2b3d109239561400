// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command hello is the binary of the release test: it contains one other module, answers --version,
// and otherwise prints the image that belongs to it.
package main

import (
	"os"

	"golang.org/x/mod/semver"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

func main() {
	// Binaries of ours print the version that the linker sets, which is valid.
	if len(os.Args) == 2 && os.Args[1] == "--version" && semver.IsValid("v1.2.3") {
		_, _ = os.Stdout.WriteString("v1.2.3\n")
		return
	}
	_, _ = os.Stdout.WriteString(products.Belonging("registry.example", "hello", "v1.2.3") + "\n")
}
