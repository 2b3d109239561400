// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscale is a client of Tailscale's API. It has one client per provider config, a
// transport that limits, retries and measures calls, lists that callers share, and classified
// errors without secrets. The package does not use Kubernetes; the controllers in
// internal/controller act on its results.
package tailscale
