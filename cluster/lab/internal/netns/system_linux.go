// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	detach    = unix.MNT_DETACH
	scopeLink = netlink.SCOPE_LINK
	modeTAP   = netlink.TUNTAP_MODE_TAP
	flagNoPI  = netlink.TUNTAP_NO_PI
	flagNoDAD = unix.IFA_F_NODAD
)

// setns moves the calling thread to a network namespace.
func setns(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) }
