// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package apiserver

import "syscall"

// endWithParent returns the attributes of a process in a new group. Only Linux ends it with its
// parent.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
