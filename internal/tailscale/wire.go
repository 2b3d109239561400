// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// maxSilence is how long an attempt may wait for the next byte of its response. All attempts of
	// a request fit into RequestTimeout.
	maxSilence = 10 * time.Second

	// After pingAfter without traffic, the transport pings a connection, and closes it if there is
	// no response within pongWithin. With HTTP/2 all requests share one connection, so one whose
	// state a firewall has dropped would make all attempts of all requests fail.
	pingAfter  = 10 * time.Second
	pongWithin = 5 * time.Second

	// dialTimeout limits the TCP handshake of a connection, and separately the TLS handshake.
	dialTimeout = maxSilence

	// idleTimeout is how long an unused connection stays open.
	idleTimeout = 90 * time.Second
)

// newWire returns a transport whose connections cannot hang for long, and that trusts the
// authorities, or those of the system for nil. http.DefaultTransport sends no pings, and the whole
// process shares it.
func newWire(authorities *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pongWithin},
	}
}

// A watch cancels an attempt whose response has stopped arriving.
type watch struct {
	timer  *time.Timer
	allow  time.Duration
	cancel context.CancelFunc
}

// watched returns a copy of a request that is cancelled once its response is silent for too long,
// or the watch stops.
func watched(req *http.Request, allow time.Duration) (*http.Request, *watch) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watch{allow: allow, cancel: func() { cancel(nil) }}
	w.timer = time.AfterFunc(allow, func() { cancel(context.DeadlineExceeded) })
	return req.WithContext(ctx), w
}

// stop ends the watch and cancels the rest of the attempt.
func (w *watch) stop() {
	w.timer.Stop()
	w.cancel()
}

// silent returns the error of an attempt, or a timeout error if silence ended the attempt.
func silent(req *http.Request, err error) error {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(req.Context()), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// reading returns a reader that reports each read to the watch.
func (w *watch) reading(src io.Reader) io.Reader { return &heard{from: src, watch: w} }

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
