// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Flags and numbers that only Linux has.
const (
	newNetwork = unix.CLONE_NEWNET
	newMounts  = unix.CLONE_NEWNS
	recursive  = unix.MS_REC
	private    = unix.MS_PRIVATE
	bound      = unix.MS_BIND
	tableLocal = unix.RT_TABLE_LOCAL
	scopeLink  = netlink.SCOPE_LINK
)

func unshare(flags int) error { return unix.Unshare(flags) }

func setns(fd, kind int) error { return unix.Setns(fd, kind) }

func mount(source, target, kind string, flags uintptr, data string) error {
	return unix.Mount(source, target, kind, flags, data)
}
