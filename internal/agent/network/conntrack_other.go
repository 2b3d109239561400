// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package network

import "errors"

// ForgetUDP fails: agents translate packets only on Linux.
func ForgetUDP(Translations) (uint, error) { return 0, errors.ErrUnsupported }

// OpenTCP fails: agents have the kernel forward packets only on Linux.
func OpenTCP(Forwarded) (bool, error) { return false, errors.ErrUnsupported }
