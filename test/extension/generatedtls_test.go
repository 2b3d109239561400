//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"crypto/tls"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

// TestGeneratedTLS checks that a generated route reaches a service that serves TLS, and none whose
// certificate does not chain to the system's authorities for its name in the tailnet.
func TestGeneratedTLS(t *testing.T) {
	t.Parallel()
	system, stranger := newAuthority(t, "system"), newAuthority(t, "stranger")
	w := newEnvironmentOf(t, standalone.Options{Authorities: system.pem()})
	w.serveAs(t, "192.0.2.20:10040", system.issue(t, "good.prod.ts.net", time.Hour))
	misnamed := w.serveAs(t, "192.0.2.20:10041", system.issue(t, "other.prod.ts.net", time.Hour))
	w.serveAs(t, "192.0.2.20:10042", stranger.issue(t, "foreign.prod.ts.net", time.Hour))
	w.apply(t, "generated-tls.yaml")
	w.discovered(t, `{
discoveredEndpoints: [{name: svc-foreign, source: Services, tailscaleFQDN: foreign.prod.ts.net.}, {name: svc-good, source: Services, tailscaleFQDN: good.prod.ts.net.}, {name: svc-misnamed, source: Services, tailscaleFQDN: misnamed.prod.ts.net.}],
egressTargets: [
{name: svc-foreign/443, address: "100.100.0.1:443", protocol: HTTPS, readyProxies: 1, service: "found-foreign:443"},
{name: svc-good/443, address: "100.100.0.2:443", protocol: HTTPS, readyProxies: 1, service: "found-good:443"},
{name: svc-misnamed/443, address: "100.100.0.3:443", protocol: HTTPS, readyProxies: 1, service: "found-misnamed:443"}]}`)
	w.answers(t, "good.tailscale.local/tailscale/good/status", "good.prod.ts.net/status")

	for service, counter := range map[string]string{"misnamed": "ssl.fail_verify_san", "foreign": "ssl.fail_verify_error"} {
		w.until(t, func(ctx context.Context) error {
			if err := w.gets(service+".tailscale.local", "tailscale/"+service+"/status", http.StatusServiceUnavailable)(ctx); err != nil {
				return err
			}
			return w.counted(ctx, "cluster.httproute/default/"+names.Child("gw", "prod", "egress", "svc-"+service)+"/rule/0."+counter)
		})
	}

	misnamed.Close()
	w.serveAs(t, "192.0.2.20:10041", system.issue(t, "misnamed.prod.ts.net", time.Hour))
	w.answers(t, "misnamed.tailscale.local/tailscale/misnamed/status", "misnamed.prod.ts.net/status")
}

// serveAs serves with a certificate, and responds with the request's host and path.
func (w *environment) serveAs(t *testing.T, addr string, as *issued) *httptest.Server {
	t.Helper()
	c, err := tls.X509KeyPair(as.chain, as.key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(returnRequest())
	s.Listener = w.listen(t, addr)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = log.New(w.log, "", log.LstdFlags)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}
