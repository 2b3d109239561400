// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package index keeps what hooks and the endpoint server read: an immutable
// Snapshot of routes, of our kinds, and of Services with their endpoints. A Store
// makes a new one when an object changes. What becomes of it in Envoy lives in
// packages xds, hooks and eds; how objects come here lives in watch.go, and
// nowhere else.
package index
