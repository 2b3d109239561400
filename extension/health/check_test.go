// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// addressOf returns the address of a listener.
func addressOf(t *testing.T, l net.Listener) ir.Address {
	t.Helper()
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return ir.Address{Host: host, Port: int32(p)}
}

// TestNetCheckerRefuses checks that probes do not connect to addresses that Envoys must not connect
// to.
func TestNetCheckerRefuses(t *testing.T) {
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer srv.Close()
	at := addressOf(t, srv.Listener)
	for _, host := range []string{at.Host, "localhost", "::ffff:127.0.0.1"} {
		for _, path := range []string{"", "/"} {
			c := Check{Address: ir.Address{Host: host, Port: at.Port}, Path: path}
			want := Result{Reason: "its address is refused: it is a loopback address"}
			if diff := cmp.Diff(want, NetChecker{}.Check(t.Context(), c)); diff != "" {
				t.Errorf("%s, path %q: -want, +got:\n%s", host, path, diff)
			}
		}
	}
	if requests > 0 {
		t.Errorf("A refused address must get no request, and got %d", requests)
	}
}

func TestNetChecker(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/ok":
		case r.URL.Path == "/named" && r.Host == "web.shop.svc":
		case r.URL.Path == "/h2" && r.ProtoMajor == 2:
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/unhealthy", http.StatusFound)
		case r.URL.Path == "/hangs":
			<-r.Context().Done()
			// A reply that the client receives while it closes the connection is an answer.
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, "unhealthy", http.StatusServiceUnavailable)
		}
	})
	plain := httptest.NewUnstartedServer(h)
	plain.Config.Protocols = &http.Protocols{}
	plain.Config.Protocols.SetHTTP1(true)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	defer plain.Close()
	secure := httptest.NewUnstartedServer(h)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	closed := httptest.NewUnstartedServer(h)
	closed.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	closed.StartTLS()
	defer closed.Close()
	asks := httptest.NewUnstartedServer(h)
	asks.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	asks.StartTLS()
	defer asks.Close()
	private := x509.NewCertPool()
	private.AddCert(secure.Certificate())
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	up, trusted := addressOf(t, plain.Listener), addressOf(t, secure.Listener)
	// A port below the range of ephemeral ports, which no other test can get.
	down := ir.Address{Host: "127.0.0.1", Port: 1}

	ok := Result{OK: true}
	cases := map[string]struct {
		reason      string
		check       Check
		authorities *x509.CertPool
		want        Result
	}{
		"Connects":        {reason: "Without a path a connection is enough.", check: Check{Address: up}, want: ok},
		"Refused":         {reason: "Nobody answered.", check: Check{Address: down}, want: Result{Reason: "connection refused"}},
		"HTTPRefused":     {reason: "The same should hold if the server never answers.", check: Check{Address: down, Path: "/ok"}, want: Result{Reason: "connection refused"}},
		"OK":              {reason: "2xx is healthy.", check: Check{Address: up, Path: "/ok"}, want: ok},
		"Redirect":        {reason: "A status of 3xx is an answer, and the probe does not follow it.", check: Check{Address: up, Path: "/moved"}, want: ok},
		"Unhealthy":       {reason: "5xx is an answer.", check: Check{Address: up, Path: "/unhealthy"}, want: Result{Answered: true, Reason: "HTTP status 503"}},
		"Named":           {reason: "Requests carry the name.", check: Check{Address: up, Path: "/named", Name: "web.shop.svc"}, want: ok},
		"HTTP2":           {reason: "gRPC backends speak HTTP/2 alone.", check: Check{Address: up, Path: "/h2", HTTP2: true}, want: ok},
		"Hangs":           {reason: "A timeout is no answer.", check: Check{Address: up, Path: "/hangs", Timeout: 50 * time.Millisecond}, want: Result{Reason: "timed out"}},
		"TLS":             {reason: "The certificate chains to the bundle.", check: Check{Address: trusted, Path: "/ok", TLS: true, ServerName: "example.com", CA: ca}, want: ok},
		"TLSHTTP2":        {reason: "HTTP/2 over TLS.", check: Check{Address: trusted, Path: "/h2", HTTP2: true, TLS: true, ServerName: "example.com", CA: ca}, want: ok},
		"TLSConnects":     {reason: "A handshake is a connection.", check: Check{Address: trusted, TLS: true, ServerName: "example.com", CA: ca}, want: ok},
		"ClientAuth":      {reason: "A server that requires a client certificate is up; probes have none.", check: Check{Address: addressOf(t, closed.Listener), Path: "/ok", TLS: true, ServerName: "example.com", CA: ca}, want: ok},
		"ClientHangs":     {reason: "A server that requires one and then times out did not answer.", check: Check{Address: addressOf(t, asks.Listener), Path: "/hangs", TLS: true, ServerName: "example.com", CA: ca, Timeout: 200 * time.Millisecond}, want: Result{Reason: "timed out"}},
		"ClientUnhealthy": {reason: "A server with optional client certificates should get the whole probe.", check: Check{Address: addressOf(t, asks.Listener), Path: "/unhealthy", TLS: true, ServerName: "example.com", CA: ca}, want: Result{Answered: true, Reason: "HTTP status 503"}},
		"ClientName":      {reason: "The probe should verify the certificate of such a server.", check: Check{Address: addressOf(t, closed.Listener), Path: "/ok", TLS: true, ServerName: "other.test", CA: ca}, want: Result{Reason: "its certificate cannot be verified"}},
		"WrongName":       {reason: "The certificate of another name is not trusted.", check: Check{Address: trusted, TLS: true, ServerName: "other.test", CA: ca}, want: Result{Reason: "its certificate cannot be verified"}},
		"Authorities":     {reason: "Without a bundle, configured authorities count as those of the system.", check: Check{Address: trusted, TLS: true, ServerName: "example.com"}, authorities: private, want: ok},
		"NoBundle":        {reason: "A self-signed certificate is not trusted.", check: Check{Address: trusted, TLS: true, ServerName: "example.com"}, want: Result{Reason: "its certificate cannot be verified"}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			d := tc.check.Timeout
			if d == 0 {
				d = 30 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if diff := cmp.Diff(tc.want, NetChecker{Loopback: true, Authorities: tc.authorities}.Check(ctx, tc.check)); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNewCheck(t *testing.T) {
	hc := &ir.HealthCheck{Path: "/health", Host: "web.shop.svc", Interval: time.Second, Timeout: time.Second, Healthy: 2, Unhealthy: 3}
	c := ir.Candidate{Origin: &ir.Origin{}, Address: ir.Address{Host: "10.0.0.1", Port: 80}, Hostname: "a.example"}
	plain := Check{Address: c.Address, Namespace: "shop", Interval: time.Second, Timeout: time.Second, Healthy: 2, Unhealthy: 3}
	modified := func(fn func(*Check)) Check {
		out := plain
		fn(&out)
		return out
	}
	unnamed := *hc
	unnamed.Host = ""
	cases := map[string]struct {
		reason   string
		protocol ir.Protocol
		shape    ir.Shape
		want     Check
		ok       bool
	}{
		"None":   {reason: "A target without a health check has none.", protocol: ir.ProtocolHTTP},
		"UDP":    {reason: "The receiver of a datagram need not answer.", protocol: ir.ProtocolUDP, shape: ir.Shape{HealthCheck: hc}},
		"HTTP":   {reason: "The check should do as Envoy does.", protocol: ir.ProtocolHTTP, shape: ir.Shape{HealthCheck: hc}, want: modified(func(c *Check) { c.Path, c.Name = "/health", "web.shop.svc" }), ok: true},
		"TCP":    {reason: "Envoy checks the connection if the cluster has no HTTP.", protocol: ir.ProtocolTCP, shape: ir.Shape{HealthCheck: hc}, want: plain, ok: true},
		"GRPC":   {reason: "gRPC is HTTP/2.", protocol: ir.ProtocolGRPC, shape: ir.Shape{HealthCheck: hc}, want: modified(func(c *Check) { c.Path, c.Name, c.HTTP2 = "/health", "web.shop.svc", true }), ok: true},
		"Hosted": {reason: "Without a host the endpoint's is used.", protocol: ir.ProtocolHTTP, shape: ir.Shape{HealthCheck: &unnamed}, want: modified(func(c *Check) { c.Path, c.Name = "/health", "a.example" }), ok: true},
		"TLS": {
			reason: "The certificate states the server's name.", protocol: ir.ProtocolHTTP, shape: ir.Shape{HealthCheck: hc, TLS: &ir.UpstreamTLS{CA: "pem"}},
			want: modified(func(c *Check) {
				c.Path, c.Name, c.TLS, c.ServerName, c.CA = "/health", "web.shop.svc", true, "web.shop.svc", "pem"
			}), ok: true,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			k := key("web")
			k.Protocol = tc.protocol
			got, ok := NewCheck(&ir.Target{Key: k, Shape: tc.shape}, c)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("%s\n%v, want %v; -want, +got\n%s", tc.reason, ok, tc.ok, diff)
			}
		})
	}
}
