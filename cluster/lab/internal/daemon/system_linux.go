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

// startAt starts a process with a niceness, which it inherits from the calling thread. The thread
// must be locked. Without the permission for a negative niceness, the process has the daemon's.
func startAt(niceness int, cmd *exec.Cmd) error {
	// On Linux, this is the thread and not the process (setpriority(2)).
	switch err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness); {
	case errors.Is(err, syscall.EACCES):
		return cmd.Start()
	case err != nil:
		return errors.Wrap(err, "cannot set niceness")
	}
	return errors.Join(cmd.Start(), errors.Wrap(syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0), "cannot reset niceness"))
}
