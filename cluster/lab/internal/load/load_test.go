// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// server returns the URL of a server that succeeds from the nth request on, and its request count.
func server(t *testing.T, n int64) (string, *atomic.Int64) {
	t.Helper()
	seen := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if seen.Add(1) < n {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

func TestRun(t *testing.T) {
	const failing = 5
	url, seen := server(t, failing+1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Options{URL: url, Workers: 4, NewConnections: true, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if seen.Load() > 50 {
			cancel()
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}}
	r := Run(ctx, o)
	if r.Failed != failing || r.Requests+r.Failed != int(seen.Load()) {
		t.Errorf("Run(...): want every request counted and %d failed, got %d and %d of %d", failing, r.Requests, r.Failed, seen.Load())
	}
	if len(r.Errors) != failing || r.P50 <= 0 || r.P99 < r.P50 || r.First.IsZero() || r.Seconds <= 0 {
		t.Errorf("Run(...): got %+v", r)
	}
}

func TestRunExpect(t *testing.T) {
	n := &atomic.Int64{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body := `{"responses":["db"]}`
		switch n.Add(1) {
		case 2:
			body = `{"errors":["refused"]}`
		case 4:
			cancel()
		}
		if _, err := io.WriteString(w, body); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	r := Run(ctx, Options{URL: s.URL, Expect: `"responses"`, Dial: (&net.Dialer{}).DialContext})
	if r.Requests != 3 || r.Failed != 1 {
		t.Errorf("Run(...): want 3 answers and one without the text, got %d and %d: %v", r.Requests, r.Failed, r.Errors)
	}
}

func TestGap(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	r := &recorder{}
	// A failure is no answer, and workers may report in another order.
	for _, a := range []answer{{at: at(1)}, {at: at(3)}, {at: at(2)}, {at: at(5), err: io.EOF}, {at: at(8)}, {at: at(9)}} {
		r.add(a)
	}
	if got := r.report(time.Second).Gap; got != 5 {
		t.Errorf("report(...): want a gap of 5 s, got %g", got)
	}
}

func TestFirst(t *testing.T) {
	url, seen := server(t, 3)
	o := Options{URL: url, Dial: (&net.Dialer{}).DialContext}
	began := time.Now()
	r, err := First(t.Context(), o, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if seen.Load() != 3 || r.Failed != 2 || r.First.Before(began) {
		t.Errorf("First(...): want the third answer, got %+v after %d requests", r, seen.Load())
	}

	failing, _ := server(t, 1<<40)
	o.URL = failing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := First(ctx, o, time.Millisecond); err == nil {
		t.Error("First(...): want an error when there is no answer")
	}
}

// TestTrusts checks that only trusted servers receive requests, and only for their host.
func TestTrusts(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "web.example.com" {
			http.Error(w, "not here", http.StatusNotFound)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	o := Options{URL: s.URL, Dial: (&net.Dialer{}).DialContext, Host: "web.example.com", TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	if _, err := First(ctx, o, time.Millisecond); err != nil {
		t.Errorf("First(...): %v", err)
	}
	stranger := o
	stranger.TLS = nil
	if _, err := First(ctx, stranger, time.Millisecond); err == nil {
		t.Error("First(...): want an error for an untrusted certificate")
	}
	other := o
	other.Host = ""
	if _, err := First(ctx, other, time.Millisecond); err == nil {
		t.Error("First(...): want an error for another host")
	}
}

func TestGone(t *testing.T) {
	// It answers the third and the fourth request.
	seen := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := seen.Add(1); n < 3 || n > 4 {
			http.Error(w, "not there", http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	o := Options{URL: s.URL, Dial: (&net.Dialer{}).DialContext}
	reported := 0
	r, err := Gone(t.Context(), o, time.Millisecond, func() { reported++ })
	if err != nil {
		t.Fatal(err)
	}
	if reported != 1 {
		t.Errorf("Gone(...): reported an answer %d times, want once", reported)
	}
	if seen.Load() != 5 || r.Requests != 2 || r.Failed != 3 || !r.Last.After(r.First) {
		t.Errorf("Gone(...): want the fifth request to be the last, got %+v after %d requests", r, seen.Load())
	}

	always, answered := server(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o = Options{URL: always, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if answered.Load() > 2 {
			cancel()
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}, NewConnections: true}
	if _, err := Gone(ctx, o, time.Millisecond, func() {}); err == nil {
		t.Error("Gone(...): want an error while there are answers")
	}
}

func TestPercentile(t *testing.T) {
	var ds []time.Duration
	for i := range 100 {
		ds = append(ds, time.Duration(i+1))
	}
	for p, want := range map[int]time.Duration{50: 50, 99: 99, 100: 100} {
		if got := percentile(ds, p); got != want {
			t.Errorf("percentile(1..100, %d): want %d, got %d", p, want, got)
		}
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("percentile(nil, 99): want 0, got %d", got)
	}
}
