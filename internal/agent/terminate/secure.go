// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Protocols that a client and a server agree on in the handshake (RFC 7301).
const (
	protocolHTTP1 = "http/1.1"
	protocolHTTP2 = "h2"
)

// secureTransports are the transports to backends that speak TLS, for one protocol. Each has the
// settings of some backends: a transport keeps connections by their address alone, and a connection
// that was verified for one name or authority must not serve a backend with another.
type secureTransports struct {
	dialer   *net.Dialer
	picker   *balance.Picker
	protocol string

	mu         sync.Mutex
	transports map[backendtls.Settings]*http.Transport
}

func newSecureTransports(d *net.Dialer, p *balance.Picker, protocol string) *secureTransports {
	return &secureTransports{dialer: d, picker: p, protocol: protocol, transports: map[backendtls.Settings]*http.Transport{}}
}

// to returns the transport for a backend. The first request with new settings closes what is idle with
// settings that no backend has any more.
func (s *secureTransports) to(b balance.Backend) http.RoundTripper {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.transports[b.TLS]; t != nil {
		return t
	}
	for settings, t := range s.transports {
		if !s.picker.Uses(settings) {
			t.CloseIdleConnections()
			delete(s.transports, settings)
		}
	}
	t := transport(s.dialer)
	config := b.TLS.Config(s.protocol)
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialTLS(ctx, s.dialer, config, network, address)
	}
	t.Protocols = &http.Protocols{}
	t.Protocols.SetHTTP1(s.protocol == protocolHTTP1)
	t.Protocols.SetHTTP2(s.protocol == protocolHTTP2)
	s.transports[b.TLS] = t
	return t
}

// dialTLS opens a connection to a backend and verifies its certificate. All errors are those of a dial,
// because nothing of a request was sent: another backend can get it.
func dialTLS(ctx context.Context, d *net.Dialer, config *tls.Config, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	out := tls.Client(conn, config)
	err = errors.Wrap(out.HandshakeContext(ctx), "cannot shake hands with backend")
	// A server without the extension answers nothing, and speaks HTTP/1.1.
	if err == nil && config.NextProtos[0] == protocolHTTP2 && out.ConnectionState().NegotiatedProtocol != protocolHTTP2 {
		err = errors.New("the backend does not speak HTTP/2")
	}
	if err != nil {
		closeQuietly(conn)
		return nil, &net.OpError{Op: "dial", Net: network, Addr: conn.RemoteAddr(), Err: err}
	}
	return out, nil
}
