// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// ledgerExample sends requests below /ledger of the demo's Gateway to the backend ledger, with
	// a client certificate.
	ledgerExample = "examples/route-policy-mtls.yaml"
	ledger        = "ledger"
	ledgerHost    = "ledger.example.com"
	ledgerClient  = "gateway-client"

	// bookkeeper is a client of the tailnet that hosts svc:ledger.
	bookkeeper = "bookkeeper"
)

// ledgerEgress leads to svc:ledger. The example has a TailscaleServices of that name.
const ledgerEgress = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: ` + ledger + `, namespace: quickstart}
spec:
  tailnet: quickstart
  proxy: {replicas: 1, connectionType: egress}
  endpoints: [{name: books, tailscaleFQDN: %q, port: 443}]
`

// presentsClientCertificate checks that Envoy presents a certificate to a service of the tailnet
// that requires one.
func presentsClientCertificate(t *testing.T) {
	serverCert, serverKey := certificate(t, ledgerHost)
	cert, key := certificate(t, "gateway")
	tailnetOne.serveAt(t, bookkeeper, "svc:"+ledger, "443", demandsCertificate(t, serverCert, serverKey, cert))
	apply(t, fmt.Sprintf(ledgerEgress, ledger+"."+fromLab(t, "TAILNET_DOMAIN")))
	kubectl(t, "create", "configmap", "ledger-ca", "-n", namespace, "--from-file=ca.crt="+serverCert)
	apply(t, ledgerByEgress(t))
	conditionOf(t, "tailscaleendpoints", ledger, "EgressReady", "True", "AllTargetsReady", patience)
	address := addressOfGateway(t, "web")
	says := func(description, want string) {
		t.Helper()
		took := eventually(t, patience, description, func() string {
			// A refusal is an error, too.
			if response, _ := labCurl(t, "cluster", "http://"+address+"/ledger", "web.example.com"); !strings.Contains(response, want) {
				return "the response is " + response
			}
			return ""
		})
		t.Logf("%s after %s", description, took.Round(100*time.Millisecond))
	}
	resolved := func(want string) {
		t.Helper()
		eventually(t, patience, "ResolvedRefs of the policy", func() string {
			if got := jsonpath(t, "tailscaleroutepolicies", ledger, `{.status.ancestors[*].conditions[?(@.type=="ResolvedRefs")].reason}`); got != want {
				return "the condition is " + got
			}
			return ""
		})
	}
	says("Envoy sends nothing without a certificate", "503")
	resolved("InvalidClientCertificateRef")
	kubectl(t, "create", "secret", "tls", ledgerClient, "-n", namespace, "--cert="+cert, "--key="+key)
	says("the ledger accepts the client", "client gateway")
	resolved("ResolvedRefs")

	// The service refuses other certificates, not Envoy.
	cert, key = certificate(t, "stranger")
	apply(t, kubectl(t, "create", "secret", "tls", ledgerClient, "-n", namespace, "--cert="+cert, "--key="+key, "--dry-run=client", "-o=yaml"))
	says("an unknown client is refused", "503")
	resolved("ResolvedRefs")

	tailnetOne.withdraw(t, bookkeeper, "svc:"+ledger)
	kubectl(t, "delete", "-f", ledgerExample, "--timeout=1m")
	kubectl(t, "delete", "secret,configmap", ledgerClient, "ledger-ca", "-n", namespace, "--ignore-not-found")
	leavesNothing(t, ledger)
}

// ledgerByEgress returns the example with the ledger in the tailnet.
func ledgerByEgress(t *testing.T) string {
	t.Helper()
	return strings.NewReplacer(
		"{name: ledger, port: 443}", "{kind: TailscaleEndpoints, name: ledger, port: 443}",
		"kind: TailscaleServices, name: ledger", "kind: TailscaleEndpoints, name: ledger",
	).Replace(readFile(t, ledgerExample))
}

// demandsCertificate serves clients that present the client's certificate, or one of its authority,
// behind all clients of the lab until the test ends. It returns the address.
func demandsCertificate(t *testing.T, cert, key, client string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(readFile(t, client))) {
		t.Fatal("the client has no certificate")
	}
	l := listenBehindClients(t)
	s := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := r.TLS.PeerCertificates[0]
			fmt.Fprintf(w, "client %s by certificate %x", c.Subject.CommonName, c.SerialNumber)
		}),
	}
	// Each request starts a handshake.
	s.SetKeepAlivesEnabled(false)
	go s.ServeTLS(l, "", "") // Ends with Close.
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// listenBehindClients listens where tailscaled of the lab's clients connects to.
func listenBehindClients(t *testing.T) net.Listener {
	t.Helper()
	var l net.Listener
	done := make(chan error)
	go func() {
		// Not unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		h, err := netns.GetFromName("tsgw-client")
		if err != nil {
			done <- err
			return
		}
		err = netns.Set(h)
		if err == nil {
			l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		}
		done <- errors.Join(err, h.Close())
	}()
	if err := <-done; err != nil {
		t.Fatalf("cannot listen behind the tailnet's clients: %v", err)
	}
	return l
}
