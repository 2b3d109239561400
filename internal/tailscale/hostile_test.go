// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestHostileReplies verifies that hostile responses use limited memory and time, and that
// redirects are not followed.
func TestHostileReplies(t *testing.T) {
	var elsewhere, requests atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = w.Write([]byte(`{"access_token":"t","expires_in":3600,"devices":[]}`))
	}))
	t.Cleanup(other.Close)
	endless := func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<16))
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"`))
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaJSON)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	device := func(ctx context.Context, c *Client) error { _, err := c.Devices().Device(ctx, "n1"); return err }
	devices := func(ctx context.Context, c *Client) error { _, err := c.Devices().Devices(ctx, Cached); return err }
	service := func(ctx context.Context, c *Client) error { _, err := c.Services().Service(ctx, "svc:a"); return err }
	policy := func(ctx context.Context, c *Client) error {
		_, err := c.PolicyFile().PolicyFile(ctx, Cached)
		return err
	}
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		call   func(ctx context.Context, c *Client) error
		oauth  bool
		want   string
		memory uint64 // Maximum of all allocations together, in MiB.
	}{
		"Endless":       {reason: "The size of an object is limited.", answer: endless, call: device, want: "more than 1048576 bytes", memory: 64},
		"EndlessRaw":    {reason: "The limit applies to raw calls.", answer: endless, call: service, want: "more than 1048576 bytes", memory: 64},
		"EndlessList":   {reason: "The size of a list is limited.", answer: endless, call: devices, want: "more than 67108864 bytes", memory: 512},
		"EndlessError":  {reason: "The size of an error is limited.", answer: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadRequest); endless(w, r) }, call: service, want: "more than 1048576 bytes", memory: 64},
		"EndlessToken":  {reason: "The size of a token response is limited.", answer: endless, call: service, oauth: true, want: "more than 1048576 bytes", memory: 64},
		"Deep":          {reason: "The nesting of an object is limited.", answer: text(http.StatusOK, deep), call: service, want: "nests deeper than 64", memory: 64},
		"DeepInside":    {reason: "The nesting limit applies at any place.", answer: text(http.StatusOK, `{"name":"[[\"","x":`+deep+`}`), call: service, want: "nests deeper than 64", memory: 64},
		"DeepError":     {reason: "The nesting of an error is limited.", answer: text(http.StatusBadRequest, `{"message":"x","data":`+deep+`}`), call: device, want: "nests deeper than 64", memory: 64},
		"DeepPolicy":    {reason: "The nesting of a policy file is limited, also behind comments.", answer: text(http.StatusOK, "// \"\n/* \" */"+deep), call: policy, want: "nests deeper than 64", memory: 64},
		"DeepToken":     {reason: "The nesting of a token response is limited.", answer: text(http.StatusOK, deep), call: service, oauth: true, want: "nests deeper than 64", memory: 64},
		"Slow":          {reason: "A slow response does not keep a call open.", answer: slow, call: device, want: "no answer in time", memory: 64},
		"SlowRaw":       {reason: "The time limit applies to raw calls.", answer: slow, call: service, want: "no answer in time", memory: 64},
		"SlowToken":     {reason: "A slow token response does not keep a call open.", answer: slow, call: service, oauth: true, want: "no answer in time", memory: 64},
		"Types":         {reason: "Types are checked.", answer: text(http.StatusOK, `{"name":{"a":1},"addrs":"x"}`), call: service, want: "could not be read", memory: 64},
		"TypesList":     {reason: "Types in lists are checked.", answer: text(http.StatusOK, `{"devices":[{"nodeId":7}]}`), call: devices, want: "could not be read", memory: 64},
		"Redirect":      {reason: "Requests are not sent to other hosts.", answer: redirect, call: device, want: "unexpected redirect", memory: 64},
		"RedirectRaw":   {reason: "Raw calls are not sent to other hosts.", answer: redirect, call: service, want: "unexpected redirect", memory: 64},
		"RedirectToken": {reason: "Secrets are not sent to other hosts.", answer: redirect, call: service, oauth: true, want: "cannot get an OAuth token", memory: 64},
		"Control": {
			reason: "A message cannot change the text around it.", answer: text(http.StatusBadRequest, `{"message":"a\u001b[31m\u0000b\u202ec\r\nd"}`), call: service,
			want: "answered 400: a [31m bc d", memory: 64,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				tc.answer(w, r)
			}))
			// Slow responses end when their requests end.
			t.Cleanup(s.Close)
			cfg := Config{URL: s.URL, APIKey: "k"}
			if tc.oauth {
				cfg = Config{URL: s.URL, ClientID: "id", ClientSecret: "hush"}
			}
			c, err := NewClient(cfg, Options{Rate: 1000, Burst: 1000, Metrics: NewMetrics()})
			if err != nil {
				t.Fatal(err)
			}
			// The shorter timeout stands for RequestTimeout.
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if !strings.Contains(tc.want, "in time") {
				ctx = t.Context()
			}
			elsewhere.Store(0)
			requests.Store(0)
			var initial, final runtime.MemStats
			runtime.ReadMemStats(&initial)
			err = tc.call(ctx, c)
			runtime.ReadMemStats(&final)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nwant %q, got: %v", tc.reason, tc.want, err)
			}
			if elsewhere.Load() != 0 {
				t.Errorf("\n%s\na request went to another host", tc.reason)
			}
			if used := (final.TotalAlloc - initial.TotalAlloc) >> 20; used > tc.memory {
				t.Errorf("\n%s\nit took %d MiB, want %d at most", tc.reason, used, tc.memory)
			}
			if strings.Contains(tc.want, "bytes") && requests.Load() != 1 {
				t.Errorf("\n%s\ngot %d requests", tc.reason, requests.Load())
			}
		})
	}
}

// TestCallsEnd verifies that each call has a separate deadline.
func TestCallsEnd(t *testing.T) {
	c, err := NewClient(Config{URL: "http://127.0.0.1:1", APIKey: "k"}, Options{Rate: 1, Burst: 1, Metrics: NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	if c.http.Timeout != RequestTimeout || c.api.HTTP.Timeout != RequestTimeout {
		t.Errorf("want the timeout %s, got %s and %s", RequestTimeout, c.http.Timeout, c.api.HTTP.Timeout)
	}
}

func TestDeeper(t *testing.T) {
	cases := map[string]bool{
		"":                          false,
		"[[[]]]":                    false,
		"[[[[]]]]":                  true,
		`["[[[[", "\"[[[[", "\\"]`:  false,
		`["\\", [[[[]]]]]`:          true,
		"// [[[[\n[[]]":             false,
		"/* [[[[ */ [[]]":           false,
		"// \"\n[[[[":               true,
		"/* \" */ [[[[":             true,
		`["//", [[[[]]]]]`:          true,
		"[] [] [] [] [] {} {} {}":   false,
		`"never ends [[[[`:          false,
		"/* never ends [[[[":        false,
		"// never ends [[[[":        false,
		`{"a":{"b":{"c":{"d":1}}}}`: true,
		`["ends in a backslash \`:   false,
	}
	for input, want := range cases {
		if got := deeper([]byte(input), 3); got != want {
			t.Errorf("deeper(%q, 3): want %t, got %t", input, want, got)
		}
	}
}

func TestAllowedHosts(t *testing.T) {
	hosts := Hosts{"api.tailscale.com", "sim.example.com:8080", "127.0.0.1:*", "[::1]:*"}
	if err := hosts.Validate(); err != nil {
		t.Errorf("Validate(): %v", err)
	}
	for _, bad := range []string{"", "https://api.tailscale.com", "a/b", "me@host", ":443"} {
		if err := (Hosts{bad}).Validate(); err == nil {
			t.Errorf("Validate(): want an error for %q", bad)
		}
	}
	cases := map[string]bool{
		"https://api.tailscale.com":                true,
		"https://API.tailscale.com/":               true,
		"https://api.tailscale.com:443":            true,
		"http://api.tailscale.com":                 false, // Unencrypted.
		"http://api.tailscale.com:443":             false,
		"https://api.tailscale.com:8443":           false,
		"https://api.tailscale.com.evil.org":       false,
		"https://api.tailscale.com@evil.org":       false,
		"https://me:hush@api.tailscale.com":        false,
		"http://sim.example.com:8080":              true,
		"https://sim.example.com":                  false,
		"http://127.0.0.1:1234":                    true,
		"http://[::1]:1234":                        true,
		"http://169.254.169.254":                   false,
		"https://kubernetes.default.svc":           false,
		"":                                         false,
		"://":                                      false,
		"https://evil.org\\@api.tailscale.com":     false,
		"https://evil.org#@api.tailscale.com":      false,
		"https://evil.org?https:api.tailscale.com": false,
	}
	for u, want := range cases {
		if got := hosts.Allow(u); got != want {
			t.Errorf("Allow(%q): want %t, got %t", u, want, got)
		}
	}
	if !(Hosts{HostOf("http://a.example.com")}).Allow("http://a.example.com") || !(Hosts{HostOf("https://a.example.com/")}).Allow("https://a.example.com") {
		t.Error("HostOf(URL) must permit the URL")
	}
}
