// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package load runs `lab load` in the background of tests and benchmarks, and classifies the
// requests without a response. The requests themselves are the lab's.
package load
