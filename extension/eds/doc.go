// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package eds serves the endpoint lists of the index's snapshot to Envoy by the delta protocol: on
// a stream for each cluster, or on one stream for all clusters with xdstp names. Package index maps
// a name to a list; package xds builds the list.
//
// The package implements the protocol itself instead of using the delta server of
// github.com/envoyproxy/go-control-plane, because of the memory of streams. Without xdstp names an
// Envoy has a stream for each cluster, 5000 of them in the worst case that the benchmark measures.
// When the package was written, a stream cost 12 kB here and 230 kB with go-control-plane's linear
// cache; make bench measures the first as extension.stream_kb.
package eds
