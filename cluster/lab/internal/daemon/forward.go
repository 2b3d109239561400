// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
)

// forward listens on the host's loopback and forwards every connection to an
// address inside a network namespace. It uses the given port if that is free,
// else any other. It lasts as long as the process; ctx limits only its creation.
func forward(ctx context.Context, name string, port int, namespace, target string) (Forward, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return Forward{}, errors.Wrapf(err, "cannot listen for %q", name)
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pipe(ctx, c, namespace, target)
		}
	}()
	return Forward{Name: name, From: l.Addr().String(), To: target, Namespace: namespace}, nil
}

func pipe(ctx context.Context, conn net.Conn, namespace, target string) {
	defer conn.Close() // The connection has ended.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := netns.Dial(ctx, namespace, "tcp", target)
	if err != nil {
		return
	}
	defer out.Close() // The connection has ended.
	var wg sync.WaitGroup
	for _, p := range [][2]net.Conn{{conn, out}, {out, conn}} {
		wg.Go(func() {
			_, _ = io.Copy(p[0], p[1]) // The other side sees the end below.
			if t, ok := p[0].(*net.TCPConn); ok {
				_ = t.CloseWrite() // Fails if the connection is already closed.
			}
		})
	}
	wg.Wait()
}
