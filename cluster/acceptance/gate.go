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

// A gate forwards the connections of one program to the coordination server. While it is shut, it
// resets every connection. For a server with https it is an HTTP proxy, because the server's
// certificate has the server's name. For one with http, which only a simulator has, the gate's
// address replaces the server's.
type gate struct {
	ln     net.Listener
	target string // HOST:PORT of a server with http; empty for https.

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

// control returns the URL at which a program reaches a server through the gate, and the environment
// variables that the program needs.
func (g *gate) control(control string) (endpoint string, env []string) {
	if g.target != "" {
		return "http://" + g.ln.Addr().String(), nil
	}
	return control, []string{"HTTPS_PROXY=http://" + g.ln.Addr().String()}
}

// set shuts the gate and resets its connections, or opens it.
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

// turned returns the number of connections that the shut gate has refused.
func (g *gate) turned() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

func (g *gate) close() {
	g.set(true)
	_ = g.ln.Close() // The gate is not used again.
}

// enter registers connections, and returns false if the gate is shut.
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

// reset closes a connection with a TCP reset.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // Otherwise it ends with a FIN.
	}
	_ = c.Close() // It ends in any case.
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

// isProxied reports whether programs already reach control through an HTTP proxy, which a gate
// would bypass.
func isProxied(env []string) bool {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if strings.EqualFold(name, "HTTPS_PROXY") && value != "" {
			return true
		}
	}
	return false
}
