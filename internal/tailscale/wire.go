// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// maxSilence is how long a try may wait for the next byte of its answer. All tries
	// of a request fit into RequestTimeout.
	maxSilence = 10 * time.Second

	// A connection that carried nothing for pingAfter is asked for a sign of life, and is
	// closed if it gives none within pongWithin. HTTP/2 has all requests share one, so a
	// connection of which a firewall has forgotten the state would fail the tries of all.
	pingAfter  = 10 * time.Second
	pongWithin = 5 * time.Second

	// dialTimeout bounds a connection's first part, and its second, TLS.
	dialTimeout = maxSilence

	// idleTimeout is how long a connection is kept that nobody uses.
	idleTimeout = 90 * time.Second
)

// newWire returns a transport of which no connection can hang for long.
// http.DefaultTransport sends no pings, and belongs to the whole process.
func newWire() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pongWithin},
	}
}

// A watch ends a try whose answer has stopped coming.
type watch struct {
	timer  *time.Timer
	allow  time.Duration
	cancel context.CancelFunc
}

// watched returns a copy of a request that ends once its answer is silent for too long, or
// the watch stops.
func watched(req *http.Request, allow time.Duration) (*http.Request, *watch) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watch{allow: allow, cancel: func() { cancel(nil) }}
	w.timer = time.AfterFunc(allow, func() { cancel(context.DeadlineExceeded) })
	return req.WithContext(ctx), w
}

// stop ends the watch and what is left of the try.
func (w *watch) stop() {
	w.timer.Stop()
	w.cancel()
}

// silent returns the error of a try: that nothing came in time, where that is why it ended.
func silent(req *http.Request, err error) error {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(req.Context()), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// reading returns a reader of an answer that has the watch see what comes.
func (w *watch) reading(from io.Reader) io.Reader { return &heard{from: from, watch: w} }

type heard struct {
	from  io.Reader
	watch *watch
}

// Read implements io.Reader.
func (h *heard) Read(b []byte) (int, error) {
	n, err := h.from.Read(b)
	if n > 0 {
		h.watch.timer.Reset(h.watch.allow)
	}
	return n, err
}
