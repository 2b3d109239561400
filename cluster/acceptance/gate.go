// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A gate is on the way of one program to the coordination server, and can be shut: it then
// resets every connection. Control by https is reached through it as an HTTP proxy, because
// its certificate names it; control by http, which only a simulator has, by its address.
type gate struct {
	ln     net.Listener
	target string // HOST:PORT by http; empty by https.

	mu      sync.Mutex
	shut    bool
	refused int
	conns   map[net.Conn]bool
}

// newGate opens a gate to a coordination server.
func newGate(ctx context.Context, control string) (*gate, error) {
	u, err := url.Parse(control)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the coordination server's URL")
	}
	g := &gate{conns: map[net.Conn]bool{}}
	if u.Scheme == "http" {
		if g.target = u.Host; u.Port() == "" {
			g.target = net.JoinHostPort(u.Hostname(), "80")
		}
	}
	var lc net.ListenConfig
	if g.ln, err = lc.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Wrap(err, "cannot listen")
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		for {
			c, err := g.ln.Accept()
			if err != nil {
				return // It was closed.
			}
			go g.pass(ctx, c)
		}
	}()
	return g, nil
}

// control is the URL by which a program reaches the server whose URL is control, and env what
// its environment needs for that.
func (g *gate) control(control string) (endpoint string, env []string) {
	if g.target != "" {
		return "http://" + g.ln.Addr().String(), nil
	}
	return control, []string{"HTTPS_PROXY=http://" + g.ln.Addr().String()}
}

// set shuts the gate, which ends the connections through it, or opens it.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for c := range g.conns {
		if shut {
			reset(c)
		}
	}
}

// turned counts the connections that the gate has reset while it was shut.
func (g *gate) turned() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

func (g *gate) close() {
	g.set(true)
	_ = g.ln.Close() // Nothing comes through any more.
}

// enter counts a connection, and returns false if the gate is shut.
func (g *gate) enter(cs ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		g.refused++
		return false
	}
	for _, c := range cs {
		g.conns[c] = true
	}
	return true
}

func (g *gate) leave(cs ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range cs {
		delete(g.conns, c)
		_ = c.Close() // Both sides have ended.
	}
}

// reset ends a connection as a machine does that has no such connection.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // Else it ends more politely.
	}
	_ = c.Close() // Ended, however.
}

func (g *gate) pass(ctx context.Context, c net.Conn) {
	if !g.enter(c) {
		reset(c)
		return
	}
	defer g.leave(c)
	source, target := io.Reader(c), g.target
	if target == "" {
		r := bufio.NewReader(c)
		req, err := http.ReadRequest(r)
		if err != nil || req.Method != http.MethodConnect {
			return
		}
		source, target = r, req.Host
	}
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil || !g.enter(out) {
		return
	}
	defer g.leave(out)
	if g.target == "" {
		if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return
		}
	}
	done := make(chan struct{}, 2)
	for _, way := range []struct {
		to   io.Writer
		from io.Reader
	}{{out, source}, {c, out}} {
		go func() {
			_, _ = io.Copy(way.to, way.from) // Until either side ends it.
			done <- struct{}{}
		}()
	}
	<-done
}

// isProxied reports whether programs reach control through an HTTP proxy already: a gate
// would go around it.
func isProxied(env []string) bool {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if strings.EqualFold(name, "HTTPS_PROXY") && value != "" {
			return true
		}
	}
	return false
}
