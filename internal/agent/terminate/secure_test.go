// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package terminate

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"tailscale.com/client/tailscale/apitype"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// A secureSite is a backend that speaks HTTPS, with a certificate for a name or an address.
type secureSite struct {
	*httptest.Server
	ca *authority

	// serverNames receives the server name of each handshake.
	serverNames chan string
}

func newSecureSite(t *testing.T, ca *authority, name string, h http.Handler, protocols ...string) *secureSite {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}}
	if ip := net.ParseIP(name); ip != nil {
		c.DNSNames, c.IPAddresses = nil, []net.IP{ip}
	}
	secret := ca.issue(c)
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	out := &secureSite{Server: httptest.NewUnstartedServer(h), ca: ca, serverNames: make(chan string, 100)}
	out.EnableHTTP2 = len(protocols) > 0
	out.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
		out.serverNames <- i.ServerName
		return nil, nil
	}}
	out.Config.ErrorLog = log.New(io.Discard, "", 0)
	out.StartTLS()
	t.Cleanup(out.Close)
	return out
}

// backend returns the site as a backend that must have a certificate of its authority for a name.
func (s *secureSite) backend(name string) balance.Backend {
	return balance.Backend{
		Address: s.Listener.Addr().String(), Weight: 1, Health: probe.Healthy,
		TLS: backendtls.Settings{ServerName: name, Authorities: s.ca.pem()},
	}
}

func https(t *testing.T, b ...balance.Backend) plan.Termination {
	t.Helper()
	out := balanced(freeAddress(t), false, b...)
	out.HTTP, out.HTTPS = true, true
	return out
}

func TestHTTPS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	const name = "web.default.svc"
	cases := map[string]struct {
		reason     string
		cert       string
		tls        backendtls.Settings
		plain      bool
		want       int
		serverName string
	}{
		"Verified":         {reason: "A backend with a certificate for the name gets requests.", cert: name, tls: backendtls.Settings{ServerName: name, Authorities: ca.pem()}, want: http.StatusOK, serverName: name},
		"Bundle":           {reason: "Each authority is trusted.", cert: name, tls: backendtls.Settings{ServerName: name, Authorities: other.pem() + ca.pem()}, want: http.StatusOK, serverName: name},
		"Address":          {reason: "A certificate may be for an address, which is not sent.", cert: "10.0.0.7", tls: backendtls.Settings{ServerName: "10.0.0.7", Authorities: ca.pem()}, want: http.StatusOK},
		"WrongName":        {reason: "A certificate for another name is refused.", cert: "api.default.svc", tls: backendtls.Settings{ServerName: name, Authorities: ca.pem()}, want: http.StatusBadGateway},
		"WrongAddress":     {reason: "So is one for the address that is dialed, if another is wanted.", cert: "127.0.0.1", tls: backendtls.Settings{ServerName: "10.0.0.7", Authorities: ca.pem()}, want: http.StatusBadGateway},
		"WrongAuthority":   {reason: "A certificate of another authority is refused.", cert: name, tls: backendtls.Settings{ServerName: name, Authorities: other.pem()}, want: http.StatusBadGateway},
		"System":           {reason: "The authorities of the system do not know that of the backend.", cert: name, tls: backendtls.Settings{ServerName: name}, want: http.StatusBadGateway},
		"BrokenAuthorites": {reason: "Authorities that cannot be read trust nothing.", cert: name, tls: backendtls.Settings{ServerName: name, Authorities: "text"}, want: http.StatusBadGateway},
		"NoSettings":       {reason: "Without settings nothing is sent, and not without TLS either.", cert: name, want: http.StatusBadGateway},
		"Plain":            {reason: "A backend without TLS gets nothing.", plain: true, tls: backendtls.Settings{ServerName: name, Authorities: ca.pem()}, want: http.StatusBadGateway},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			got := make(chan http.Header, 1)
			h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
			var b balance.Backend
			var site *secureSite
			if tc.plain {
				u := httptest.NewServer(h)
				defer u.Close()
				b = siteBackend(u, 1, 0)
			} else {
				site = newSecureSite(t, ca, tc.cert, h)
				b = site.backend(name)
			}
			b.TLS = tc.tls
			s, _ := newServer(t, newCluster(), "")
			s.opts.WhoIs = func(context.Context, string) (*apitype.WhoIsResponse, error) {
				return &apitype.WhoIsResponse{Node: &tailcfg.Node{Name: "laptop.tail1234.ts.net."}, UserProfile: &tailcfg.UserProfile{LoginName: "ann@example.com"}}, nil
			}
			end := https(t, b)
			set(t, s, end)
			c, url := clientOf(t, end.Listen)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(identity.Login, "mallory")
			req.Header["tailscale_user_login"] = []string{"mallory"}
			req.Header.Set(identity.DeviceTags, "tag:admin")
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			closeQuietly(res.Body)
			if res.StatusCode != tc.want {
				t.Fatalf("%s\nwant the status %d, got %d", tc.reason, tc.want, res.StatusCode)
			}
			if tc.want != http.StatusOK {
				select {
				case h := <-got:
					t.Errorf("%s\nthe backend got a request: %v", tc.reason, h)
				default:
				}
				return
			}
			if serverName := <-site.serverNames; serverName != tc.serverName {
				t.Errorf("%s\nwant the server name %q, got %q", tc.reason, tc.serverName, serverName)
			}
			header := <-got
			for _, field := range []string{"Accept-Encoding", "User-Agent", identity.Name, identity.Picture, identity.Info} {
				header.Del(field)
			}
			want := http.Header{
				"X-Forwarded-For": {"100.64.0.7"}, "X-Forwarded-Host": {host}, "X-Forwarded-Proto": {"http"},
				identity.Login: {"ann@example.com"}, identity.DeviceName: {"laptop.tail1234.ts.net"},
			}
			if diff := cmp.Diff(want, header); diff != "" {
				t.Errorf("%s\nheaders: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHTTPSNames balances the requests of one connection between backends with different names and
// authorities, of which two have the same address.
func TestHTTPSNames(t *testing.T) {
	handler := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	a := newSecureSite(t, newAuthority(t), "a.default.svc", handler("a"))
	b := newSecureSite(t, newAuthority(t), "b.default.svc", handler("b"))
	s, _ := newServer(t, newCluster(), "")
	impostor := a.backend("c.default.svc")
	end := https(t, a.backend("a.default.svc"), b.backend("b.default.svc"))
	set(t, s, end)
	c, url := clientOf(t, end.Listen)
	got := map[string]int{}
	for range 8 {
		_, answer := post(t, c, url, "body")
		got[answer]++
	}
	if diff := cmp.Diff(map[string]int{"a": 4, "b": 4}, got); diff != "" {
		t.Errorf("each backend is verified by its own name. -want, +got:\n%s", diff)
	}

	// There are idle connections to the address, which were verified for another name. The request goes
	// to the other backend.
	end.Balance = &balance.Config{Backends: []balance.Backend{impostor, b.backend("b.default.svc")}}
	set(t, s, end)
	for range 4 {
		if code, answer := post(t, c, url, "body"); code != http.StatusOK || answer != "b" {
			t.Errorf("want the answer of b, got %d %q", code, answer)
		}
	}
	end.Balance = &balance.Config{Backends: []balance.Backend{impostor}}
	set(t, s, end)
	if code, answer := post(t, c, url, "body"); code != http.StatusBadGateway {
		t.Errorf("want the status 502, got %d %q", code, answer)
	}
	// Other authorities of the same backend count at once, too.
	other := b.backend("b.default.svc")
	other.TLS.Authorities = a.ca.pem()
	end.Balance = &balance.Config{Backends: []balance.Backend{other}}
	set(t, s, end)
	if code, answer := post(t, c, url, "body"); code != http.StatusBadGateway {
		t.Errorf("want the status 502 with other authorities, got %d %q", code, answer)
	}
}

// TestSecureTransports verifies that transports for settings that no backend has are forgotten.
func TestSecureTransports(t *testing.T) {
	p := &balance.Picker{}
	b := func(name string) balance.Backend {
		return balance.Backend{Address: "10.0.0.1:443", Weight: 1, TLS: backendtls.Settings{ServerName: name}}
	}
	s := newSecureTransports(&net.Dialer{}, p, protocolHTTP1)
	p.Set(balance.Config{Backends: []balance.Backend{b("a"), b("b")}}, time.Now())
	first := s.to(b("a"))
	s.to(b("b"))
	if s.to(b("a")) != first {
		t.Error("a transport is kept while a backend has its settings")
	}
	p.Set(balance.Config{Backends: []balance.Backend{b("a"), b("c")}}, time.Now())
	s.to(b("c"))
	var got []string
	for _, name := range []string{"a", "b", "c"} {
		if s.transports[b(name).TLS] != nil {
			got = append(got, name)
		}
	}
	if diff := cmp.Diff([]string{"a", "c"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestHTTPSRefused verifies that the dialer checks the address of a backend with TLS.
func TestHTTPSRefused(t *testing.T) {
	var served atomic.Int32
	site := newSecureSite(t, newAuthority(t), "web.default.svc", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	s, _ := newServer(t, newCluster(), "")
	s.opts.Control = address.Control
	end := https(t, site.backend("web.default.svc"))
	set(t, s, end)
	c, url := clientOf(t, end.Listen)
	if code, _ := post(t, c, url, "body"); code != http.StatusBadGateway || served.Load() > 0 || len(site.serverNames) > 0 {
		t.Errorf("want the status 502 and no connection, got %d, and %d requests", code, served.Load())
	}
}

// TestHTTPSCall has gRPC calls, which need HTTP/2.
func TestHTTPSCall(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Proto", r.Proto)
		_, _ = io.Copy(w, r.Body)
	})
	cases := map[string]struct {
		reason    string
		protocols []string
		want      int
	}{
		"HTTP2": {reason: "A backend that speaks HTTP/2 gets the call.", protocols: []string{protocolHTTP2}, want: http.StatusOK},
		"HTTP1": {reason: "One that does not cannot answer it.", want: http.StatusBadGateway},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			site := newSecureSite(t, newAuthority(t), "web.default.svc", h, tc.protocols...)
			s, _ := newServer(t, newCluster(), "")
			end := https(t, site.backend("web.default.svc"))
			set(t, s, end)
			res := call(t, end.Listen, strings.NewReader("message"))
			if res.StatusCode != tc.want {
				t.Fatalf("%s\nwant the status %d, got %d", tc.reason, tc.want, res.StatusCode)
			}
			if tc.want != http.StatusOK {
				return
			}
			if b, err := io.ReadAll(res.Body); err != nil || string(b) != "message" || res.Header.Get("Proto") != "HTTP/2.0" {
				t.Errorf("want the message by HTTP/2, got %q by %s, %v", b, res.Header.Get("Proto"), err)
			}
		})
	}
}

// TestHTTPSUpgrade upgrades a connection to WebSocket, of a backend that also speaks HTTP/2.
func TestHTTPSUpgrade(t *testing.T) {
	w := &witness{}
	site := newSecureSite(t, newAuthority(t), "web.default.svc", w, protocolHTTP2)
	s, _ := newServer(t, newCluster(), "")
	end := https(t, site.backend("web.default.svc"))
	set(t, s, end)
	conn := dial(t, end.Listen, someone)
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /first HTTP/1.1\r\nHost: web\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTailscale-User-Login: mallory\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	closeQuietly(res.Body)
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("want the protocol switched, got %s", res.Status)
	}
	carryOn(t, conn, reader, "ping", true)
	if diff := cmp.Diff([]heard{{Path: "/first", Upgrade: "websocket"}}, w.heard()); diff != "" {
		t.Errorf("backend: -want, +got:\n%s", diff)
	}
}

// TestHTTPSRestart has a restarted agent serve backends that trust the same authority, which is stored
// once.
func TestHTTPSRestart(t *testing.T) {
	dir := t.TempDir()
	ca := newAuthority(t)
	site := newSecureSite(t, ca, "web.default.svc", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "web") }))
	end := https(t, site.backend("web.default.svc"), site.backend("web.default.svc"))
	// The agent before has ended, so that it does not hold the port.
	ended, stop := context.WithCancel(t.Context())
	stop()
	previous, _ := newServer(t, newCluster(), dir)
	if err := previous.Set(ended, map[string][]plan.Termination{"svc:web": {end}}); err != nil {
		t.Fatal(err)
	}
	stored := ""
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			stored += string(b)
			return err
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(stored, "BEGIN CERTIFICATE"); n != 1 {
		t.Errorf("want the authority stored once, got %d times", n)
	}

	restarted, _ := newServer(t, newCluster(), dir)
	if err := restarted.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]plan.Termination{"svc:web": {end}}, restarted.Serving(), cmp.Comparer(plan.Termination.Equal)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	c, url := clientOf(t, end.Listen)
	if code, answer := post(t, c, url, "body"); code != http.StatusOK || answer != "web" {
		t.Errorf("want the answer of the backend, got %d %q", code, answer)
	}
}
