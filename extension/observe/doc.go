// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe tells over HTTP how the extension fares: metrics, probes, and what
// was last asked of it. What is measured is measured where it happens.
package observe
