// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRecordingTransport checks that a token stays out of the records, also if it was requested
// before anything was recorded.
func TestRecordingTransport(t *testing.T) {
	const token = "opaque-12345678"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, tokenPath) {
			fmt.Fprintf(w, `{"access_token": %q, "expires_in": 3600}`, token)
			return
		}
		fmt.Fprint(w, "you are ", r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	secret := &redactor{}
	transport := recordingTransport{http.DefaultTransport, secret}
	get := func(ctx context.Context, path string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		rsp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(rsp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	rec := &recorder{secret: secret}
	get(t.Context(), "/api/v2"+tokenPath)
	if got := rec.token(); got != nil {
		t.Errorf("token(): want nothing without a recorder, got %s", got.body)
	}
	if got := get(rec.attach(t.Context()), "/whoami"); !strings.Contains(got, token) {
		t.Errorf("RoundTrip(...): want the reply unchanged, got %q", got)
	}
	get(rec.attach(t.Context()), "/api/v2"+tokenPath)
	all := rec.exchanges()
	if len(all) != 2 {
		t.Errorf("exchanges(): want the two with the recorder, got %d", len(all))
	}
	if b := mustJSON(all); strings.Contains(string(b), token) {
		t.Errorf("exchanges(): the records hold the token: %s", b)
	}
	if got := rec.token(); got == nil || got.status != http.StatusOK || got.object()["expires_in"] != float64(3600) {
		t.Errorf("token(): want the reply without its secret, got %+v", got)
	}
}
