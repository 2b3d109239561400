// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import "regexp"

var (
	// proxyField begins the settings of proxies.
	proxyField = regexp.MustCompile(`(?m)^( *)proxy:\n`)

	// requested is a request of the examples for CPU.
	requested = regexp.MustCompile(`\bcpu: ("100m"|100m\b)`)
)

// Small returns a manifest whose proxies request little, so that the proxies of all examples fit on
// one node with two cores. A manifest with its own requests only gets smaller ones.
func Small(manifest string) string {
	if requested.MatchString(manifest) {
		return requested.ReplaceAllString(manifest, "cpu: 1m")
	}
	return proxyField.ReplaceAllString(manifest, "${0}${1}  resources: {requests: {cpu: 1m, memory: 16Mi}}\n")
}
