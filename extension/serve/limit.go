// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"sync"

	"golang.org/x/net/netutil"
)

// share is which part of all connections one address may have: a half.
const share = 2

// limited returns a listener that has at most that many connections open, of which an
// address may have a part: further ones of the address are closed, and others wait. A
// socket of this machine has no addresses.
func limited(l net.Listener, most int) net.Listener {
	l = netutil.LimitListener(l, most)
	if _, ok := l.Addr().(*net.TCPAddr); !ok {
		return l
	}
	return &addressListener{Listener: l, most: max(most/share, 1), open: map[string]int{}}
}

// An addressListener has at most so many connections of an address open.
type addressListener struct {
	net.Listener

	most int

	mu   sync.Mutex
	open map[string]int
}

// Accept implements net.Listener.
func (l *addressListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // gRPC looks at what it is.
		}
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			host = c.RemoteAddr().String()
		}
		if l.take(host) {
			return &addressConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(host) })}, nil
		}
		_ = c.Close() // Its client hears of it.
	}
}

func (l *addressListener) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host] >= l.most {
		return false
	}
	l.open[host]++
	return true
}

func (l *addressListener) leave(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[host]--; l.open[host] == 0 {
		delete(l.open, host)
	}
}

type addressConn struct {
	net.Conn

	leave func()
}

// Close implements net.Conn.
func (c *addressConn) Close() error {
	c.leave()
	return c.Conn.Close() //nolint:wrapcheck // As the connection's own.
}
