// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnet

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"tailscale.com/client/tailscale/apitype"
)

const (
	addressIPv4 = "100.96.0.3"
	addressIPv6 = "fd7a:115c:a1e0::3"
)

// localAPI serves a LocalAPI that answers dials with the given response, and resolves any name
// to an address of each family.
func localAPI(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/localapi/v0/dial", h)
	mux.HandleFunc("/localapi/v0/dns-query", func(w http.ResponseWriter, r *http.Request) {
		var body dnsmessage.ResourceBody = &dnsmessage.AResource{A: netip.MustParseAddr(addressIPv4).As4()}
		if r.FormValue("type") == "AAAA" {
			body = &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(addressIPv6).As16()}
		}
		name, err := dnsmessage.NewName(r.FormValue("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m := dnsmessage.Message{Answers: []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET}, Body: body}}}
		b, err := m.Pack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(apitype.DNSQueryResponse{Bytes: b}) // The client sees the error.
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	t.Cleanup(func() { _ = s.Close() })
	go s.Serve(l) // Close ends it.
	return socket
}

// greet writes hello on the requested connection.
func greet(w http.ResponseWriter) {
	w.Header().Set("Upgrade", "ts-dial")
	w.Header().Set("Connection", "upgrade")
	w.WriteHeader(http.StatusSwitchingProtocols)
	c, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close() // The reader sees the error.
	if _, err := rw.WriteString("hello"); err == nil {
		_ = rw.Flush() // The reader sees the error.
	}
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
				if r.Header.Get("Dial-Host") != addressIPv4 || r.Header.Get("Dial-Port") != "80" {
					http.Error(w, "wrong address", http.StatusBadRequest)
					return
				}
				greet(w)
			},
			want: "hello",
		},
		"OtherFamily": {
			reason: "The next address of a name should be tried if one fails.",
			answer: func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Dial-Host") != addressIPv6 {
					http.Error(w, "connection was refused", http.StatusBadGateway)
					return
				}
				greet(w)
			},
			want: "hello",
		},
		"DialSelfRefused": {
			reason: "An address that no machine of the tailnet holds should never be dialled another way.",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Dial-Self", "true")
				w.Header().Set("Dial-Addr", "127.0.0.1:1")
			},
			err: "address is not in the tailnet",
		},
		"ErrDial": {
			reason: "The error should contain tailscaled's message.",
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
