// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A hole forwards connections to a server until its existing connections are swallowed: they stay
// open, but no more data passes. New connections are forwarded.
type hole struct {
	url string

	mu        sync.Mutex
	swallowed []*atomic.Bool
	conns     atomic.Int32
}

// startHole starts a hole in front of a server.
func startHole(t *testing.T, s *httptest.Server) *hole {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{url: strings.Replace(s.URL, s.Listener.Addr().String(), l.Addr().String(), 1)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Errorf("cannot dial the server: %v", err)
				return
			}
			t.Cleanup(func() { _, _ = c.Close(), up.Close() })
			swallowed := &atomic.Bool{}
			h.mu.Lock()
			h.swallowed = append(h.swallowed, swallowed)
			h.mu.Unlock()
			h.conns.Add(1)
			wg.Go(func() { forward(up, c, swallowed) })
			wg.Go(func() { forward(c, up, swallowed) })
		}
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { _ = l.Close() })
	return h
}

// forward copies until one end closes. It reads swallowed data and discards it.
func forward(to io.WriteCloser, from io.Reader, swallowed *atomic.Bool) {
	defer func() { _ = to.Close() }()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !swallowed.Load() {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// swallow discards the data of all current connections from now on.
func (h *hole) swallow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.swallowed {
		s.Store(true)
	}
}

// TestHalfOpen discards the data of a connection that worked before, like a firewall that has
// dropped the connection's state.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
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
			t.Parallel()
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "oauth") {
					_, _ = w.Write([]byte(`{"access_token":"t","expires_in":3600}`))
					return
				}
				_, _ = w.Write([]byte(`{"name":"svc:a","addrs":["100.64.0.1"]}`))
			}))
			s.EnableHTTP2 = tc.http2
			s.StartTLS()
			t.Cleanup(s.Close)
			h := startHole(t, s)
			wire := newWire(nil)
			wire.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			wire.TLSClientConfig.NextProtos = nil
			wire.ForceAttemptHTTP2 = tc.http2
			if tc.ping == 0 {
				tc.ping = time.Hour
			}
			wire.HTTP2.SendPingTimeout, wire.HTTP2.PingTimeout = tc.ping, tc.ping
			cfg := Config{URL: h.url, APIKey: "k"}
			if tc.oauth {
				cfg = Config{URL: h.url, ClientID: "id", ClientSecret: "hush"}
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
			if fake.at = fake.at.Add(2 * time.Hour); !tc.oauth {
				fake.at = time.Now()
			}
			h.swallow()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			start := time.Now()
			err = tc.call(ctx, c)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("\n%s\nwant error %q, got: %v", tc.reason, tc.err, err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("\n%s\nit took %s", tc.reason, took)
			}
			if err := get(t.Context(), c); err != nil {
				t.Errorf("\n%s\nafter that: %v", tc.reason, err)
			}
			if n := h.conns.Load(); n != 2 {
				t.Errorf("\n%s\nwant one more connection, got %d in all", tc.reason, n)
			}
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
	c := answering(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		for _, b := range []byte(`{"name":"svc:abcdefghij"}`) {
			_, _ = w.Write([]byte{b})
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	c.login.limited.silence = 300 * time.Millisecond
	if _, err := c.Services().Service(t.Context(), "svc:a"); err != nil {
		t.Errorf("an answer that comes slowly: %v", err)
	}
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
