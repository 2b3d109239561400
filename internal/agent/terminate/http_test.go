// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/apitype"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
)

func TestHTTP(t *testing.T) {
	ca := newAuthority(t)
	user := &apitype.WhoIsResponse{
		Node:        &tailcfg.Node{Name: "laptop.tail1234.ts.net."},
		UserProfile: &tailcfg.UserProfile{LoginName: "ann@example.com", DisplayName: "Änn", ProfilePicURL: "https://example.com/ann.png"},
	}
	tagged := &apitype.WhoIsResponse{
		Node:        &tailcfg.Node{Name: "ci.tail1234.ts.net.", Tags: []string{"tag:k8s", "tag:ci"}},
		UserProfile: user.UserProfile,
	}
	forwarded := func(proto string, more http.Header) http.Header {
		h := http.Header{"X-Forwarded-For": {"100.64.0.7"}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {proto}}
		maps.Copy(h, more)
		return h
	}
	ann := http.Header{
		identity.Login: {"ann@example.com"}, identity.Name: {"=?utf-8?q?=C3=84nn?="}, identity.Picture: {"https://example.com/ann.png"}, identity.Info: {infoURL},
		identity.DeviceName: {"laptop.tail1234.ts.net"},
	}
	ci := http.Header{identity.DeviceName: {"ci.tail1234.ts.net"}, identity.DeviceTags: {"tag:ci,tag:k8s"}}
	cases := map[string]struct {
		reason    string
		whois     *apitype.WhoIsResponse
		tls       bool
		http2     bool
		anonymous bool
		want      http.Header
	}{
		"Anonymous": {
			reason: "Without the client's address there is no identity, no such header from the client, and no address of tailscaled.",
			whois:  user, anonymous: true,
			want: http.Header{"X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"http"}},
		},
		"AnonymousTLS": {
			reason: "So it is with TLS.",
			whois:  user, anonymous: true, tls: true,
			want: http.Header{"X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"https"}},
		},
		"User": {
			reason: "A backend gets the caller's identity in tailscaled's headers, and no such headers from the client.",
			whois:  user, tls: true,
			want: forwarded("https", ann),
		},
		"HTTP2": {
			reason: "Clients may speak HTTP/2.",
			whois:  user, tls: true, http2: true,
			want: forwarded("https", ann),
		},
		"Tagged": {
			reason: "A request from a tagged machine has its sorted tags and no user.",
			whois:  tagged, tls: true,
			want: forwarded("https", ci),
		},
		"Unknown": {
			reason: "A request from an unknown client has no identity.",
			tls:    true,
			want:   forwarded("https", nil),
		},
		"NoNode": {
			reason: "A request from a client without a device has no identity.",
			whois:  &apitype.WhoIsResponse{UserProfile: user.UserProfile}, tls: true,
			want: forwarded("https", nil),
		},
		"Plain": {
			reason: "Requests without TLS have the same headers.",
			whois:  user,
			want:   forwarded("http", ann),
		},
		"PlainTagged": {
			reason: "Requests without TLS have the same tags.",
			whois:  tagged,
			want:   forwarded("http", ci),
		},
		"PlainHTTP2": {
			reason: "Clients may speak HTTP/2 without TLS, as gRPC clients do.",
			whois:  tagged, http2: true,
			want: forwarded("http", ci),
		},
	}
	for name, tc := range cases {
		for backends, several := range map[string]bool{"One": false, "Several": true} {
			t.Run(backends+"/"+name, func(t *testing.T) {
				got := make(chan *http.Request, 1)
				upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r }))
				defer upstream.Close()
				c := newCluster()
				s, _ := newServer(t, c, "")
				s.opts.WhoIs = func(_ context.Context, addr string) (*apitype.WhoIsResponse, error) {
					if addr != someone && !tc.anonymous || tc.whois == nil {
						return nil, errors.New("boom")
					}
					return tc.whois, nil
				}
				end := plan.Termination{Listen: freeAddress(t), Backend: strings.TrimPrefix(upstream.URL, "http://"), HTTP: true, Anonymous: tc.anonymous}
				if several {
					end = amongTwo(t, end)
				}
				url := "http://" + host + "/a?b=c"
				if tc.tls {
					end.Secret, url = "web-tls", "https://"+host+"/a?b=c"
				}
				set(t, s, end)
				if tc.tls {
					c.update(t, "web-tls", ca.secret(1))
				}

				conn := connect(t, end.Listen)
				if !tc.anonymous {
					conn = dial(t, end.Listen, someone)
				}
				tr := &http.Transport{
					DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
					TLSClientConfig: &tls.Config{
						RootCAs: ca.pool, MinVersion: tls.VersionTLS12,
					},
					Protocols: &http.Protocols{},
				}
				tr.Protocols.SetHTTP1(!tc.http2)
				tr.Protocols.SetHTTP2(tc.http2)
				tr.Protocols.SetUnencryptedHTTP2(tc.http2 && !tc.tls)
				defer tr.CloseIdleConnections()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range identity.Headers() {
					req.Header[h] = []string{"mallory", "tag:admin"}
					req.Header[strings.ToLower(strings.ReplaceAll(h, "-", "_"))] = []string{"mallory"}
				}
				if !tc.http2 {
					// Headers named in Connection are dropped on the way. HTTP/2 has no such header.
					req.Header.Set("Connection", identity.Login+", "+identity.DeviceTags)
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
}

// TestForgedHeader checks that a client cannot pass itself off as another one to a listener that
// gets no headers from tailscaled.
func TestForgedHeader(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the backend got a request") }))
	defer upstream.Close()
	s, _ := newServer(t, newCluster(), "")
	end := plan.Termination{Listen: freeAddress(t), Backend: strings.TrimPrefix(upstream.URL, "http://"), HTTP: true, Anonymous: true}
	set(t, s, end)
	conn := connect(t, end.Listen)
	// In one piece: what the server has not read when it closes the connection resets it.
	forged := &bytes.Buffer{}
	if _, err := headerOf(someone, end.Listen).WriteTo(forged); err != nil {
		t.Fatal(err)
	}
	forged.WriteString("GET / HTTP/1.1\r\nHost: web\r\n\r\n")
	if _, err := forged.WriteTo(conn); err != nil {
		t.Fatal(err)
	}
	rsp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(rsp.Body)
	if rsp.StatusCode != http.StatusBadRequest {
		t.Errorf("want 400 for a header in front of a request, got %s", rsp.Status)
	}
}

func TestCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		c := &caller{ask: func() http.Header {
			requests++
			return http.Header{identity.DeviceTags: {strconv.Itoa(requests)}}
		}}
		for _, want := range []string{"1", "1", "2"} {
			if got := c.headers().Get(identity.DeviceTags); got != want {
				t.Errorf("An answer must be cached for %s: want that of request %s, got %s", whoIsFresh, want, got)
			}
			time.Sleep(whoIsFresh - time.Millisecond)
		}
	})
}

func TestHTTPRefused(t *testing.T) {
	ca := newAuthority(t)
	c := newCluster()
	s, _ := newServer(t, c, "")
	at := freeAddress(t)
	set(t, s, plan.Termination{Listen: at, Secret: "web-tls", Backend: freeAddress(t).String(), HTTP: true})
	c.update(t, "web-tls", ca.secret(1))
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
