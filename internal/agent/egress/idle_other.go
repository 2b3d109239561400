// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package egress

import (
	"errors"
	"net"
	"syscall"
)

// limitUnacknowledged does nothing: agents run on Linux, and tests elsewhere lose no packets.
func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }

// transfer fails, so idle connections are not cut.
func transfer(*net.TCPConn) (transferred, error) { return transferred{}, errors.ErrUnsupported }

// silenceOf fails, so no client counts as one that waits.
func silenceOf(*net.TCPConn) (silence, error) { return silence{}, errors.ErrUnsupported }
