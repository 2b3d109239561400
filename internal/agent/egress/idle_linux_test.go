// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// TestUserTimeout checks the socket options of connections of a listener that is set up as in
// the agent.
func TestUserTimeout(t *testing.T) {
	ls, err := ListenAt("127.0.0.1")(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(ls) })
	l := ls[0]
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	raw, err := s.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got, keepalive := 0, 0
	err = raw.Control(func(fd uintptr) {
		got, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		keepalive, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	})
	if err != nil || got != int(userTimeout.Milliseconds()) || keepalive != 1 {
		t.Errorf("want TCP_USER_TIMEOUT %d and keepalives, got %d, %d, %v", userTimeout.Milliseconds(), got, keepalive, err)
	}
}

// TestIdle checks that a connection is reset when its node sends nothing, as after the node has
// vanished.
func TestIdle(t *testing.T) {
	const idle = 200 * time.Millisecond
	f := newFixture(t, echo, WithIdleTimeout(idle))
	if errs := f.server.Set(t.Context(), map[uint16]Route{1: {Target: "db", Addr: addrDB}}); len(errs) > 0 {
		t.Fatal(errs)
	}
	c := f.connect(1)
	// The connection stays open while bytes go back and forth.
	b := make([]byte, 1)
	for start := time.Now(); time.Since(start) < 3*idle; {
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatalf("the connection was cut while it was used: %v", err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatalf("the connection was cut while it was used: %v", err)
		}
	}
	if _, err := c.Read(b); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("want an idle connection to be reset, got %v", err)
	}
	f.eventually("the port still has the connection", func() bool { return f.server.Idle(1) })
}
