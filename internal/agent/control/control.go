// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package control asks a control server whether it answers, as tailscaled does before it logs in.
// It makes no decisions.
package control

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"tailscale.com/ipn"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// timeout bounds one request.
	timeout = 10 * time.Second

	// maxBody is more than the keys of a control server need.
	maxBody = 64 << 10
)

// Options are what tailscaled takes from its environment. The agent has them under other names,
// because they are not for its own connections, such as those to the API server.
type Options struct {
	// HTTPProxy, HTTPSProxy and NoProxy are the values of the variables of these names
	// (tailscale.com net/tshttpproxy).
	HTTPProxy, HTTPSProxy, NoProxy string

	// CertFile and CertDir replace the authorities of the system, as SSL_CERT_FILE and SSL_CERT_DIR
	// do (crypto/x509, root_unix.go).
	CertFile, CertDir string
}

// A Client asks control servers.
type Client struct{ http *http.Client }

// NewClient returns a Client.
func NewClient(o Options) *Client {
	proxy := (&httpproxy.Config{HTTPProxy: o.HTTPProxy, HTTPSProxy: o.HTTPSProxy, NoProxy: o.NoProxy}).ProxyFunc()
	return &Client{http: &http.Client{Timeout: timeout, Transport: &http.Transport{
		Proxy:             func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities(o)},
		DisableKeepAlives: true,
	}}}
}

// authorities returns the authorities of the options, or nil for those of the system. Files that
// cannot be read are ignored: they may exist only in the image of tailscaled.
func authorities(o Options) *x509.CertPool {
	var files []string
	if o.CertFile != "" {
		files = append(files, o.CertFile)
	}
	for dir := range strings.SplitSeq(o.CertDir, ":") {
		// The pattern has no error: the directory's name is not one.
		matches, _ := filepath.Glob(filepath.Join(dir, "*"))
		if dir != "" {
			files = append(files, matches...)
		}
	}
	pool, found := x509.NewCertPool(), false
	for _, f := range files {
		b, err := os.ReadFile(f)
		found = err == nil && pool.AppendCertsFromPEM(b) || found
	}
	if !found {
		return nil
	}
	return pool
}

// A WaitError is an answer of a control server that asks to wait.
type WaitError struct {
	error

	// Delay is how long to wait. Zero if the server does not say.
	Delay time.Duration
}

// Unwrap returns the error without the wait.
func (e *WaitError) Unwrap() error { return e.error }

// Answers returns nil if the control server in a config of tailscaled answers a request for its key,
// which is tailscaled's first request before it logs in (tailscale.com
// control/controlclient/direct.go, loadServerPubKeys). It also returns nil if that cannot be found
// out: the certificate of the server may be signed by an authority in the image of tailscaled.
func (c *Client) Answers(ctx context.Context, config []byte) error {
	var cfg ipn.ConfigVAlpha
	if err := json.Unmarshal(config, &cfg); err != nil {
		return errors.Wrap(err, "cannot decode tailscaled's config")
	}
	base := ipn.DefaultControlURL
	if cfg.ServerURL != nil && *cfg.ServerURL != "" {
		base = *cfg.ServerURL
	}
	u := strings.TrimSuffix(base, "/") + "/key?v=" + strconv.Itoa(int(tailcfg.CurrentCapabilityVersion))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, http.NoBody)
	if err != nil {
		return errors.Wrap(err, "cannot make request to the control server")
	}
	res, err := c.http.Do(req)
	if unknown := (*tls.CertificateVerificationError)(nil); errors.As(err, &unknown) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "cannot reach the control server")
	}
	defer res.Body.Close() // Only read.
	if res.StatusCode != http.StatusOK {
		s, _ := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 32) // Zero if it is none, and the largest number if it is larger.
		return &WaitError{error: errors.Errorf("the control server answers %d", res.StatusCode), Delay: time.Duration(s) * time.Second}
	}
	var keys tailcfg.OverTLSPublicKeyResponse
	if err := json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(&keys); err != nil {
		return errors.Wrap(err, "cannot read the control server's key")
	}
	if keys.PublicKey.IsZero() {
		return errors.New("the control server answers without a key")
	}
	return nil
}
