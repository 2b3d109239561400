// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHTTPTrusts checks that only trusted servers receive requests, and only for their host.
func TestHTTPTrusts(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "web.example.com" {
			http.Error(w, "not here", http.StatusNotFound)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	trusting := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	cases := map[string]struct {
		reason string
		host   string
		tls    *tls.Config
		fails  bool
	}{
		"Trusted":   {reason: "The server has a trusted certificate, and answers for the host.", host: "web.example.com", tls: trusting},
		"Stranger":  {reason: "The certificate is not trusted.", host: "web.example.com", fails: true},
		"OtherHost": {reason: "The server does not answer for the URL's host.", tls: trusting, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := HTTP{Targets: []Target{{URL: s.URL, Host: tc.host}}, TLS: tc.tls, Dial: dial}.Client()
			defer c.Close()
			if _, err := c.Send(t.Context(), 0); (err != nil) != tc.fails {
				t.Errorf("\n%s\nSend(...): want an error: %t, got %v", tc.reason, tc.fails, err)
			}
		})
	}
}

// TestHTTPConnections checks on which connections requests are sent, and to which targets.
func TestHTTPConnections(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	t.Cleanup(s.Close)
	cases := map[string]struct {
		reason string
		fresh  bool
		want   int
	}{
		"Kept": {reason: "One connection is kept for all requests.", want: 1},
		"New":  {reason: "Each request has a new connection.", fresh: true, want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var dials atomic.Int64
			c := HTTP{
				Targets: []Target{{URL: s.URL + "/0"}, {URL: s.URL + "/1"}}, NewConnections: tc.fresh,
				Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
					dials.Add(1)
					return dial(ctx, network, addr)
				},
			}.Client()
			defer c.Close()
			var got []string
			for n := range 3 {
				answer, err := c.Send(t.Context(), n)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, answer)
			}
			if n := int(dials.Load()); n != tc.want {
				t.Errorf("\n%s\nSend(...): want %d connections, got %d", tc.reason, tc.want, n)
			}
			if diff := cmp.Diff([]string{"/0", "/1", "/0"}, got); diff != "" {
				t.Errorf("Send(...): want the targets in turn: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestContains(t *testing.T) {
	check := Contains(`"responses"`)
	if err := check(Response{Body: `{"responses":["db"]}`}); err != nil {
		t.Errorf("Contains(...): %v", err)
	}
	if err := check(Response{Body: `{"errors":["refused"]}`}); err == nil {
		t.Error("Contains(...): want an error without the text")
	}
}
