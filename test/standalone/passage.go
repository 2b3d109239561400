// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"net"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Passage forwards the connections of a listener to those of dial, and can hold back their bytes.
// Both ends then see a network that loses packets: their connections stay open, and receive
// nothing.
type Passage struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	end      context.CancelFunc

	mu sync.Mutex
	// pass is closed while bytes may pass.
	pass chan struct{}
	// conns are the open connections, both ends of each.
	conns map[net.Conn]bool
}

// NewPassage forwards connections until it is closed with its listener, also after ctx ends. It
// closes a connection when dial fails.
func NewPassage(ctx context.Context, l net.Listener, dial func(context.Context) (net.Conn, error)) *Passage {
	p := &Passage{listener: l, dial: dial, pass: make(chan struct{}), conns: map[net.Conn]bool{}}
	ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	close(p.pass)
	go p.accept(ctx)
	return p
}

// Hold holds back all bytes from now on, also those of new connections.
func (p *Passage) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass = make(chan struct{})
}

// Release sends the held bytes. None of them is lost.
func (p *Passage) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.pass:
	default:
		close(p.pass)
	}
}

// Cut closes all connections. New ones are forwarded.
func (p *Passage) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // Both ends see it.
	}
	clear(p.conns)
}

// Close closes the listener and all connections.
func (p *Passage) Close() error {
	p.end()
	p.Cut()
	return errors.Wrap(p.listener.Close(), "cannot close a passage")
}

func (p *Passage) accept(ctx context.Context) {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.lead(ctx, conn)
	}
}

func (p *Passage) lead(ctx context.Context, conn net.Conn) {
	out, err := p.dial(ctx)
	if err != nil {
		_ = conn.Close() // The client sees it.
		return
	}
	p.mu.Lock()
	p.conns[conn], p.conns[out] = true, true
	p.mu.Unlock()
	for _, c := range [][2]net.Conn{{conn, out}, {out, conn}} {
		go func() {
			p.copy(ctx, c[0], c[1])
			p.close(conn, out)
		}()
	}
}

// close closes the two ends of a connection.
func (p *Passage) close(cs ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cs {
		_ = c.Close() // The other end sees it.
		delete(p.conns, c)
	}
}

// copy copies until either end is closed. The end of a stream is held back like bytes.
func (p *Passage) copy(ctx context.Context, to, from net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		pass := p.pass
		p.mu.Unlock()
		select {
		case <-pass:
		case <-ctx.Done():
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
