// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/time/rate"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// OAuth scopes that calls need, as Tailscale's API names them.
const (
	scopeDevices  = "devices:core"
	scopeKeys     = "auth_keys"
	scopeServices = "services"
	scopeDNS      = "dns:read"
)

// requestTimeout bounds one call with all its tries.
const requestTimeout = 45 * time.Second

// Types of the client library that callers see.
type (
	// A Device of a tailnet.
	Device = tsclient.Device

	// A Service of a tailnet.
	Service = tsclient.Service

	// A Key that logs nodes in.
	Key = tsclient.Key
)

// A Config says how to reach one tailnet.
type Config struct {
	// URL of the API, without /api/v2.
	URL string

	// Tailnet as the API names it; "-" is the credential's own.
	Tailnet string

	ClientID     string
	ClientSecret string
}

// Options are the same for all clients of a process.
type Options struct {
	// Rate of requests a second that a client may send at length, and Burst how
	// many it may send at once.
	Rate  float64
	Burst int

	// ListMaxAge is how old a shared list may be that callers get.
	ListMaxAge time.Duration

	// Metrics must not be nil.
	Metrics *Metrics

	// Transport that carries requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// A Client speaks to one tailnet with one credential. It may be used by many at
// once.
type Client struct {
	api        *tsclient.Client
	http       *http.Client
	base       *url.URL
	tailnet    string
	listMaxAge time.Duration

	services *list[Service]
	devices  *list[Device]
}

// NewClient makes a client. It sends nothing yet.
func NewClient(cfg Config, o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimSuffix(cfg.URL, "/"))
	if err != nil {
		return nil, errors.New("the API URL is not valid")
	}
	bottom := o.Transport
	if bottom == nil {
		bottom = http.DefaultTransport
	}
	limited := &transport{
		base:      bottom,
		limiter:   rate.NewLimiter(rate.Limit(o.Rate), o.Burst),
		metrics:   o.Metrics,
		userAgent: version.UserAgent(),
	}
	hc := &http.Client{
		CheckRedirect: noRedirect,
		Timeout:       requestTimeout,
		Transport: &authTransport{base: limited, config: clientcredentials.Config{
			ClientID:     cfg.ClientID,
			ClientSecret: cfg.ClientSecret,
			TokenURL:     base.JoinPath("/api/v2/oauth/token").String(),
			AuthStyle:    oauth2.AuthStyleInParams,
		}},
	}
	tailnet := cfg.Tailnet
	if tailnet == "" {
		tailnet = "-"
	}
	c := &Client{
		api:        &tsclient.Client{BaseURL: base, UserAgent: version.UserAgent(), Tailnet: tailnet, HTTP: hc},
		http:       hc,
		base:       base,
		tailnet:    tailnet,
		listMaxAge: o.ListMaxAge,
	}
	c.services = &list[Service]{load: func(ctx context.Context) ([]Service, error) {
		o.Metrics.listCalls.WithLabelValues("services").Inc()
		l, err := c.api.Services().List(ctx)
		return l, classify(err, scopeServices, true)
	}}
	c.devices = &list[Device]{load: func(ctx context.Context) ([]Device, error) {
		o.Metrics.listCalls.WithLabelValues("devices").Inc()
		l, err := c.api.Devices().List(ctx)
		return l, classify(err, scopeDevices, true)
	}}
	return c, nil
}

// MagicDNS tells whether MagicDNS is on.
func (c *Client) MagicDNS(ctx context.Context) (bool, error) {
	p, err := c.api.DNS().Preferences(ctx)
	if err != nil {
		return false, classify(err, scopeDNS, true)
	}
	return p.MagicDNS, nil
}

// Domain returns the DNS name of the tailnet, without a leading dot, as the
// names of its own devices tell it. It is empty while the tailnet has no device.
func (c *Client) Domain(ctx context.Context) (string, error) {
	ds, err := c.Devices(ctx, 0)
	if err != nil {
		return "", err
	}
	for _, d := range ds {
		// Devices shared from elsewhere have their own tailnet's name.
		if d.IsExternal {
			continue
		}
		if _, domain, ok := strings.Cut(strings.TrimSuffix(d.Name, "."), "."); ok {
			return domain, nil
		}
	}
	return "", nil
}
