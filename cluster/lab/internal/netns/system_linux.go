// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	detach    = unix.MNT_DETACH
	scopeLink = netlink.SCOPE_LINK
	modeTAP   = netlink.TUNTAP_MODE_TAP
	flagNoPI  = netlink.TUNTAP_NO_PI
	flagNoDAD = unix.IFA_F_NODAD
)

// share creates the folder of network namespaces as iproute2 does (ip/ipnetns.c: create_netns_dir):
// as a separate, shared mount. Otherwise a later "ip netns add" would mount the folder over itself
// and hide the mounts of the namespaces below, so that they could not be removed.
func share(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return errors.Wrap(err, "cannot make folder of network namespaces")
	}
	err := unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) {
		// It is not a mount yet.
		if err = unix.Mount(dir, dir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	return errors.Wrap(err, "cannot share the folder of network namespaces")
}

// setns moves the calling thread to a network namespace.
func setns(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) }
