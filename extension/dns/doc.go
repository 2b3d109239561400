// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package dns looks up the addresses of backends that are DNS names, and looks them up again as
// they change. Envoy gets only addresses, so that a name can stand beside addresses in one
// cluster, and one look-up serves all Envoys. Package index uses the addresses, and spells the
// names.
package dns
