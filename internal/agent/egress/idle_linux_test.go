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

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
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

// TestTransfer checks that the counts of a connection are those of its bytes, in both directions.
func TestTransfer(t *testing.T) {
	l := listenLoopback(t)
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
	client := s.(*net.TCPConn)
	initial, err := transfer(client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "abc"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(client, "defgh"); err != nil {
		t.Fatal(err)
	}
	// The other side may acknowledge late.
	want, got := transferred{received: initial.received + 3, acked: initial.acked + 5}, initial
	for end := time.Now().Add(patience); got != want && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if got, err = transfer(client); err != nil {
			t.Fatal(err)
		}
	}
	if got != want {
		t.Errorf("transfer(...): want %+v, got %+v", want, got)
	}
}

// TestIdle checks that a connection is reset when its node sends nothing, as after the node has
// vanished.
func TestIdle(t *testing.T) {
	f := newFixture(t, echo, WithIdleTimeout(200*time.Millisecond))
	if errs := f.server.Set(t.Context(), map[uint16]Route{1: {Target: "db", Addr: addrDB}}); len(errs) > 0 {
		t.Fatal(errs)
	}
	c := f.connect(1)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("want an idle connection to be reset, got %v", err)
	}
	f.eventually("the port still has the connection", func() bool { return f.server.Idle(1) })
}
