// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// firstBytes is how much of a connection's first data is searched for a trace context. Envoy sends
	// the headers of a request at once, and its default limit of them is 60 KiB
	// (envoy.extensions.filters.network.http_connection_manager.v3, max_request_headers_kb); most have
	// less than one.
	firstBytes = 16 << 10

	// firstPause is how long the first data of a connection is waited for whose target could not be
	// dialled.
	firstPause = 50 * time.Millisecond
)

// WithTracer sends a span for the dial of each connection whose first request has a sampled trace
// context (https://www.w3.org/TR/trace-context/) that can be read: HTTP/1.1, or HTTP/2 with prior
// knowledge, without TLS. The span is a child of the request's. Later requests on the connection need no
// dial. Nil sends none, and costs nothing.
func WithTracer(t trace.Tracer) ServerOption {
	return func(s *Server) { s.tracer = t }
}

// A dial describes the dial of a connection.
type dial struct {
	target       string
	addr         netip.AddrPort
	began, ended time.Time

	// reason is why the dial failed, as in metrics. Empty if it did not.
	reason string
}

// record sends a span for a dial, if the first data of the connection has a trace context.
func (s *Server) record(ctx context.Context, d dial, first []byte) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(headersOf(first)))
	parent := trace.SpanContextFromContext(ctx)
	if !parent.IsSampled() {
		return
	}
	// The header tracestate may be long, and would stay with the span until the collector has it.
	ctx = trace.ContextWithRemoteSpanContext(ctx, parent.WithTraceState(trace.TraceState{}))
	attributes := []attribute.KeyValue{attribute.String("tailscale.target", d.target)}
	if d.addr.IsValid() {
		attributes = append(attributes, attribute.String("network.peer.address", d.addr.Addr().String()), attribute.Int("network.peer.port", int(d.addr.Port())))
	}
	_, span := s.tracer.Start(ctx, "dial", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(d.began), trace.WithAttributes(attributes...))
	if d.reason != "" {
		span.SetStatus(codes.Error, d.reason)
	}
	span.End(trace.WithTimestamp(d.ended))
}

// headersOf returns the headers of the HTTP request that data begins with, if they are complete.
func headersOf(data []byte) http.Header {
	if rest, ok := bytes.CutPrefix(data, []byte(http2.ClientPreface)); ok {
		return headersOfHTTP2(rest)
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
	if err != nil {
		return nil
	}
	return r.Header
}

// headersOfHTTP2 returns the headers of the first request of a connection, after its preface.
func headersOfHTTP2(data []byte) http.Header {
	f := http2.NewFramer(io.Discard, bytes.NewReader(data))
	f.ReadMetaHeaders, f.MaxHeaderListSize = hpack.NewDecoder(4<<10, nil), firstBytes
	// A frame that claims to be longer is not allocated.
	f.SetMaxReadFrameSize(firstBytes)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return nil
		}
		if m, ok := frame.(*http2.MetaHeadersFrame); ok {
			out := http.Header{}
			for _, h := range m.RegularFields() {
				out.Add(h.Name, h.Value)
			}
			return out
		}
	}
}

// awaitData waits until a connection has data or has ended. It needs no buffer: clients may stay silent,
// as those of protocols in which the server speaks first.
func awaitData(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var b [1]byte
	return raw.Read(func(fd uintptr) bool {
		for {
			// Any other error is that of the next read, too.
			_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
			if !errors.Is(err, syscall.EINTR) {
				return !errors.Is(err, syscall.EAGAIN)
			}
		}
	})
}

// firstOf returns the first data of a connection whose target could not be dialled, if it is there.
func firstOf(client net.Conn) []byte {
	b := make([]byte, firstBytes)
	// Without the deadline the connection is closed, and Read fails.
	_ = client.SetReadDeadline(time.Now().Add(firstPause))
	n, _ := client.Read(b)
	return b[:n]
}
