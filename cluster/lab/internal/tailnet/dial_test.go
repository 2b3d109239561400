// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnet

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// localAPI serves a LocalAPI that answers dials as told.
func localAPI(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	t.Cleanup(func() { _ = s.Close() })
	go s.Serve(l) // Ends by Close.
	return socket
}

func TestDial(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   string
		err    string
	}{
		"Connected": {
			reason: "A connection of the tailnet should carry bytes.",
			answer: func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Dial-Host") != "web.example.ts.net" || r.Header.Get("Dial-Port") != "80" {
					http.Error(w, "wrong address", http.StatusBadRequest)
					return
				}
				w.Header().Set("Upgrade", "ts-dial")
				w.Header().Set("Connection", "upgrade")
				w.WriteHeader(http.StatusSwitchingProtocols)
				c, rw, err := w.(http.Hijacker).Hijack()
				if err != nil {
					return
				}
				defer c.Close() // The reader sees it.
				if _, err := rw.WriteString("hello"); err == nil {
					_ = rw.Flush() // The reader sees it.
				}
			},
			want: "hello",
		},
		"DialSelfRefused": {
			reason: "An address that no machine of the tailnet holds should never be dialled another way.",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Dial-Self", "true")
				w.Header().Set("Dial-Addr", "127.0.0.1:1")
			},
			err: "no machine of the tailnet holds that address",
		},
		"ErrDial": {
			reason: "What tailscaled says should be told.",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "dial failure: boom", http.StatusBadGateway)
			},
			err: "boom",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := Dial(t.Context(), localAPI(t, tc.answer), "tcp", "web.example.ts.net:80")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("\n%s\nDial(...): want error %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("\n%s\nDial(...): %v", tc.reason, err)
			}
			defer c.Close() // Only read.
			b := make([]byte, len(tc.want))
			if _, err := c.Read(b); err != nil || string(b) != tc.want {
				t.Errorf("\n%s\nRead(...): got %q, %v", tc.reason, b, err)
			}
		})
	}
}
