// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"tailscale.com/client/tailscale/apitype"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
)

// A witness is a backend that records the identity of callers as it sees it.
type witness struct {
	mu       sync.Mutex
	requests []heard
}

// A heard request holds what a backend can take for facts about its connection or its caller.
type heard struct {
	Path     string
	Logins   []string
	Upgrade  string
	Settings string
	Named    string
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	h := heard{
		Path: r.URL.Path, Upgrade: r.Header.Get("Upgrade"), Settings: r.Header.Get("HTTP2-Settings"),
		Named: r.Header.Get("X-Named"),
	}
	for _, fields := range []http.Header{r.Header, r.Trailer} {
		for name, values := range fields {
			// PHP and CGI read these characters as one.
			variable := strings.NewReplacer(".", "-", "_", "-").Replace(strings.ToLower(name))
			if strings.HasPrefix(variable, "tailscale-") && name != identity.Info {
				h.Logins = append(h.Logins, values...)
			}
		}
	}
	w.mu.Lock()
	w.requests = append(w.requests, h)
	w.mu.Unlock()
	toHTTP2 := slices.ContainsFunc(r.Header.Values("Upgrade"), func(v string) bool { return strings.Contains(strings.ToLower(v), "h2c") })
	if !toHTTP2 && h.Upgrade != "websocket" {
		return
	}
	conn, buf, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer closeQuietly(conn)
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+h.Upgrade+"\r\n\r\n")
	if toHTTP2 {
		// Hypercorn does the same (its protocol/h11.py): it requires neither settings nor a
		// Connection header.
		(&http2.Server{}).ServeConn(buffered{Conn: conn, reader: buf}, &http2.ServeConnOpts{Handler: w})
		return
	}
	_, _ = io.Copy(conn, buf)
}

// A buffered connection includes the bytes that were already read from it.
type buffered struct {
	net.Conn
	reader io.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.reader.Read(p) }

func (w *witness) heard() []heard {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

// secondRequest returns what a client of HTTP/2 sends after an upgrade of the connection: a
// separate request, which a proxy in between does not see.
func secondRequest(t *testing.T) string {
	t.Helper()
	b := &bytes.Buffer{}
	b.WriteString(http2.ClientPreface)
	f := http2.NewFramer(b, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	fields := &bytes.Buffer{}
	e := hpack.NewEncoder(fields)
	for _, h := range [][2]string{
		{":method", "GET"}, {":scheme", "http"}, {":authority", host}, {":path", "/second"},
		{"tailscale-user-login", "mallory"}, {"tailscale_user_login", "mallory"}, {"tailscale.user.login", "mallory"},
	} {
		if err := e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: fields.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestUpgrade sends requests byte by byte, like a client that wants to impersonate another
// caller.
func TestUpgrade(t *testing.T) {
	ann := []string{"ann@example.com"}
	settings := "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"
	second := secondRequest(t)
	cases := map[string]struct {
		reason   string
		request  string
		followUp string
		switched bool
		want     []heard
	}{
		"H2C": {
			reason:   "An upgrade to HTTP/2 is not passed on: the agent would not see the requests on the connection.",
			request:  "GET /first HTTP/1.1\r\nHost: web\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + settings + "\r\n",
			followUp: second,
			want:     []heard{{Path: "/first", Logins: ann}},
		},
		"H2CWithoutSettings": {
			reason:  "The HTTP2-Settings header is removed whether or not Connection names it.",
			request: "GET /first HTTP/1.1\r\nHost: web\r\n" + settings + "\r\n",
			want:    []heard{{Path: "/first", Logins: ann}},
		},
		"H2CInOtherCase": {
			reason:   "Letter case, several headers and spaces make no difference.",
			request:  "GET /first HTTP/1.1\r\nHost: web\r\nconnection: keep-alive\r\nCONNECTION:  http2-settings ,upgrade\r\nuPGRADE: H2C\r\n" + settings + "\r\n",
			followUp: second,
			want:     []heard{{Path: "/first", Logins: ann}},
		},
		"H2CAfterWebSocket": {
			reason:   "An upgrade that offers other protocols besides websocket is not passed on.",
			request:  "GET /first HTTP/1.1\r\nHost: web\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: websocket, h2c\r\n" + settings + "\r\n",
			followUp: second,
			want:     []heard{{Path: "/first", Logins: ann}},
		},
		"H2CInSecondHeader": {
			reason:   "An upgrade that offers another protocol in a separate header is not passed on.",
			request:  "GET /first HTTP/1.1\r\nHost: web\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\nConnection: HTTP2-Settings\r\n" + settings + "\r\n",
			followUp: second,
			want:     []heard{{Path: "/first", Logins: ann}},
		},
		"OtherProtocol": {
			reason:  "An upgrade to an unknown protocol is not passed on.",
			request: "GET /first HTTP/1.1\r\nHost: web\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n",
			want:    []heard{{Path: "/first", Logins: ann}},
		},
		"WebSocket": {
			reason:   "An upgrade to WebSocket is passed on with the caller's identity.",
			request:  "GET /first HTTP/1.1\r\nHost: web\r\nConnection: Upgrade, Tailscale-User-Login\r\nUpgrade: WebSocket\r\nTailscale-User-Login: mallory\r\nTailscale_User_Login: mallory\r\nTailscale.User.Login: mallory\r\n\r\n",
			followUp: "ping",
			switched: true,
			want:     []heard{{Path: "/first", Logins: ann, Upgrade: "websocket"}},
		},
		"WebSocketWithSettings": {
			reason:   "An upgrade to WebSocket is passed on without HTTP/2 settings.",
			request:  "GET /first HTTP/1.1\r\nHost: web\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + settings + "\r\n",
			followUp: "ping",
			switched: true,
			want:     []heard{{Path: "/first", Logins: ann, Upgrade: "websocket"}},
		},
		"WebSocketOfPost": {
			reason:  "An upgrade to WebSocket requires GET (RFC 6455, section 4.1).",
			request: "POST /first HTTP/1.1\r\nHost: web\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
			want:    []heard{{Path: "/first", Logins: ann}},
		},
		"Named": {
			reason: "The agent removes headers that any Connection header names.",
			request: "GET /first HTTP/1.1\r\nHost: web\r\nConnection: close, x-NAMED\r\nConnection: Tailscale-User-Login\r\nX-Named: 1\r\n" +
				"Tailscale-User-Login: mallory\r\n\r\n",
			want: []heard{{Path: "/first", Logins: ann}},
		},
		"Folded": {
			reason: "A folded header line does not become a second header.",
			request: "GET /first HTTP/1.1\r\nHost: web\r\nX-Other: 1\r\n Tailscale-User-Login: mallory\r\nConnection: Upgrade,\r\n HTTP2-Settings\r\nUpgrade:\r\n h2c\r\n" +
				settings + "\r\n",
			followUp: second,
			want:     []heard{{Path: "/first", Logins: ann}},
		},
		"Trailers": {
			reason: "Trailers carry no identity, in either spelling.",
			request: "POST /first HTTP/1.1\r\nHost: web\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nTrailer: Tailscale-User-Login, Tailscale_User_Login\r\n\r\n" +
				"1\r\na\r\n0\r\nTailscale-User-Login: mallory\r\nTailscale_User_Login: mallory\r\n\r\n",
			want: []heard{{Path: "/first", Logins: ann}},
		},
		"Pipelined": {
			reason: "Forged headers are removed from each request of a connection.",
			request: "GET /first HTTP/1.1\r\nHost: web\r\n\r\n" +
				"GET /second HTTP/1.1\r\nHost: web\r\nConnection: close\r\nTailscale_User-Login: mallory\r\ntailscale-user-login: mallory\r\n\r\n",
			want: []heard{{Path: "/first", Logins: ann}, {Path: "/second", Logins: ann}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &witness{}
			upstream := httptest.NewUnstartedServer(w)
			upstream.Config.Protocols = &http.Protocols{}
			upstream.Config.Protocols.SetHTTP1(true)
			upstream.Config.Protocols.SetUnencryptedHTTP2(true)
			upstream.Start()
			defer upstream.Close()
			s, _ := newServer(t, newCluster(), "")
			s.opts.WhoIs = func(context.Context, string) (*apitype.WhoIsResponse, error) {
				return &apitype.WhoIsResponse{Node: &tailcfg.Node{}, UserProfile: &tailcfg.UserProfile{LoginName: "ann@example.com"}}, nil
			}
			at := freeAddress(t)
			set(t, s, plan.Termination{Listen: at, Backend: strings.TrimPrefix(upstream.URL, "http://"), HTTP: true})

			conn := dial(t, at, someone)
			if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, tc.request); err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(conn)
			for range tc.want {
				rsp, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				closeQuietly(rsp.Body)
				if switched := rsp.StatusCode == http.StatusSwitchingProtocols; switched != tc.switched {
					t.Errorf("\n%s\nwant the protocol switched %t, got %s", tc.reason, tc.switched, rsp.Status)
				}
			}
			carryOn(t, conn, reader, tc.followUp, tc.switched)
			got := w.heard()
			for i := range got {
				got[i].Logins = nonEmpty(got[i].Logins)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nbackend: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// carryOn continues on a connection after its first request, until the other side has had the
// chance to act.
func carryOn(t *testing.T, conn net.Conn, reader io.Reader, followUp string, echoed bool) {
	t.Helper()
	if followUp == "" {
		return
	}
	if _, err := io.WriteString(conn, followUp); err != nil && echoed {
		t.Fatal(err)
	}
	if echoed {
		b := make([]byte, len(followUp))
		if _, err := io.ReadFull(reader, b); err != nil || string(b) != followUp {
			t.Errorf("want %q back, got %q, %v", followUp, b, err)
		}
		return
	}
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
	// The agent answers another request or closes the connection.
	_, _ = io.Copy(io.Discard, reader)
}

// nonEmpty returns the non-empty values. Names and pictures that a user lacks are sent as empty
// headers.
func nonEmpty(values []string) []string {
	var out []string
	for _, v := range values {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}
