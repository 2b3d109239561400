// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"
	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A host is the backend of a node's services: it sends a line with the node's hostname, and then
// echoes its input. After a PROXY protocol header, the line also has the client's address and the
// ID of the client's node, from WhoIs.
type host struct {
	node *node

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[net.Conn]bool
	closed    bool
}

// serve makes a node answer at ports of a service, with the version of the PROXY protocol header
// that each gets, 0 for none. Earlier services stay.
func (n *node) serve(ctx context.Context, service string, ports map[uint16]int) error {
	if n.host == nil {
		n.host = &host{node: n, conns: map[net.Conn]bool{}}
	}
	sc, err := n.local.GetServeConfig(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot get serve config")
	}
	if sc == nil {
		sc = &ipn.ServeConfig{}
	}
	if sc.Services == nil {
		sc.Services = map[tailcfg.ServiceName]*ipn.ServiceConfig{}
	}
	svc := &ipn.ServiceConfig{TCP: map[uint16]*ipn.TCPPortHandler{}}
	for port, version := range ports {
		addr, err := n.host.listen(ctx, version)
		if err != nil {
			return err
		}
		svc.TCP[port] = &ipn.TCPPortHandler{TCPForward: addr, ProxyProtocol: version}
	}
	sc.Services[tailcfg.ServiceName(service)] = svc
	return errors.Wrap(n.local.SetServeConfig(ctx, sc), "cannot set serve config")
}

// unserve makes a node stop answering for a service.
func (n *node) unserve(ctx context.Context, service string) error {
	sc, err := n.local.GetServeConfig(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot get serve config")
	}
	if sc == nil {
		return nil
	}
	delete(sc.Services, tailcfg.ServiceName(service))
	return errors.Wrap(n.local.SetServeConfig(ctx, sc), "cannot set serve config")
}

func (h *host) listen(ctx context.Context, version int) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", errors.Wrap(err, "cannot listen")
	}
	h.accept(ctx, ln, version)
	return ln.Addr().String(), nil
}

// accept answers the connections of a listener until the host is closed.
func (h *host) accept(ctx context.Context, ln net.Listener, version int) {
	h.mu.Lock()
	h.listeners = append(h.listeners, ln)
	h.mu.Unlock()
	// It answers later rows, too.
	ctx = context.WithoutCancel(ctx)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // It was closed.
			}
			go h.answer(ctx, c, version)
		}
	}()
}

// whoIsTimeout bounds a request about a client.
const whoIsTimeout = 5 * time.Second

func (h *host) answer(ctx context.Context, c net.Conn, version int) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		_ = c.Close() // The host is closed.
		return
	}
	h.conns[c] = true
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.conns, c)
		h.mu.Unlock()
		_ = c.Close() // The client gets no more data.
	}()
	reader := bufio.NewReader(c)
	line := h.node.hostname
	if version > 0 {
		line += " " + h.who(ctx, reader, version)
	}
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return
	}
	_, _ = io.Copy(c, reader) // Until either side ends it.
}

// who reads a PROXY protocol header, and returns the client's address and node.
func (h *host) who(ctx context.Context, reader *bufio.Reader, version int) string {
	header, err := proxyproto.Read(reader)
	if err != nil {
		return "no-header"
	}
	if int(header.Version) != version || header.SourceAddr == nil {
		return fmt.Sprintf("header-of-version-%d", header.Version)
	}
	ctx, cancel := context.WithTimeout(ctx, whoIsTimeout)
	defer cancel()
	addr := header.SourceAddr.String()
	w, err := h.node.local.WhoIs(ctx, addr)
	if err != nil || w.Node == nil {
		return addr + " nobody"
	}
	return addr + " " + string(w.Node.StableID)
}

func (h *host) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, ln := range h.listeners {
		_ = ln.Close() // Errors do not matter at the end.
	}
	for c := range h.conns {
		_ = c.Close() // As above.
	}
}

// ask connects to a host, and returns the words of its first line, and the connection.
func (n *node) ask(ctx context.Context, addr netip.AddrPort) ([]string, net.Conn, *bufio.Reader, error) {
	c, err := n.dial(ctx, addr)
	if err != nil {
		return nil, nil, nil, err
	}
	reader := bufio.NewReader(c)
	err = c.SetReadDeadline(time.Now().Add(dialTimeout))
	var line string
	if err == nil {
		line, err = reader.ReadString('\n')
	}
	if err != nil {
		_ = c.Close() // The first error says why.
		return nil, nil, nil, errors.Wrapf(err, "no answer from %s", addr)
	}
	return strings.Fields(line), c, reader, nil
}

// answers returns the words of a host's first line, and closes the connection.
func (n *node) answers(ctx context.Context, addr netip.AddrPort) ([]string, error) {
	words, c, _, err := n.ask(ctx, addr)
	if err != nil {
		return nil, err
	}
	return words, errors.Wrap(c.Close(), "cannot close a connection")
}
