// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package credentials makes the certificates of an extension that is given none, and
// keeps them in Secrets of its namespace: an authority, what its servers show, and what
// Envoy Gateway and Envoys present. Replicas agree by the API server: the first to write
// wins, and the others take what it wrote.
package credentials
