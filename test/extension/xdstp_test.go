//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	// manyTargets is large enough that a stream for each would be noticed.
	manyTargets = 200
)

// TestXDSTP checks that an Envoy gets the endpoints of many targets over one stream, with the
// project's bootstrap. Objects come from files.
func TestXDSTP(t *testing.T) {
	t.Parallel()
	server, envoy := certificates(t)
	manifests := t.TempDir()
	w := &environment{log: newLog(t), http: map[string]*httptest.Server{}}
	socket := filepath.Join(t.TempDir(), "hooks.sock")
	boot, err := standalone.Bootstrap(envoy)
	if err != nil {
		t.Fatal(err)
	}
	w.Gateway, err = standalone.Start(t.Context(), standalone.Options{
		Extension: socket,
		Backends:  []schema.GroupVersionKind{{Group: "gateway.tailscale.com", Version: "v1alpha1", Kind: "TailscaleServices"}},
		Bootstrap: boot,
		Log:       w.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, w.Stop()) })

	objects := many()
	if err := os.WriteFile(filepath.Join(manifests, "all.yaml"), []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	w.command = []string{
		program(t), "--hooks-address=unix:" + socket, "--eds-address=127.0.0.1:5006", "--eds-tls=" + server, "--xds-mode=XDSTP",
		"--eds-client-ca=" + filepath.Join(server, "ca.crt"), "--eds-client-name=" + standalone.EndpointClient,
		"--observe-address=127.0.0.1:5007", "--from-files=" + manifests, "--direct-targets",
	}
	w.startExtension(t)
	t.Cleanup(func() { check(t, w.extension.Stop(limit)) })
	for _, addr := range []string{"192.0.2.10:8000", "127.0.0.1:8000"} {
		w.serve(t, addr, respond(addr))
	}
	if err := w.Write("all", objects); err != nil {
		t.Fatal(err)
	}
	for i := range manyTargets {
		if err := w.Answers(within(t), gateway+strconv.Itoa(i), "many.example.com"); err != nil {
			t.Fatal(err)
		}
	}
	// The only backend is a name.
	w.answers(t, "named.example.com", "127.0.0.1:8000")

	err = w.Until(within(t), func(ctx context.Context) error {
		got, err := w.metrics(ctx, "127.0.0.1:5007", "tailscale_gateway_eds_streams", "tailscale_gateway_eds_subscriptions")
		if want := fmt.Sprintf("1 %d", manyTargets+1); err == nil && got != want {
			err = errors.Errorf("streams and lists: want %s, got %s", want, got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	// The renewed certificate is in use: the extension trusts only its authority.
	check(t, w.extension.Stop(limit))
	w.command = append(w.command, "--eds-client-ca="+renew(t, envoy))
	w.startExtension(t)
	err = w.Until(within(t), func(ctx context.Context) error {
		got, err := w.metrics(ctx, "127.0.0.1:5007", "tailscale_gateway_eds_streams")
		if err == nil && got != "1" {
			err = errors.Errorf("streams by the renewed certificate: want 1, got %s", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// metrics returns metrics of an extension by name.
func (w *environment) metrics(ctx context.Context, addr string, names ...string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return "", err
	}
	c := w.Client()
	defer c.CloseIdleConnections()
	rsp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer rsp.Body.Close() // The body is only read.
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		return "", err
	}
	out := make([]string, len(names))
	for line := range strings.Lines(string(b)) {
		for i, n := range names {
			if v, ok := strings.CutPrefix(line, n+" "); ok {
				out[i] = strings.TrimSpace(v)
			}
		}
	}
	return strings.Join(out, " "), nil
}

// certificates returns a folder with the endpoint server's certificates, and one with the files
// that an Envoy mounts.
func certificates(t *testing.T) (server, envoy string) {
	t.Helper()
	at := time.Now()
	a, err := credentials.NewAuthority("authority", at)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := a.Server([]string{standalone.EndpointServer}, at)
	if err != nil {
		t.Fatal(err)
	}
	presented, err := a.Client(standalone.EndpointClient, at)
	if err != nil {
		t.Fatal(err)
	}
	server, envoy = t.TempDir(), t.TempDir()
	for file, b := range map[string][]byte{
		filepath.Join(server, "tls.crt"): shown.Cert, filepath.Join(server, "tls.key"): shown.Key, filepath.Join(server, "ca.crt"): a.Cert,
		filepath.Join(envoy, "tls.crt"): presented.Cert, filepath.Join(envoy, "tls.key"): presented.Key, filepath.Join(envoy, "server", "tls.crt"): a.Cert,
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return server, envoy
}

// renew replaces Envoy's certificate with one of a new authority, and returns the file of the
// authority's certificate. Files are renamed into Envoy's folder, as in a volume.
func renew(t *testing.T, envoy string) string {
	t.Helper()
	at := time.Now()
	a, err := credentials.NewAuthority("renewed", at)
	if err != nil {
		t.Fatal(err)
	}
	presented, err := a.Client(standalone.EndpointClient, at)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"tls.crt": presented.Cert, "tls.key": presented.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(envoy, name)); err != nil {
			t.Fatal(err)
		}
	}
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, a.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	return ca
}

// many returns many targets: ports of a few services, with a rule for each. Envoy Gateway is slow
// with files of many objects.
func many() string {
	const rules, ports = 16, 50
	out := &strings.Builder{}
	out.WriteString(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: default}
spec:
  gatewayClassName: envoy
  listeners: [{name: http, protocol: HTTP, port: 8888}]
`)
	for i := range manyTargets {
		if i%rules == 0 {
			out.WriteString(route("web-"+strconv.Itoa(i), "many.example.com"))
		}
		fmt.Fprintf(out, "  - matches: [{path: {value: /%d}}]\n    backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web-%d, port: %d}]\n", i, i/ports, 1000+i)
	}
	for i := range manyTargets / ports {
		var portSpecs []string
		for p := range ports {
			portSpecs = append(portSpecs, fmt.Sprintf("tcp:%d", 1000+i*ports+p))
		}
		out.WriteString(service("web-"+strconv.Itoa(i), "192.0.2.10", portSpecs...))
	}
	// Every machine resolves this name without a server.
	out.WriteString(route("named", "named.example.com") + "  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: named, port: 80}]\n")
	out.WriteString(service("named", "localhost", "tcp:80"))
	return out.String()
}

// route returns the start of a route, which rules follow.
func route(name, hostname string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: default}
spec:
  parentRefs: [{name: gw}]
  hostnames: [%s]
  rules:
`, name, hostname)
}

// service returns a service with these ports, which one host answers.
func service(name, host string, ports ...string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: %s, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  vipService: {ports: ["%s"]}
  backends: [{kind: External, name: app, host: %s, port: 8000}]
`, name, strings.Join(ports, `", "`), host)
}
