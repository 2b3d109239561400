// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package serve

import "net"

// newPatientConn returns the connection unchanged: its client is monitored only on Linux, on which
// the extension runs.
func newPatientConn(c *net.TCPConn) net.Conn { return c }
