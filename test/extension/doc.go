// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package extension tests the extension as users run it, without a cluster: the program itself, a
// real Envoy Gateway that calls its hooks, a real Envoy that subscribes to its endpoints, and an
// API server that all of them read. The tests provide only what is behind Envoy: backends, and an
// egress proxy's port.
//
// Tests with real proxies and a tailnet are in test/e2e.
package extension
