// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscale speaks to Tailscale's API: one client per provider config,
// with a transport that limits, retries and measures calls, lists that many
// callers share, and errors that say which kind they are and never hold a
// secret. Kubernetes and what to do with answers are not its business; see
// internal/controller.
package tailscale
