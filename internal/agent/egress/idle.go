// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// userTimeout is how long what was sent to a client may stay unacknowledged. The kernel
// sends no keepalives while something is, and tries again for a quarter of an hour.
const userTimeout = 2 * time.Minute

// looks at a connection are this many while it may be idle.
const looks = 4

// limitUnacknowledged sets userTimeout on a listener. Its connections have it from there.
func limitUnacknowledged(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
	return errors.Wrap(errors.Join(err, set), "cannot set TCP_USER_TIMEOUT")
}

// cutIdle cuts a connection once nothing has gone either way for as long as that, until ctx
// ends. It is how a connection ends whose node has vanished while its client says nothing:
// tailscaled sends no keepalives on what it dials (tailscale.com wgengine/netstack,
// DialContextTCP), and Linux answers the client's. The kernel copies the bytes, so the
// kernel is asked for how many there were.
func cutIdle(ctx context.Context, client *net.TCPConn, after time.Duration, cut func()) {
	tick := time.NewTicker(max(after/looks, time.Millisecond))
	defer tick.Stop()
	last, since := transferred{}, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := transfer(client)
		if err != nil {
			return // It was closed.
		}
		if now != last {
			last, since = now, time.Now()
			continue
		}
		if time.Since(since) >= after {
			cut()
			return
		}
	}
}

// transferred are the bytes that a client has sent, and has acknowledged.
type transferred struct{ received, acked uint64 }

func transfer(c *net.TCPConn) (transferred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return transferred{}, errors.Wrap(err, "cannot look at connection")
	}
	var info *unix.TCPInfo
	var got error
	err = raw.Control(func(fd uintptr) { info, got = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err = errors.Join(err, got); err != nil {
		return transferred{}, errors.Wrap(err, "cannot look at connection")
	}
	return transferred{received: info.Bytes_received, acked: info.Bytes_acked}, nil
}
