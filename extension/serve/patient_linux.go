// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// probeTime is the idle time after which the kernel probes a client, and the interval of
	// probes.
	probeTime = 5 * time.Second

	// keepFor is the time for which the kernel continues to probe, and to retransmit unacknowledged
	// data. Clients give up earlier.
	keepFor = time.Hour

	// silence is the time without an acknowledgement after which packets count as lost.
	silence = 2 * probeTime

	// checkInterval is the interval of checks for that.
	checkInterval = time.Second

	// tcpRTOMax is TCP_RTO_MAX_MS, the longest pause between two retransmissions. Kernels before
	// 6.15 do not have it.
	tcpRTOMax = 44
)

// A patientConn monitors its client until it is closed.
type patientConn struct {
	*net.TCPConn

	stop func()
}

func newPatientConn(c *net.TCPConn) net.Conn {
	// Each of these options is an improvement, and none is required.
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: probeTime, Interval: probeTime})
	for option, limit := range map[int]time.Duration{unix.TCP_USER_TIMEOUT: keepFor, tcpRTOMax: silence} {
		_ = control(c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, int(limit.Milliseconds())) })
	}
	ctx, stop := context.WithCancel(context.Background())
	out := &patientConn{TCPConn: c, stop: sync.OnceFunc(stop)}
	go out.monitor(ctx)
	return out
}

// Close implements net.Conn.
func (c *patientConn) Close() error {
	c.stop()
	return c.TCPConn.Close() // As the connection's own.
}

// monitor resets the connection if the client acknowledges after a silence, until ctx ends.
func (c *patientConn) monitor(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for lost := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		lastAck, err := c.lastAck()
		switch {
		case err != nil:
			// The connection is closed, and its reader knows.
			return
		case lastAck > silence:
			lost = true
		case lost:
			_ = c.SetLinger(0)
			_ = c.TCPConn.Close() // Its reader closes it again.
			return
		}
	}
}

// lastAck returns the time since the client's last acknowledgement.
func (c *patientConn) lastAck() (time.Duration, error) {
	var info *unix.TCPInfo
	err := control(c.TCPConn, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	if err != nil {
		return 0, err
	}
	return time.Duration(info.Last_ack_recv) * time.Millisecond, nil
}

// control calls fn with a connection's socket.
func control(c *net.TCPConn, fn func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err // The options are not required.
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = fn(int(fd)) }); err != nil {
		return err // The options are not required.
	}
	return failed
}
