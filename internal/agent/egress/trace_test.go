// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Trace contexts of a request.
const (
	traceID   = "0af7651916cd43dd8448eb211c80319c"
	sampled   = "00-" + traceID + "-b7ad6b7169203331-01"
	unsampled = "00-" + traceID + "-b7ad6b7169203331-00"
)

// requestHTTP2 returns the beginning of a connection of HTTP/2 with a request.
func requestHTTP2(t *testing.T, traceparent string) string {
	t.Helper()
	var headers, out bytes.Buffer
	e := hpack.NewEncoder(&headers)
	for _, h := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "db"}, {Name: ":path", Value: "/"}, {Name: "traceparent", Value: traceparent}} {
		if err := e.WriteField(h); err != nil {
			t.Fatal(err)
		}
	}
	out.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&out, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A span is what matters of a recorded span.
type span struct {
	Trace, Parent, Target, Peer string
	Failed                      string
}

func spansOf(e *tracetest.InMemoryExporter) []span {
	var out []span
	for _, s := range e.GetSpans() {
		got := span{Trace: s.SpanContext.TraceID().String(), Parent: s.Parent.SpanID().String()}
		for _, a := range s.Attributes {
			switch a.Key {
			case "tailscale.target":
				got.Target = a.Value.AsString()
			case "network.peer.address":
				got.Peer = a.Value.AsString()
			}
		}
		if s.Status.Code == codes.Error {
			got.Failed = s.Status.Description
		}
		out = append(out, got)
	}
	return out
}

// TestTraces checks that the dial of a connection is part of the trace of its first request, and that
// the target receives all data.
func TestTraces(t *testing.T) {
	get := func(traceparent string) string {
		return "GET / HTTP/1.1\r\nHost: db\r\nTraceparent: " + traceparent + "\r\n\r\n"
	}
	dialled := []span{{Trace: traceID, Parent: "b7ad6b7169203331", Target: "db/5432", Peer: addrDB.Addr().String()}}
	cases := map[string]struct {
		reason  string
		addr    netip.AddrPort
		payload string
		want    []span
	}{
		"HTTP":      {reason: "The dial is a child of the request's span.", addr: addrDB, payload: get(sampled), want: dialled},
		"Body":      {reason: "A body may follow at once.", addr: addrDB, payload: strings.Replace(get(sampled), "GET", "POST", 1) + strings.Repeat("b", 1<<20), want: dialled},
		"HTTP2":     {reason: "Headers of HTTP/2 are compressed.", addr: addrDB, payload: requestHTTP2(t, sampled), want: dialled},
		"Unsampled": {reason: "A trace that is not recorded gets no span.", addr: addrDB, payload: get(unsampled)},
		"None":      {reason: "A request without a trace gets none.", addr: addrDB, payload: "GET / HTTP/1.1\r\nHost: db\r\n\r\n"},
		"Invalid":   {reason: "Clients may send anything.", addr: addrDB, payload: get("00-zz")},
		"Bytes":     {reason: "Other protocols have no trace.", addr: addrDB, payload: "\x16\x03\x01" + sampled},
		"Garbage":   {reason: "A connection of HTTP/2 may be broken.", addr: addrDB, payload: http2.ClientPreface + strings.Repeat("\xff", 100)},
		"NoHost": {
			reason: "A failed dial is recorded with the reason.", payload: get(sampled),
			want: []span{{Trace: traceID, Parent: "b7ad6b7169203331", Target: "db/5432", Failed: reasonNoHost}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorded := tracetest.NewInMemoryExporter()
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(recorded)).Tracer("test")
			received := make(chan string, 1)
			f := newFixture(t, func(c net.Conn) {
				defer func() { _ = c.Close() }()
				data := make([]byte, len(tc.payload))
				_, err := io.ReadFull(c, data)
				if err != nil {
					t.Error(err)
				}
				received <- string(data)
			}, WithTracer(tracer))
			if failed := f.server.Set(t.Context(), map[uint16]Route{5432: {Target: "db/5432", Addr: tc.addr}}); len(failed) > 0 {
				t.Fatal(failed)
			}
			c := f.connect(5432)
			if _, err := io.WriteString(c, tc.payload); err != nil {
				t.Fatal(err)
			}
			if tc.addr.IsValid() {
				if got := <-received; got != tc.payload {
					t.Errorf("%s\nThe target received %d bytes, want the %d that were sent", tc.reason, len(got), len(tc.payload))
				}
			}
			// The end of the connection.
			_, _ = io.Copy(io.Discard, c)
			f.server.Close()
			if diff := cmp.Diff(tc.want, spansOf(recorded)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTracesBounded checks that the beginning of a connection decides neither how much memory the search
// of a trace needs, nor how much a span keeps.
func TestTracesBounded(t *testing.T) {
	// A frame of HTTP/2 that claims to have 16 MiB.
	claimed := []byte(http2.ClientPreface + "\xff\xff\xff\x04\x00\x00\x00\x00\x00")
	var initial, final runtime.MemStats
	runtime.ReadMemStats(&initial)
	for range 10 {
		headersOf(claimed)
	}
	runtime.ReadMemStats(&final)
	if n := final.TotalAlloc - initial.TotalAlloc; n > 10<<20 {
		t.Errorf("A frame that claims to be long needs %d bytes", n/10)
	}

	recorded := tracetest.NewInMemoryExporter()
	s := &Server{tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(recorded)).Tracer("test")}
	s.record(t.Context(), dial{}, []byte("GET / HTTP/1.1\r\nHost: db\r\nTraceparent: "+sampled+"\r\nTracestate: a="+strings.Repeat("b", 250)+"\r\n\r\n"))
	got := recorded.GetSpans()
	if len(got) != 1 || got[0].SpanContext.TraceState().Len()+got[0].Parent.TraceState().Len() > 0 {
		t.Errorf("want one span without a tracestate, got %+v", got)
	}
}

// TestTracesServerFirst checks that a server may speak first.
func TestTracesServerFirst(t *testing.T) {
	f := newFixture(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "220 ready\r\n")
		_ = c.Close()
	}, WithTracer(sdktrace.NewTracerProvider().Tracer("test")))
	if failed := f.server.Set(t.Context(), map[uint16]Route{5432: {Target: "db/5432", Addr: addrDB}}); len(failed) > 0 {
		t.Fatal(failed)
	}
	got, err := io.ReadAll(f.connect(5432))
	if err != nil || string(got) != "220 ready\r\n" {
		t.Errorf("want the greeting, got %q, %v", got, err)
	}
}
