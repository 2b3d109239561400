// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package resolve finds the addresses of backends that are DNS names, and finds them
// again as they change. Envoy gets addresses only: so a name may stand beside
// addresses in one cluster, and is resolved once for all Envoys. What is made of the
// addresses lives in package index; how the names are spelled, too.
package resolve
