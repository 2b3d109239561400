// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A memory listens in memory. In a bubble of testing/synctest, time passes while its connections wait.
type memory struct {
	conns chan net.Conn
	ended chan struct{}
	end   func()
}

func listenInMemory() *memory {
	m := &memory{conns: make(chan net.Conn), ended: make(chan struct{})}
	m.end = sync.OnceFunc(func() { close(m.ended) })
	return m
}

// Accept implements net.Listener.
func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *memory) Close() error { m.end(); return nil }

// Addr implements net.Listener. The address is of the host itself, so that no proxy is used.
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// dial connects to the listener, whatever the address.
func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newServer returns a server in memory that has not started.
func newServer(t *testing.T, h http.HandlerFunc) (*httptest.Server, *memory) {
	t.Helper()
	m := listenInMemory()
	s := &httptest.Server{Listener: m, Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}}
	t.Cleanup(s.Close)
	return s, m
}

// A hole dials a server until its existing connections are swallowed: they stay open, but no more
// data passes. New connections work.
type hole struct {
	server *memory

	mu    sync.Mutex
	conns []*holeConn
}

type holeConn struct {
	net.Conn
	swallowed atomic.Bool
}

func (h *hole) dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := h.server.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &holeConn{Conn: raw}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
	return c, nil
}

// Read discards swallowed data.
func (c *holeConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.swallowed.Load() {
			return n, err
		}
	}
}

// Write discards swallowed data.
func (c *holeConn) Write(b []byte) (int, error) {
	if c.swallowed.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// swallow discards the data of all current connections from now on.
func (h *hole) swallow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.swallowed.Store(true)
	}
}

// count returns the number of connections that were dialled.
func (h *hole) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.conns)
}

// TestHalfOpen discards the data of a connection that worked before, like a firewall that has
// dropped the connection's state.
func TestHalfOpen(t *testing.T) {
	const soon = 200 * time.Millisecond
	get := func(ctx context.Context, c *Client) error { _, err := c.Services().Service(ctx, "svc:a"); return err }
	write := func(ctx context.Context, c *Client) error {
		_, err := c.Services().PutService(ctx, Service{Name: "svc:a", Addrs: []string{"100.64.0.1"}})
		return err
	}
	cases := map[string]struct {
		reason string
		http2  bool
		oauth  bool
		// Zero means that the limit is never reached.
		silence, ping time.Duration
		call          func(ctx context.Context, c *Client) error
		err           string
	}{
		"HTTP1":      {reason: "An attempt without a response ends, and the next attempt uses a new connection.", silence: soon, call: get},
		"HTTP1Write": {reason: "A write with an unknown result is not repeated, and its caller soon gets an error.", silence: soon, call: write, err: "no answer in time"},
		"HTTP2":      {reason: "Pings detect a dead connection before attempts do.", http2: true, ping: soon / 2, call: get},
		"HTTP2Write": {reason: "Pings detect a dead connection before writes do.", http2: true, ping: soon / 2, call: write, err: "not available"},
		"HTTP2Both":  {reason: "The next attempt uses another connection, because pings are no slower than attempts.", http2: true, silence: soon, ping: soon / 2, call: get},
		"Token":      {reason: "Token requests behave in the same way.", oauth: true, silence: soon, call: get},
		"TokenHTTP2": {reason: "The same applies with HTTP/2.", http2: true, oauth: true, silence: soon, ping: soon / 2, call: get},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := newServer(t, func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(r.URL.Path, "oauth") {
						_, _ = w.Write([]byte(`{"access_token":"t","expires_in":3600}`))
						return
					}
					_, _ = w.Write([]byte(`{"name":"svc:a","addrs":["100.64.0.1"]}`))
				})
				s.EnableHTTP2 = tc.http2
				s.StartTLS()
				h := &hole{server: m}
				wire := newWire(nil)
				t.Cleanup(wire.CloseIdleConnections)
				wire.DialContext = h.dial
				wire.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
				wire.TLSClientConfig.NextProtos = nil
				wire.ForceAttemptHTTP2 = tc.http2
				ping := tc.ping
				if ping == 0 {
					ping = time.Hour
				}
				wire.HTTP2.SendPingTimeout, wire.HTTP2.PingTimeout = ping, ping
				cfg := Config{URL: s.URL, APIKey: "k"}
				if tc.oauth {
					cfg = Config{URL: s.URL, ClientID: "id", ClientSecret: "hush"}
				}
				fake := &fakeClock{at: time.Now()}
				c, err := NewClient(cfg, Options{Rate: 1000, Burst: 1000, Metrics: NewMetrics(), Transport: wire, Clock: fake})
				if err != nil {
					t.Fatal(err)
				}
				if c.login.limited.silence = tc.silence; tc.silence == 0 {
					c.login.limited.silence = time.Hour
				}
				if err := get(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				// The next call needs another token.
				if tc.oauth {
					fake.at = fake.at.Add(2 * time.Hour)
				}
				h.swallow()
				start := time.Now()
				err = tc.call(t.Context(), c)
				if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
					t.Errorf("\n%s\nwant error %q, got: %v", tc.reason, tc.err, err)
				}
				// The first attempt, and the longest pause before the second.
				if took, most := time.Since(start), soon+2*baseBackoff; took > most {
					t.Errorf("\n%s\nit took %s, want %s at most", tc.reason, took, most)
				}
				if err := get(t.Context(), c); err != nil {
					t.Errorf("\n%s\nafter that: %v", tc.reason, err)
				}
				if n := h.count(); n != 2 {
					t.Errorf("\n%s\nwant one more connection, got %d in all", tc.reason, n)
				}
			})
		})
	}
}

// TestWire verifies the production timeouts: seconds.
func TestWire(t *testing.T) {
	c, err := NewClient(Config{URL: "http://127.0.0.1:1", APIKey: "k"}, Options{Rate: 1, Burst: 1, Metrics: NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	wire, ok := c.login.limited.base.(*http.Transport)
	if !ok || wire == http.DefaultTransport || wire.Proxy == nil || !wire.ForceAttemptHTTP2 {
		t.Fatalf("want a separate transport with proxies and HTTP/2, got %T", c.login.limited.base)
	}
	if dead := wire.HTTP2.SendPingTimeout + wire.HTTP2.PingTimeout; dead <= 0 || dead > 15*time.Second || c.login.limited.silence > 10*time.Second {
		t.Errorf("want a dead connection to be detected after seconds, got %s and %s", dead, c.login.limited.silence)
	}
	if maxTries*c.login.limited.silence >= RequestTimeout {
		t.Errorf("want time for all attempts within %s", RequestTimeout)
	}
	// Configs share connections.
	p := NewPool(Options{Rate: 1, Burst: 1, Metrics: NewMetrics()})
	a, err := p.Client("a", Config{URL: "http://127.0.0.1:1", APIKey: "a"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Client("b", Config{URL: "http://127.0.0.1:1", APIKey: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if a.login.limited.base != b.login.limited.base {
		t.Error("want one transport for all clients of a pool")
	}
}

// TestSilence verifies that an attempt may take long while its response arrives.
func TestSilence(t *testing.T) {
	const silence = 300 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c := answering(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			for _, b := range []byte(`{"name":"svc:abcdefghij"}`) {
				_, _ = w.Write([]byte{b})
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(silence - time.Millisecond):
				}
			}
		})
		c.login.limited.silence = silence
		if _, err := c.Services().Service(t.Context(), "svc:a"); err != nil {
			t.Errorf("an answer that comes slowly: %v", err)
		}
	})
}

// TestAuthorities checks which certificates of an API are accepted.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"name":"svc:a","addrs":["100.64.0.1"]}`))
	}))
	t.Cleanup(s.Close)
	private := x509.NewCertPool()
	private.AddCert(s.Certificate())
	cases := map[string]struct {
		reason      string
		authorities *x509.CertPool
		trusted     bool
	}{
		"Private": {reason: "A private authority that is configured is trusted.", authorities: private, trusted: true},
		"System":  {reason: "Others are not."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := NewPool(Options{Rate: 1000, Burst: 1000, Metrics: NewMetrics(), Authorities: tc.authorities}).Client("ProviderConfig/a/b", Config{URL: s.URL, APIKey: "k"})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if _, err = c.Services().Service(ctx, "svc:a"); (err == nil) != tc.trusted {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
