// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package network

import "errors"

// Guard fails: agents forward packets only on Linux.
func Guard() error { return errors.ErrUnsupported }
