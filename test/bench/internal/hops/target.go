// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"context"
	"io"
	"net"
	"net/netip"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A target echoes its input, on a port of the loopback.
type target struct{ *net.TCPListener }

func listen(ctx context.Context) (*target, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen")
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(errors.Errorf("not a TCP listener: %T", l), l.Close())
	}
	return &target{t}, nil
}

// serve accepts connections until the target is closed.
func (t *target) serve() {
	for {
		c, err := t.Accept()
		if err != nil {
			return
		}
		go echo(c)
	}
}

// echo copies until either end closes the connection.
func echo(c net.Conn) {
	b := make([]byte, messageBytes)
	for {
		if _, err := io.ReadFull(c, b); err != nil {
			break
		}
		if _, err := c.Write(b); err != nil {
			break
		}
	}
	_ = c.Close() // There is no caller for the error.
}

// addrPort returns the address of the listener.
func (t *target) addrPort() (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(t.Addr().String())
	return a, errors.Wrap(err, "cannot parse the listener's address")
}
