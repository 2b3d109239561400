// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tailscale.com/client/local"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// answered returns the error of tailscaled's own client for an answer of tailscaled.
func answered(t *testing.T, status int, retryAfter, text string) error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		http.Error(w, text, status)
	}))
	defer s.Close()
	c := &local.Client{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}}
	_, _, err := c.CertPair(t.Context(), "a.ts.net")
	if err == nil {
		t.Fatal("want an error")
	}
	return err
}

func TestRefusal(t *testing.T) {
	at := time.Date(2026, 11, 25, 21, 0, 0, 1, time.UTC)
	const text = "429 urn:ietf:params:acme:error:rateLimited: too many certificates (50) already issued for \"tail1234.ts.net\" in the last 168h0m0s, retry after 2026-11-25 23:30:00 UTC: see https://letsencrypt.org/docs/rate-limits/"
	cases := map[string]struct {
		reason   string
		err      error
		limitEnd time.Time
		limited  bool
	}{
		"RetryAfter": {
			reason: "Tailscaled passes the time on.", err: answered(t, http.StatusTooManyRequests, "3600", "429 urn:ietf:params:acme:error:rateLimited: too many"),
			limitEnd: at.Add(59*time.Minute + time.Second).Truncate(time.Second), limited: true,
		},
		"Text": {
			reason: "A tailscaled that does not pass it on passes the text on.", err: answered(t, http.StatusInternalServerError, "", text),
			limitEnd: time.Date(2026, 11, 25, 23, 30, 0, 0, time.UTC), limited: true,
		},
		"NoTime":   {reason: "A refusal without a time is one.", err: answered(t, http.StatusTooManyRequests, "", "429"), limited: true},
		"NotATime": {reason: "A text that is no time is ignored.", err: errors.New(problemLimited + ": retry after 2026-99-99 00:00:00 UTC"), limited: true},
		"Past":     {reason: "A time in the past says nothing.", err: errors.New(problemLimited + ": retry after 2026-11-25 20:00:00 UTC"), limited: true},
		"Far": {
			reason: "Nobody can stop requests for ever.", err: answered(t, http.StatusTooManyRequests, "315360000", "429"),
			limitEnd: at.Add(maxUntil + time.Second).Truncate(time.Second), limited: true,
		},
		"Other": {reason: "Another error is no limit.", err: answered(t, http.StatusInternalServerError, "60", "boom")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limitEnd, limited := refusal(tc.err, at.Add(-time.Minute), at)
			if !limitEnd.Equal(tc.limitEnd) || limited != tc.limited {
				t.Errorf("\n%s\nrefusal(%v): want %v, %t; got %v, %t", tc.reason, tc.err, tc.limitEnd, tc.limited, limitEnd, limited)
			}
		})
	}
}
