//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ledger is a path to a backend that requires a client certificate.
const ledger = "192.0.2.32:9445"

// presentsCertificates checks that Envoy presents a certificate to the backend that requires one,
// and to no other.
func presentsCertificates(t *testing.T, w *environment) {
	authority, stranger := newAuthority(t, "authority"), newAuthority(t, "stranger")
	waiting, release := w.serveMTLS(t, ledger, authority)
	w.createObject(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ledger-ca"}, Data: map[string]string{"ca.crt": string(authority.pem())}})
	w.apply(t, "clientcertificate.yaml")
	for _, u := range examplesOf(t, "route-policy-mtls.yaml") {
		w.create(t, u)
	}
	path := query{path: "ledger"}

	t.Run("NoSecret", func(t *testing.T) {
		w.until(t, w.responds(path, "503"))
		w.resolves(t, "False/InvalidClientCertificateRef: Rule ledger: Secret default/gateway-client does not exist; make it, or correct clientCertificateRef")
		if err := w.responds(query{path: "other"}, "200 /other ")(within(t)); err != nil {
			t.Errorf("another rule is not served: %v", err)
		}
		w.until(t, w.explainsPolicy("web.example.com", "default/ledger ledger: answers 503, Secret default/gateway-client does not exist"))
	})
	first := authority.issue(t, "first", time.Hour)
	t.Run("Presented", func(t *testing.T) {
		w.createObject(t, first.secret("gateway-client"))
		w.until(t, w.responds(path, "200 first"))
		w.resolves(t, "True/ResolvedRefs: All client certificates can be presented")
		// The route of the backend has no such rule.
		w.until(t, w.responds(query{host: "ledger.example.com"}, "503"))
	})
	t.Run("Renewed", func(t *testing.T) {
		// A request is in flight while the certificate is replaced.
		body, end := w.begin(t, "ledger/slow")
		defer end()
		<-waiting
		w.replace(t, authority.issue(t, "second", time.Hour).secret("gateway-client"))
		w.until(t, w.responds(path, "200 second"))
		close(release)
		if b, err := io.ReadAll(body); err != nil || string(b) != "first" {
			t.Errorf("the request in flight got %q, %v", b, err)
		}
	})
	t.Run("OtherAuthority", func(t *testing.T) {
		w.replace(t, stranger.issue(t, "other", time.Hour).secret("gateway-client"))
		w.until(t, w.responds(path, "503"))
		w.resolves(t, "True/ResolvedRefs: All client certificates can be presented")
	})
	t.Run("Expired", func(t *testing.T) {
		old := authority.issue(t, "old", -time.Minute)
		w.replace(t, old.secret("gateway-client"))
		w.resolves(t, "False/ClientCertificateExpired: Rule ledger: Secret default/gateway-client has a certificate that expired at "+old.expiry.Format(time.RFC3339)+"; renew it")
		w.until(t, w.responds(path, "503"))
	})
	t.Run("RouteBackends", func(t *testing.T) {
		w.replace(t, authority.issue(t, "third", time.Hour).secret("gateway-client"))
		w.until(t, w.responds(path, "200 third"))
		w.create(t, policyOf(t, `{targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: ledger}], rules: [
{name: a, matches: [{method: GET}], actions: [{type: BackendTLS, backendTLS: {clientCertificateRef: {name: gateway-client}}}]}]}`, "ledger-route"))
		w.until(t, w.responds(query{host: "ledger.example.com"}, "200 third"))
		w.remove(t, policyNamed("ledger-route"))
		w.until(t, w.responds(query{host: "ledger.example.com"}, "503"))
	})
	t.Run("Gateway", func(t *testing.T) { gatewayPresents(t, w, authority) })
	t.Run("Restarted", func(t *testing.T) { survivesRestart(t, w, path) })
	t.Run("HidesKey", func(t *testing.T) {
		printed, err := os.ReadFile(w.log.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"PRIVATE KEY", first.keyLine()} {
			if bytes.Contains(printed, []byte(text)) {
				t.Errorf("the log has %q", text)
			}
		}
		b, err := w.Admin(within(t), "/config_dump?resource=dynamic_active_secrets")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "tailscale/client-certificate/default/gateway-client") || strings.Contains(string(b), "PRIVATE KEY") {
			t.Errorf("Envoy's own page of secrets: %s", b)
		}
	})
	w.remove(t, policyNamed("ledger"))
	w.until(t, w.responds(path, "200 /ledger "))
}

// survivesRestart checks that a restarted extension answers no hook before it has the Secrets.
func survivesRestart(t *testing.T, w *environment, path query) {
	previous, err := w.revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.extension.Kill(); err != nil {
		t.Fatal(err)
	}
	w.startExtension(t)
	served := func(ctx context.Context, requests int) {
		for range requests {
			if err := w.responds(path, "200 third")(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.until(t, func(ctx context.Context) error {
		served(ctx, 10)
		// A starting replica triggers a new translation of Envoy Gateway.
		current, err := w.revision(ctx)
		if err == nil && current.GetGeneration() == previous.GetGeneration() {
			err = errors.New("the extension has triggered no new translation")
		}
		return err
	})
	served(within(t), 200)
}

// gatewayPresents checks that Envoy presents the certificate in the Gateway's spec.tls.backend to
// all kinds of backends, and that policies take precedence.
func gatewayPresents(t *testing.T, w *environment, a *authority) {
	gw := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway"}}
	gw.SetNamespace("default")
	gw.SetName("gw")
	own, service, policy := query{host: "ledger.example.com"}, query{host: "ledger-service.example.com"}, query{path: "ledger"}

	w.patch(t, gw, `{"spec":{"tls":{"backend":{"clientCertificateRef":{"name":"of-gateway"}}}}}`)
	w.until(t, w.responds(own, "503"))
	w.until(t, func(ctx context.Context) error {
		return w.explained(ctx, "ledger.example.com", "Gateway default/gw cannot present its client certificate: Secret default/of-gateway does not exist; make it, or correct clientCertificateRef")
	})
	w.createObject(t, a.issue(t, "of the gateway", time.Hour).secret("of-gateway"))
	w.until(t, w.responds(own, "200 of the gateway"))
	// Envoy Gateway presents the certificate to its own backends. If this cluster existed before,
	// Envoy would wait 15 seconds for endpoints that it has already, and take no other change.
	w.apply(t, "clientcertificate-service.yaml")
	w.until(t, w.responds(service, "200 of the gateway"))
	w.until(t, w.responds(policy, "200 third"))
	w.replace(t, a.issue(t, "of the gateway, renewed", time.Hour).secret("of-gateway"))
	w.until(t, w.responds(own, "200 of the gateway, renewed"))
	route := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute"}}
	route.SetNamespace("default")
	route.SetName("ledger-service")
	w.remove(t, route)
	w.until(t, w.responds(service, "404"))
	w.patch(t, gw, `{"spec":{"tls":null}}`)
	w.until(t, w.responds(own, "503"))
	w.until(t, w.responds(policy, "200 third"))
}

// An authority of certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: cert, key: key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// An issued certificate, and its key.
type issued struct {
	chain, key []byte
	expiry     time.Time
}

// issue returns a certificate for a client, or for the server of that DNS name.
func (a *authority) issue(t *testing.T, name string, valid time.Duration) *issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid).Truncate(time.Second).UTC(),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &issued{
		chain: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), expiry: c.NotAfter,
	}
}

func (i *issued) secret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: i.chain, corev1.TLSPrivateKeyKey: i.key},
	}
}

// keyLine returns a line of the key, which identifies it.
func (i *issued) keyLine() string { return strings.Split(string(i.key), "\n")[1] }

// serveMTLS serves clients with a certificate of an authority, and returns the certificate's name,
// with a new connection for each request. A request for slow/ blocks until release; waiting signals
// its arrival.
func (w *environment) serveMTLS(t *testing.T, addr string, a *authority) (waiting <-chan struct{}, release chan<- struct{}) {
	t.Helper()
	server := a.issue(t, "ledger.example.com", time.Hour)
	pair, err := tls.X509KeyPair(server.chain, server.key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	came, goOn := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/slow") {
			rw.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(rw).Flush() // The client may have gone.
			close(came)
			<-goOn
		}
		fmt.Fprint(rw, r.TLS.PeerCertificates[0].Subject.CommonName) // The client may have gone.
	}))
	s.Listener = w.listen(t, addr)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	s.Config.SetKeepAlivesEnabled(false)
	s.StartTLS()
	t.Cleanup(s.Close)
	return came, goOn
}

// begin sends a request, and returns the body once it has begun, and a function that ends the
// request.
func (w *environment) begin(t *testing.T, path string) (io.Reader, func()) {
	t.Helper()
	req, err := http.NewRequestWithContext(within(t), http.MethodGet, gateway+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "web.example.com"
	c := w.Client()
	rsp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(rsp.Body), func() {
		_ = rsp.Body.Close() // The body is only read.
		c.CloseIdleConnections()
	}
}

// resolves waits until the example's policy has this ResolvedRefs condition.
func (w *environment) resolves(t *testing.T, want string) {
	t.Helper()
	w.until(t, func(ctx context.Context) error {
		p, err := w.policy(ctx, "ledger")
		if err != nil {
			return err
		}
		for _, a := range p.Status.Ancestors {
			for _, c := range a.Conditions {
				if got := fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message); c.Type == "ResolvedRefs" && got != want {
					return errors.Errorf("the policy has %q, want %q", got, want)
				} else if c.Type == "ResolvedRefs" {
					return nil
				}
			}
		}
		return errors.Errorf("the policy has no ResolvedRefs condition: %+v", p.Status)
	})
}

// explainsPolicy returns a check that the extension's explanation of a host has this line for a
// policy before the host's rule.
func (w *environment) explainsPolicy(host, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:5007/explain?path=/&host="+host, nil)
		if err != nil {
			return err
		}
		c := w.Client()
		defer c.CloseIdleConnections()
		rsp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer rsp.Body.Close() // The body is only read.
		b, err := io.ReadAll(rsp.Body)
		if err == nil && !strings.Contains(string(b), want) {
			err = errors.Errorf("the extension returns %s, want %q in it", b, want)
		}
		return err
	}
}

// createObject creates an object in the tests' namespace.
func (w *environment) createObject(t *testing.T, o client.Object) {
	t.Helper()
	o.SetNamespace("default")
	if err := w.kube.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// replace updates a Secret as a renewal of its certificate does.
func (w *environment) replace(t *testing.T, s *corev1.Secret) {
	t.Helper()
	s.Namespace = "default"
	if err := w.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// examplesOf returns the objects of a file, in the tests' namespace.
func examplesOf(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(strings.ReplaceAll(string(b), "namespace: quickstart", "namespace: default"), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), u); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}
