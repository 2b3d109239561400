// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// attemptTimeout bounds an attempt to connect to one of several backends.
	attemptTimeout = 5 * time.Second

	// attemptsTimeout bounds all of these attempts for one connection or request. A client that waits
	// longer has given up.
	attemptsTimeout = 15 * time.Second
)

// errNone is the error of a port all of whose backends have been tried, or that has none.
var errNone = errors.New("there is no backend left to try")

// connectOne connects to one of several backends: each is tried once. The choice must be done when the
// connection ends.
func connectOne(ctx context.Context, c *balance.Choice, d *net.Dialer) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptsTimeout)
	defer cancel()
	last := errNone
	for ctx.Err() == nil {
		backend, ok := c.Next(time.Now())
		if !ok {
			break
		}
		conn, err := d.DialContext(ctx, "tcp", backend.Address)
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, last
}

type choiceKey struct{}

// withChoice gives each request a choice of a backend for a balancing transport, until its response has
// ended. An upgraded connection is the end of its response.
func withChoice(p *balance.Picker, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := p.Choose()
		defer c.Done()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), choiceKey{}, c)))
	})
}

// A balancing sends each request to one of several backends. If it cannot connect to one, it tries the
// next one. Once a request may have reached a backend, no other gets it.
type balancing struct {
	// transport returns the transport for requests to a backend.
	transport func(balance.Backend) http.RoundTripper
}

// RoundTrip sends a request that has a choice.
func (b balancing) RoundTrip(r *http.Request) (*http.Response, error) {
	c, ok := r.Context().Value(choiceKey{}).(*balance.Choice)
	if !ok {
		return nil, errors.New("the request has no choice of a backend")
	}
	began := time.Now()
	last := errNone
	for r.Context().Err() == nil && time.Since(began) < attemptsTimeout {
		backend, ok := c.Next(time.Now())
		if !ok {
			break
		}
		out := r.WithContext(r.Context())
		u := *r.URL
		u.Host = backend.Address
		out.URL = &u
		a := &attempt{body: r.Body}
		if r.Body != nil {
			out.Body = a
		}
		res, err := b.transport(backend).RoundTrip(out)
		if err == nil || !isDial(err) || !a.unread() {
			a.settle()
			return res, err
		}
		last = err
	}
	// A RoundTripper closes the body, whatever happens, and it stays open between attempts.
	if r.Body != nil {
		closeQuietly(r.Body)
	}
	return nil, last
}

// isDial reports whether a transport had no connection for a request. Before that it may have sent the
// request on a connection that had been idle, and have found that the backend did not read it, or that
// it may be sent again (net/http, persistConn.shouldRetryRequest).
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// An attempt is the body of a request for a transport, which closes it even without a connection. Until
// it was read, or it is settled that no other attempt follows, the body itself stays open.
type attempt struct {
	body io.ReadCloser

	mu           sync.Mutex
	used, closed bool
}

// Read reads the body.
func (a *attempt) Read(b []byte) (int, error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	a.used = true
	a.mu.Unlock()
	return a.body.Read(b)
}

// Close closes the body if another attempt has no use for it. A Read under way ends then.
func (a *attempt) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if !a.used {
		return nil
	}
	return a.body.Close()
}

// unread reports whether another attempt can send the body.
func (a *attempt) unread() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.used
}

// settle ends the attempts: the body is closed when the transport closes it, or has.
func (a *attempt) settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	used := a.used
	a.used = true
	if a.body != nil && !used && a.closed {
		closeQuietly(a.body)
	}
}
