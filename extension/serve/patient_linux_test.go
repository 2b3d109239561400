// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// An announcingListener sends each accepted connection to a channel.
type announcingListener struct {
	net.Listener

	accepted chan net.Conn
}

func (l announcingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- c
	}
	return c, err
}

// TestPatient checks for how long the kernel retransmits data that a client does not acknowledge.
func TestPatient(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		patient bool
		want    time.Duration
	}{
		"Patient":   {reason: "A patient client's answer should be retransmitted for long", patient: true, want: keepFor},
		"Impatient": {reason: "A lost client should be detected", want: pingTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Listen(t.Context(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			announcing := announcingListener{Listener: l, accepted: make(chan net.Conn, 1)}
			s := NewServer(Options{Credentials: insecure.NewCredentials(), Patient: tc.patient})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx, announcing, 0) }()
			t.Cleanup(func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			// The options are set before the first answer.
			if _, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
				t.Fatal(err)
			}
			if got := userTimeout(t, <-announcing.accepted); got != tc.want {
				t.Errorf("%s: data is retransmitted for %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func userTimeout(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	sc, ok := c.(syscall.Conn)
	if !ok {
		t.Fatalf("%T has no socket", c)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ms, failed := 0, error(nil)
	if err := raw.Control(func(fd uintptr) { ms, failed = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return time.Duration(ms) * time.Millisecond
}
