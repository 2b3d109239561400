// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"syscall"
	"time"

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
	info, err := infoOf(c)
	if err != nil {
		return transferred{}, err
	}
	return transferred{received: info.Bytes_received, acked: info.Bytes_acked}, nil
}

// silenceOf returns the silence of a client's connection.
func silenceOf(c *net.TCPConn) (silence, error) {
	info, err := infoOf(c)
	if err != nil {
		return silence{}, err
	}
	return silence{
		requested: info.Bytes_received > 0,
		client:    time.Duration(info.Last_data_recv) * time.Millisecond,
		target:    time.Duration(info.Last_data_sent) * time.Millisecond,
	}, nil
}

// infoOf returns what the kernel knows about a connection (tcp(7), TCP_INFO).
func infoOf(c *net.TCPConn) (*unix.TCPInfo, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, errors.Wrap(err, "cannot look at connection")
	}
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) { info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	return info, errors.Wrap(errors.Join(err, infoErr), "cannot look at connection")
}
