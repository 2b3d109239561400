// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "os/exec"

// endWithParent does nothing here: containerboot is built for Linux alone.
func endWithParent(*exec.Cmd) {}
