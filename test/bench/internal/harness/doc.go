// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package harness holds the code that the measurements share: an API server, simulated tailnets,
// provider processes, objects and a view of their conditions. The measurements and their goals are
// in the callers.
package harness
