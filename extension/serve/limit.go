// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"sync"

	"golang.org/x/net/netutil"
)

// share divides the limit of connections: one address may have a half.
const share = 2

// limited returns a listener that limits open connections. It closes further connections of an
// address that has its part, and lets others wait. A Unix socket has no addresses.
func limited(l net.Listener, most int) net.Listener {
	l = netutil.LimitListener(l, most)
	if _, ok := l.Addr().(*net.TCPAddr); !ok {
		return l
	}
	return &addressListener{Listener: l, most: max(most/share, 1), open: map[string]int{}}
}

// An addressListener limits the open connections of each address.
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
			return nil, err // gRPC checks the type of the error.
		}
		host, _, err := net.SplitHostPort(c.RemoteAddr().String())
		if err != nil {
			host = c.RemoteAddr().String()
		}
		if l.take(host) {
			return &addressConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(host) })}, nil
		}
		_ = c.Close() // The client gets the error.
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
	return c.Conn.Close() // As the connection's own.
}
