// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package network

import (
	"context"
	"net/netip"
)

// Check knows nothing: pods have Kernel networking only on Linux.
func Check(context.Context, string, netip.AddrPort) Report { return Report{} }
