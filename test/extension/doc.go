// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package extension tests the extension as users run it, without a cluster: the
// program itself, a real Envoy Gateway that calls its hooks, a real Envoy that
// asks it for endpoints, and an API server that all of them read. Only what is
// behind Envoy is the tests' own: backends, and an egress proxy's port.
//
// What needs real proxies and a tailnet is in test/e2e.
package extension
