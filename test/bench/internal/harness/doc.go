// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package harness holds what the measurements share: an API server, simulated
// tailnets, provider processes, objects and a view of their conditions. What is
// measured, and what is good enough, lives with the measurements.
package harness
