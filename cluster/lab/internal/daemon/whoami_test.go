// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pires/go-proxyproto"
)

func TestWhoami(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := whoamiServer()
	go s.Serve(withHeaders(l))
	t.Cleanup(func() { _ = s.Close() })

	client := &net.TCPAddr{IP: net.IPv4(100, 64, 0, 7), Port: 40000}
	cases := map[string]struct {
		reason  string
		version byte
		want    string
	}{
		"V1":   {reason: "The header of version 1 has the client's address.", version: 1, want: "100.64.0.7:40000 v1"},
		"V2":   {reason: "So does that of version 2.", version: 2, want: "100.64.0.7:40000 v2"},
		"None": {reason: "A connection without a header is closed."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close() // Only read.
			if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if tc.version != 0 {
				if _, err := proxyproto.HeaderProxyFromAddrs(tc.version, client, l.Addr()).WriteTo(c); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			got := ""
			rsp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil && rsp.StatusCode == http.StatusOK {
				b, err := io.ReadAll(rsp.Body)
				if err != nil {
					t.Fatal(err)
				}
				got = string(b)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
