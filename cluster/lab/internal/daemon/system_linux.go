// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os/exec"
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

// startAt starts a process whose niceness differs from the daemon's by increment, as nice(1) does. The
// process inherits it from the calling thread, which must be locked. Without the permission for a
// lower niceness, the process has the daemon's.
func startAt(increment int, cmd *exec.Cmd) error {
	if increment == 0 {
		return cmd.Start()
	}
	// The system call returns 20 minus the niceness, and both calls are about the thread
	// (getpriority(2), "C library/kernel differences").
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return errors.Wrap(err, "cannot get niceness")
	}
	niceness := 20 - raw
	switch err := unix.Setpriority(unix.PRIO_PROCESS, 0, niceness+increment); {
	case errors.Is(err, unix.EACCES):
		return cmd.Start()
	case err != nil:
		return errors.Wrap(err, "cannot set niceness")
	}
	return errors.Join(cmd.Start(), errors.Wrap(unix.Setpriority(unix.PRIO_PROCESS, 0, niceness), "cannot reset niceness"))
}
