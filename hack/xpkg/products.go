// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

// A product is one thing that is shipped: a package, or a plain image.
type product struct {
	// Name is the last part of the repository.
	Name string

	// Main is the Go package of the runtime binary. Empty means that there is
	// none.
	Main string

	// Package is the folder of the package's YAML. Empty means a plain image.
	Package string
}

// organization is where all products are published.
const organization = "ghcr.io/tailscale-gateway"

// products lists all that is shipped. A package comes after those it depends on.
func products() []product {
	return []product{
		{Name: "agent", Main: "./cmd/agent"},
		{Name: "extension", Main: "./extension"},
		{Name: "provider-tailscale", Main: "./cmd/provider", Package: "package/provider"},
		{Name: "function-tailscale", Main: "./cmd/function", Package: "package/function"},
		{Name: "configuration-tailscale-gateway", Package: "package/configuration"},
		{Name: "configuration-tailscale-gateway-claims", Package: "package/configuration-claims"},
	}
}
