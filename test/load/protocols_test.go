// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// TestTCP shows which connections count as lost requests.
func TestTCP(t *testing.T) {
	cases := map[string]struct {
		reason  string
		handler http.HandlerFunc
		expect  string
		want    string
		fails   bool
	}{
		"Answered": {
			reason:  "The server answers and closes the connection.",
			handler: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") },
			want:    "here",
		},
		"Unexpected": {
			reason:  "The answer is of another server.",
			handler: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") },
			expect:  "there",
			fails:   true,
		},
		"Refused": {
			reason: "A proxy answers in place of the server.",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "no backend", http.StatusServiceUnavailable)
			},
			fails: true,
		},
		"Reset": {
			reason: "The connection is reset before the answer.",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				c := hijack(t, w)
				if err := c.SetLinger(0); err != nil {
					t.Error(err)
				}
				_ = c.Close()
			},
			fails: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tc.handler)
			t.Cleanup(s.Close)
			c := TCP{Target: Target{URL: s.URL, Check: Contains(tc.expect)}, Dial: dial}.Clients(0)
			defer c.Close()
			got, err := c.Send(t.Context(), 0)
			if (err != nil) != tc.fails {
				t.Errorf("\n%s\nSend(...): want an error: %t, got %v", tc.reason, tc.fails, err)
			}
			if err == nil && got != tc.want {
				t.Errorf("\n%s\nSend(...): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestGRPC checks that a call after a lost one has a new connection at once, and not after the pause of gRPC.
func TestGRPC(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, checks := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(s, checks)
	go s.Serve(l) // Stop ends it.
	t.Cleanup(s.Stop)
	dials := 0
	c := GRPC{Target: Target{URL: "http://" + l.Addr().String()}, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		if dials == 1 {
			return dial(ctx, network, "127.0.0.1:1")
		}
		return dial(ctx, network, addr)
	}}.Clients(0)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if answer, err := c.Send(ctx, 0); err == nil {
		t.Errorf("Send(...) of a refused connection: got %q, want an error", answer)
	}
	for n := 1; n < 3; n++ {
		answer, err := c.Send(ctx, n)
		if err != nil || answer != "SERVING" {
			t.Errorf("Send(...): got %q, %v", answer, err)
		}
	}
	if dials != 2 {
		t.Errorf("got %d connections, want one that is refused and one that is kept", dials)
	}
	checks.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	if answer, err := c.Send(ctx, 3); err == nil {
		t.Errorf("Send(...) to a server that does not serve: got %q, want an error", answer)
	}
}
