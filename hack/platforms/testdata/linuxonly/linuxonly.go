// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package linuxonly compiles for Linux and for nothing else.
package linuxonly

import "syscall"

// Attributes exist only on Linux.
var Attributes = syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
