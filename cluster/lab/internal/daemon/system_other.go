// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package daemon

import (
	"errors"
	"os/exec"
	"syscall"
)

func adopt() error { return errors.ErrUnsupported }

func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func startAt(_ int, cmd *exec.Cmd) error { return cmd.Start() }
