// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// adopt makes this process the parent of its orphaned descendants, such as the
// shims of containers and, when a shim is killed, its containers. They are then
// reaped also on machines whose init process does not reap orphans.
func adopt() error {
	return errors.Wrap(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "cannot adopt orphans")
}

// endWithParent returns the attributes of a process in a new group that ends with the thread that
// started it.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
