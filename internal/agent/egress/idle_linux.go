// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// limitUnacknowledged sets userTimeout on a listener. Accepted connections inherit it.
func limitUnacknowledged(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
	return errors.Wrap(errors.Join(err, set), "cannot set TCP_USER_TIMEOUT")
}

func transfer(c *net.TCPConn) (transferred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return transferred{}, errors.Wrap(err, "cannot look at connection")
	}
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) { info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err = errors.Join(err, infoErr); err != nil {
		return transferred{}, errors.Wrap(err, "cannot look at connection")
	}
	return transferred{received: info.Bytes_received, acked: info.Bytes_acked}, nil
}
