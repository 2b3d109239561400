// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// headerTimeout bounds how long tailscaled can take to send the PROXY protocol header.
	headerTimeout = 5 * time.Second

	// handshakeTimeout bounds how long a client can take for the TLS handshake.
	handshakeTimeout = 10 * time.Second

	// dialTimeout is the timeout that tailscaled uses to dial a backend (ipn/ipnlocal/serve.go).
	dialTimeout = 10 * time.Second
)

// withHeaders returns a listener for connections that begin with a PROXY protocol header.
// Connections without a header are not from tailscaled, and are closed. If tailscaled sends no
// headers, what looks like one is the client's, and is data.
func withHeaders(l net.Listener, t plan.Termination) net.Listener {
	if t.Anonymous {
		return l
	}
	return &proxyproto.Listener{
		Listener: l,
		ConnPolicy: func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			return proxyproto.REQUIRE, nil
		},
		ReadHeaderTimeout: headerTimeout,
	}
}

// serveTCP forwards connections until ctx is done. Open connections continue after that.
func (s *Server) serveTCP(ctx context.Context, l net.Listener, t plan.Termination, p *balance.Picker, sec *secret) error {
	stop := context.AfterFunc(ctx, func() { closeQuietly(l) })
	defer stop()
	defer closeQuietly(l)
	var config *tls.Config
	if t.TLS() {
		config = sec.config()
	}
	// AfterFunc's goroutine reads l, so l must keep its value.
	accepted := withHeaders(l, t)
	for {
		conn, err := accepted.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer closeQuietly(conn)
			if err := carry(context.WithoutCancel(ctx), conn, t, p, config, s.dialer(t)); err != nil {
				s.opts.Log.Debug("Cannot hand on connection", "secret", t.Certificate().String(), "backend", t.Backend, "error", err)
			}
		}()
	}
}

// dialer returns the dialer for backends of a port.
func (s *Server) dialer(t plan.Termination) *net.Dialer {
	out := &net.Dialer{Timeout: dialTimeout, Control: s.opts.Control}
	if t.Balance != nil {
		out.Timeout = attemptTimeout
	}
	return out
}

// carry forwards one connection to the backend, or to one of several.
func carry(ctx context.Context, conn net.Conn, t plan.Termination, p *balance.Picker, config *tls.Config, d *net.Dialer) error {
	client, err := accept(ctx, conn, config)
	if err != nil {
		return err
	}
	dial := func() (net.Conn, error) { return d.DialContext(ctx, "tcp", t.Backend) }
	if t.Balance != nil {
		c := p.Choose()
		defer c.Done()
		dial = func() (net.Conn, error) { return connectOne(ctx, c, d) }
	}
	backend, err := dial()
	if err != nil {
		return errors.Wrap(err, "cannot connect to backend")
	}
	defer closeQuietly(backend)
	if t.ProxyProtocol != 0 {
		if err := writeProxyHeader(conn, backend, t.ProxyProtocol, t.Anonymous); err != nil {
			return err
		}
	}

	var wg sync.WaitGroup
	wg.Go(func() { copyAndClose(backend, client) })
	wg.Go(func() { copyAndClose(client, backend) })
	wg.Wait()
	return nil
}

// accept returns what the client of a connection sends and gets: inside of TLS, if there is a config.
func accept(ctx context.Context, conn net.Conn, config *tls.Config) (net.Conn, error) {
	if config != nil {
		client := tls.Server(conn, config)
		ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		return client, errors.Wrap(client.HandshakeContext(ctx), "cannot shake hands with client")
	}
	pc, ok := conn.(*proxyproto.Conn)
	if !ok {
		return conn, nil
	}
	if pc.ProxyHeader() == nil {
		return nil, errors.New("the connection has no PROXY protocol header")
	}
	return halfCloser{pc}, nil
}

// A halfCloser is a TCP connection after its PROXY protocol header.
type halfCloser struct{ *proxyproto.Conn }

// CloseWrite ends what is sent, and not what is received.
func (c halfCloser) CloseWrite() error {
	tcp, ok := c.TCPConn()
	if !ok {
		return errors.New("the connection is not TCP")
	}
	return tcp.CloseWrite()
}

// writeProxyHeader sends the backend the header that tailscaled sent, with the backend's port, or a
// header without addresses if tailscaled sends none.
func writeProxyHeader(conn, backend net.Conn, version int, anonymous bool) error {
	if anonymous {
		_, err := (&proxyproto.Header{Version: byte(version), Command: proxyproto.LOCAL, TransportProtocol: proxyproto.UNSPEC}).WriteTo(backend)
		return errors.Wrap(err, "cannot send PROXY protocol header")
	}
	pc, ok := conn.(*proxyproto.Conn)
	if !ok || pc.ProxyHeader() == nil {
		return errors.New("the connection says nothing of its client")
	}
	from := pc.ProxyHeader()
	src, dst, ok := from.TCPAddrs()
	if !ok {
		return errors.New("the connection has no TCP addresses that identify its client")
	}
	to, ok := backend.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return errors.New("the backend has no TCP address")
	}
	_, err := (&proxyproto.Header{
		Version:           byte(version),
		Command:           proxyproto.PROXY,
		TransportProtocol: from.TransportProtocol,
		SourceAddr:        src,
		DestinationAddr:   &net.TCPAddr{IP: dst.IP, Port: to.Port},
	}).WriteTo(backend)
	return errors.Wrap(err, "cannot send PROXY protocol header")
}

// copyAndClose copies until from ends, and then closes to for writing, so that its reader sees
// the end. An error on either connection also ends the other direction.
func copyAndClose(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		closeQuietly(to)
		closeQuietly(from)
		return
	}
	if c, ok := to.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil {
		return
	}
	closeQuietly(to)
}

// closeQuietly closes a connection or listener that can already be closed. A failure needs no
// action.
func closeQuietly(c io.Closer) { _ = c.Close() }
