// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe serves the state of the extension over HTTP: metrics, probes, and the last hooks.
// The parts of the extension measure, and this package collects.
package observe
