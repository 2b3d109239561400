// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Target is what a request gets.
type Target struct {
	URL string

	// Host is the Host header. Empty means the URL's host.
	Host string

	// Check returns an error if a response with status 200 is not the expected one. Nil accepts all.
	Check func(r Response) error
}

// A Response is a response that has arrived completely.
type Response struct {
	// Proto is the protocol, such as HTTP/2.0.
	Proto  string
	Header http.Header
	Body   string
}

// String returns the host and the URL.
func (t Target) String() string { return strings.TrimSpace(t.Host + " " + t.URL) }

// Contains returns a check of a text that a response must contain.
func Contains(text string) func(Response) error {
	return func(r Response) error {
		if !strings.Contains(r.Body, text) {
			return errors.Errorf("answered %.200q, without %q", r.Body, text)
		}
		return nil
	}
}

// Get gets a target and returns the body of its response.
func Get(ctx context.Context, c *http.Client, t Target) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
	if err != nil {
		return "", errors.Wrap(err, "cannot make a request")
	}
	req.Host = t.Host // Empty means the URL's.
	rsp, err := c.Do(req)
	if err != nil {
		return "", errors.Wrap(err, "cannot get")
	}
	b, err := io.ReadAll(rsp.Body)
	if err := errors.Join(err, rsp.Body.Close()); err != nil {
		return "", errors.Wrap(err, "cannot read the answer")
	}
	if rsp.StatusCode != http.StatusOK {
		return "", errors.Errorf("%s answered %s: %.200s", t, rsp.Status, b)
	}
	if t.Check != nil {
		err = t.Check(Response{Proto: rsp.Proto, Header: rsp.Header, Body: string(b)})
	}
	return string(b), err
}

// HTTP holds the options of a client of HTTP servers. Its answers are the bodies of responses.
type HTTP struct {
	// Targets of requests: the nth request gets target n modulo their number.
	Targets []Target

	// TLS holds the CAs to trust. Nil means those of this machine.
	TLS *tls.Config

	// Dial opens a connection.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// NewConnections sends every request on a new connection.
	NewConnections bool
}

// Client returns a client.
func (o HTTP) Client() Client { return &httpClient{HTTP: o, http: o.client()} }

// Clients returns the client of a worker: all workers have the same options.
func (o HTTP) Clients(int) Client { return o.Client() }

func (o HTTP) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: o.Dial, TLSClientConfig: o.TLS, MaxIdleConnsPerHost: 1}}
}

// closing returns a client for one request, and a function that closes its connections. This side
// must close them first, because the first to close remembers the ports for a minute. Otherwise a
// userspace tailscaled, which picks random ports, could reuse ports that a userspace tailscaled on
// the other side still remembers.
func (o HTTP) closing() (*http.Client, func()) {
	var mu sync.Mutex
	var conns []net.Conn
	dial := o.Dial
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, c)
		}
		return c, err
	}
	return o.client(), func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close() // The request has ended.
		}
	}
}

type httpClient struct {
	HTTP

	// http keeps its connection.
	http *http.Client
}

func (c *httpClient) Send(ctx context.Context, n int) (string, error) {
	client := c.http
	if c.NewConnections {
		var end func()
		client, end = c.closing()
		defer end()
	}
	return Get(ctx, client, c.Targets[n%len(c.Targets)])
}

func (c *httpClient) Close() { c.http.CloseIdleConnections() }
