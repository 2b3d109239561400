// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/component"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/pki"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

const (
	// acme is the name of the component that stands in for Let's Encrypt, and of its files.
	acme = "pebble"

	// certificateLifetime is the same as Let's Encrypt's, 90 days, in seconds.
	certificateLifetime = 90 * 24 * 60 * 60
)

// ACMERoot returns the file of the ACME server's root certificate. The server creates a new
// root each time it starts.
func ACMERoot(p host.Paths) string { return filepath.Join(p.ACME(), "root.pem") }

// acmeFile returns the path of a file of the ACME server.
func acmeFile(p host.Paths, name string) string { return filepath.Join(p.ACME(), acme+name) }

// Trusted returns the file of the certificates that the lab's tailscaled trusts: this
// machine's bundle, and the CA of the ACME server's HTTPS certificate.
func Trusted(p host.Paths) string { return filepath.Join(p.ACME(), "ca-certificates.crt") }

// writeACME writes the files of the ACME server, and the bundle for images.
func writeACME(p host.Paths, hub plan.Hub, at time.Time) error {
	if err := os.MkdirAll(p.ACME(), 0o700); err != nil {
		return errors.Wrap(err, "cannot make the ACME server's folder")
	}
	ca, err := pki.NewAuthority("lab ACME server", at)
	if err != nil {
		return err
	}
	cert, key, err := ca.Issue(pki.Request{Name: acme, IPs: []net.IP{hub.Address().AsSlice()}})
	if err != nil {
		return err
	}
	if err := pki.WritePair(p.ACME(), acme, cert, key); err != nil {
		return err
	}
	if err := os.WriteFile(acmeFile(p, "-ca.crt"), ca.PEM(), 0o644); err != nil { // A certificate is public.
		return errors.Wrap(err, "cannot write certificate of the ACME server's authority")
	}
	system, err := os.ReadFile(images.Bundle)
	if err != nil {
		return errors.Wrap(err, "cannot read this machine's certificates")
	}
	if err := os.WriteFile(Trusted(p), append(append(bytes.TrimSpace(system), '\n'), ca.PEM()...), 0o644); err != nil { // Public, too.
		return errors.Wrap(err, "cannot write certificates to trust")
	}
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress":           plan.ACMEServer,
		"managementListenAddress": hub.ACMEManagement(),
		"certificate":             acmeFile(p, ".crt"),
		"privateKey":              acmeFile(p, ".key"),
		"keyAlgorithm":            "ecdsa",
		// How long clients wait between polls, in seconds.
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "as Let's Encrypt", "validityPeriod": certificateLifetime}},
	}})
	if err != nil {
		return errors.Wrap(err, "cannot encode configuration of the ACME server")
	}
	return errors.Wrap(os.WriteFile(acmeFile(p, ".json"), config, 0o644), "cannot write configuration of the ACME server") // No secret.
}

// acmeServer returns the process that stands in for Let's Encrypt, behind the front of the first
// tailnet's simulator. It validates with the DNS records that nodes of the first tailnet set
// through control, because there is only one public DNS.
func acmeServer(p host.Paths, binary string) component.Component {
	return component.Component{
		Name: acme, Program: acme, Namespace: plan.TailnetNamespace,
		Command: []string{binary, "-config", acmeFile(p, ".json"), "-dnsserver", plan.PublicDNS},
		// It validates without a random delay, and never reuses the validation of another
		// order.
		Env:   []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_AUTHZREUSE=0"},
		Ready: component.Check{URL: plan.ACMEServerDirectory},
	}
}

// acmeRoot gets the ACME server's root certificate and writes it to a file.
func acmeRoot(ctx context.Context, p host.Paths, hub plan.Hub) error {
	ca, err := os.ReadFile(acmeFile(p, "-ca.crt"))
	if err != nil {
		return errors.Wrap(err, "cannot read certificate of the ACME server's authority")
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	h := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return netns.Dial(ctx, plan.TailnetNamespace, network, addr)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+hub.ACMEManagement()+"/roots/0", nil)
	if err != nil {
		return errors.Wrap(err, "cannot make request for the ACME server's root")
	}
	rsp, err := h.Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot get the ACME server's root")
	}
	defer rsp.Body.Close() // Only read.
	root, err := io.ReadAll(io.LimitReader(rsp.Body, 1<<16))
	if err != nil || rsp.StatusCode != http.StatusOK {
		return errors.Errorf("cannot get the ACME server's root: %s, %v", rsp.Status, err)
	}
	return errors.Wrap(os.WriteFile(ACMERoot(p), root, 0o644), "cannot write the ACME server's root") // Public.
}
