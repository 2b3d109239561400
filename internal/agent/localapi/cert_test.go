// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"tailscale.com/client/local"
)

// TestCertPair gives up requests of a tailscaled that answers only then.
func TestCertPair(t *testing.T) {
	cases := map[string]struct {
		reason  string
		answer  http.HandlerFunc
		limited time.Duration
	}{
		"Limited": {
			reason: "The refusal by a limit is read after the request was given up.",
			answer: func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				w.Header().Set("Retry-After", "3600")
				http.Error(w, "429 urn:ietf:params:acme:error:rateLimited: too many", http.StatusTooManyRequests)
			},
			limited: time.Hour,
		},
		"Silent": {
			reason: "A connection that ends without an answer is a time-out.",
			answer: func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				panic(http.ErrAbortHandler)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "tailscaled.sock")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			requested := make(chan struct{})
			s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(requested)
				tc.answer(w, r)
			})}
			go s.Serve(l) // It ends with the test.
			t.Cleanup(func() { _ = s.Close() })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-requested
				cancel()
			}()
			_, _, err = NewClient(socket).CertPair(ctx, "a.ts.net")
			delay, limited := local.RateLimitRetryAfter(err)
			if err == nil || delay != tc.limited || limited != (tc.limited > 0) {
				t.Errorf("\n%s\nCertPair(...): want a refusal for %v, got %v", tc.reason, tc.limited, err)
			}
		})
	}
}
