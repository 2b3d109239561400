// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package eds serves endpoint lists to Envoy as the index's snapshot has them, by
// the delta protocol: a stream for each cluster, or one for all by xdstp names. What
// a name stands for is told by the index, and how a list looks by package xds.
package eds
