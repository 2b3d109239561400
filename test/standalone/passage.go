// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"net"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Passage leads connections of a listener on to where dial leads, and can keep
// back what goes through. Both ends then see a network that loses packets: their
// connections stay, and nothing comes.
type Passage struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	end      context.CancelFunc

	mu sync.Mutex
	// pass is closed while bytes may.
	pass chan struct{}
	// conns that are open, both ends of each.
	conns map[net.Conn]bool
}

// NewPassage leads until it is closed, and the listener with it, also after ctx ends.
// A connection that dial has no other end for is closed.
func NewPassage(ctx context.Context, l net.Listener, dial func(context.Context) (net.Conn, error)) *Passage {
	p := &Passage{listener: l, dial: dial, pass: make(chan struct{}), conns: map[net.Conn]bool{}}
	ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	close(p.pass)
	go p.accept(ctx)
	return p
}

// Hold back all bytes from now on, also those of connections that are made later.
func (p *Passage) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass = make(chan struct{})
}

// Release what was held back. None of it is lost.
func (p *Passage) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.pass:
	default:
		close(p.pass)
	}
}

// Cut all connections. New ones are led on.
func (p *Passage) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // Both ends see it.
	}
	clear(p.conns)
}

// Close the listener and all connections.
func (p *Passage) Close() error {
	p.end()
	p.Cut()
	return errors.Wrap(p.listener.Close(), "cannot close a passage")
}

func (p *Passage) accept(ctx context.Context) {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.lead(ctx, in)
	}
}

func (p *Passage) lead(ctx context.Context, in net.Conn) {
	out, err := p.dial(ctx)
	if err != nil {
		_ = in.Close() // The client sees that.
		return
	}
	p.mu.Lock()
	p.conns[in], p.conns[out] = true, true
	p.mu.Unlock()
	for _, c := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			p.copy(ctx, c[0], c[1])
			p.close(in, out)
		}()
	}
}

// close the two ends of a connection.
func (p *Passage) close(cs ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cs {
		_ = c.Close() // The other end sees it.
		delete(p.conns, c)
	}
}

// copy until either end is done. An end is held back like anything else.
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
