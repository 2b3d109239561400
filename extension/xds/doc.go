// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package xds builds Envoy's resources from the index's snapshot: clusters and endpoint lists. It
// is pure: the same input gives the same bytes.
package xds
