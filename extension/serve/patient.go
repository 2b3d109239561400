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
	// probeTime is after how long without a word the kernel probes a client, and again.
	probeTime = 5 * time.Second

	// keepFor is how long the kernel goes on with that, and with repeating what is not
	// acknowledged. Clients give up earlier.
	keepFor = time.Hour

	// silence is how long a client must have said nothing for packets to have been lost.
	silence = 2 * probeTime

	// lookInterval is how often that is looked at.
	lookInterval = time.Second

	// tcpRTOMax is TCP_RTO_MAX_MS, the longest pause between two repetitions of what is
	// not acknowledged. Kernels before 6.15 do not have it.
	tcpRTOMax = 44
)

// A patientListener is for clients that have no keepalive of their own. When packets
// between the two were dropped for a while, a client repeats what was lost ever less
// often, and goes on only after as long again; and it never hears of an answer that was
// given up here. So connections are kept meanwhile, probed, and reset as soon as the
// client is heard again: it asks again at once.
type patientListener struct{ net.Listener }

// Accept implements net.Listener.
func (l patientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // gRPC looks at what it is.
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		// Sockets of this machine lose nothing.
		return c, nil
	}
	return newPatientConn(tcp), nil
}

// A patientConn looks after itself until it is closed.
type patientConn struct {
	*net.TCPConn

	stop func()
}

func newPatientConn(c *net.TCPConn) net.Conn {
	// Each of these makes it better, and none is needed.
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: probeTime, Interval: probeTime})
	for option, limit := range map[int]time.Duration{unix.TCP_USER_TIMEOUT: keepFor, tcpRTOMax: silence} {
		_ = control(c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, int(limit.Milliseconds())) })
	}
	ctx, stop := context.WithCancel(context.Background())
	out := &patientConn{TCPConn: c, stop: sync.OnceFunc(stop)}
	go out.look(ctx)
	return out
}

// Close implements net.Conn.
func (c *patientConn) Close() error {
	c.stop()
	return c.TCPConn.Close() //nolint:wrapcheck // As the connection's own.
}

// look until ctx ends, and reset the connection when the client is heard after a silence.
func (c *patientConn) look(ctx context.Context) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for lost := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		heard, err := c.heard()
		switch {
		case err != nil:
			// It is closed, and its reader knows.
			return
		case heard > silence:
			lost = true
		case lost:
			_ = c.SetLinger(0)
			_ = c.TCPConn.Close() // Its reader closes it again.
			return
		}
	}
}

// heard is how long ago the client acknowledged anything.
func (c *patientConn) heard() (time.Duration, error) {
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

// control a connection's socket.
func control(c *net.TCPConn, do func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err //nolint:wrapcheck // Nobody is told.
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err //nolint:wrapcheck // Nobody is told.
	}
	return failed
}
