// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/apitype"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

func TestHTTP(t *testing.T) {
	ca := newAuthority(t)
	user := &apitype.WhoIsResponse{
		Node:        &tailcfg.Node{},
		UserProfile: &tailcfg.UserProfile{LoginName: "ann@example.com", DisplayName: "Änn", ProfilePicURL: "https://example.com/ann.png"},
	}
	tagged := &apitype.WhoIsResponse{Node: &tailcfg.Node{Tags: []string{"tag:k8s"}}, UserProfile: user.UserProfile}
	cases := map[string]struct {
		reason string
		who    *apitype.WhoIsResponse
		http2  bool
		want   http.Header
	}{
		"User": {
			reason: "A backend hears who asks, by the headers of tailscaled, and nothing that a client makes up.",
			who:    user,
			want: http.Header{
				headerLogin: {"ann@example.com"}, headerName: {"=?utf-8?q?=C3=84nn?="}, headerPicture: {"https://example.com/ann.png"}, headerInfo: {infoURL},
				"X-Forwarded-For": {"100.64.0.7"}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"https"},
			},
		},
		"HTTP2": {
			reason: "Clients may speak HTTP/2.",
			who:    user,
			http2:  true,
			want: http.Header{
				headerLogin: {"ann@example.com"}, headerName: {"=?utf-8?q?=C3=84nn?="}, headerPicture: {"https://example.com/ann.png"}, headerInfo: {infoURL},
				"X-Forwarded-For": {"100.64.0.7"}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"https"},
			},
		},
		"Tagged": {
			reason: "A tagged machine is no user.",
			who:    tagged,
			want:   http.Header{"X-Forwarded-For": {"100.64.0.7"}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"https"}},
		},
		"Unknown": {
			reason: "Who is not known has no name.",
			want:   http.Header{"X-Forwarded-For": {"100.64.0.7"}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"https"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := make(chan *http.Request, 1)
			upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r }))
			defer upstream.Close()
			c := newCluster()
			s, _ := newServer(t, c, "")
			s.opts.WhoIs = func(_ context.Context, addr string) (*apitype.WhoIsResponse, error) {
				if addr != someone || tc.who == nil {
					return nil, errors.New("boom")
				}
				return tc.who, nil
			}
			at := freeAddress(t)
			set(t, s, plan.Termination{Listen: at, Secret: "web-tls", Backend: strings.TrimPrefix(upstream.URL, "http://"), HTTP: true})
			c.tell(t, "web-tls", ca.secret(1))

			conn := dial(t, at, someone)
			tr := &http.Transport{
				DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
				TLSClientConfig: &tls.Config{
					RootCAs: ca.pool, MinVersion: tls.VersionTLS12,
				},
				ForceAttemptHTTP2: tc.http2,
			}
			defer tr.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/a?b=c", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range foreignHeaders {
				req.Header.Set(h, "mallory")
			}
			req.Header.Set("X-Forwarded-For", "10.0.0.1")
			rsp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer closeQuietly(rsp.Body)
			if rsp.StatusCode != http.StatusOK || rsp.ProtoMajor == 2 != tc.http2 {
				t.Errorf("want status 200 and HTTP/2 %t, got %s %s", tc.http2, rsp.Proto, rsp.Status)
			}
			r := <-got
			if r.Host != host || r.RequestURI != "/a?b=c" {
				t.Errorf("want %s and /a?b=c, got %s and %s", host, r.Host, r.RequestURI)
			}
			for _, h := range []string{"Accept-Encoding", "User-Agent"} {
				r.Header.Del(h)
			}
			if diff := cmp.Diff(tc.want, r.Header); diff != "" {
				t.Errorf("\n%s\nheaders: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHTTPRefused(t *testing.T) {
	ca := newAuthority(t)
	c := newCluster()
	s, _ := newServer(t, c, "")
	at := freeAddress(t)
	set(t, s, plan.Termination{Listen: at, Secret: "web-tls", Backend: freeAddress(t).String(), HTTP: true})
	c.tell(t, "web-tls", ca.secret(1))
	client, _, err := ca.handshake(dial(t, at, someone))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	rsp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(rsp.Body)
	if rsp.StatusCode != http.StatusBadGateway {
		t.Errorf("want 502 of a backend that does not answer, got %s", rsp.Status)
	}
}
