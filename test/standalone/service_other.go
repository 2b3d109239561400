// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package standalone

import (
	"errors"
	"net/netip"
)

// ServiceAddress returns the address of all Services of pods.
func ServiceAddress() netip.Addr { return netip.MustParseAddr("203.0.113.1") }

// Services fails: nftables does not compile without Linux.
func (g *Gateway) Services(map[uint16]netip.AddrPort) error { return errors.ErrUnsupported }
