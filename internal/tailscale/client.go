// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/utils/clock"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// OAuth scopes that calls need, as Tailscale's API names them.
const (
	scopeDevices  = "devices:core"
	scopeKeys     = "auth_keys"
	scopeServices = "services"
)

// Names of the shared lists in metrics.
const (
	listServices = "services"
	listDevices  = "devices"
)

// RequestTimeout bounds one call with all its tries: no request of this process
// reaches the API later than this after it was begun.
const RequestTimeout = 45 * time.Second

// Types of the client library that callers see.
type (
	// A Device of a tailnet.
	Device = tsclient.Device

	// A Key that logs nodes in.
	Key = tsclient.Key
)

// A Config says how to reach one tailnet.
type Config struct {
	// URL of the API, without /api/v2.
	URL string

	// Tailnet as the API names it; "-" is the credential's own.
	Tailnet string

	// An OAuth client has both of these, a federated identity the first.
	ClientID     string
	ClientSecret string

	// Identity makes a token of the workload that a federated identity was made
	// for: a JWT. It is asked each time the API's own token is renewed.
	Identity func(ctx context.Context) (string, error)

	// IdentityName distinguishes one Identity from another: functions cannot be compared.
	IdentityName string

	// APIKey is an API access token.
	APIKey string

	// Credential is what errors call the credential, such as "the OAuth client
	// in Secret team/oauth", and Hint what they advise when it is rejected. Both
	// may be empty.
	Credential, Hint string
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

	// Transport that carries requests; nil means one of the client's own, or of the
	// pool's, that gives up dead connections within seconds.
	Transport http.RoundTripper

	// Clock that says how old lists and tokens are; nil means the real one.
	Clock clock.PassiveClock
}

func (o Options) clock() clock.PassiveClock {
	if o.Clock == nil {
		return clock.RealClock{}
	}
	return o.Clock
}

// A Client speaks to one tailnet with one credential. It may be used by many at
// once.
type Client struct {
	api        *tsclient.Client
	http       *http.Client
	base       *url.URL
	tailnet    string
	listMaxAge time.Duration
	login      *login

	// guard of writes. Nil lets all through.
	guard Guard

	services *list[Service]
	devices  *list[Device]
	authKeys *list[Key]

	webhooks     *list[Webhook]
	credentials  *list[Key] // OAuth clients and federated identities.
	integrations *list[PostureIntegration]

	values *tailnetValues
}

// NewClient makes a client with a login of its own. It sends nothing yet.
func NewClient(cfg Config, o Options) (*Client, error) {
	base, err := cfg.base()
	if err != nil {
		return nil, err
	}
	l, err := newLogin(base, cfg, o)
	if err != nil {
		return nil, err
	}
	return clientWith(base, cfg, o, l), nil
}

// clientWith makes a client of a tailnet that shares a login with others.
func clientWith(base *url.URL, cfg Config, o Options, l *login) *Client {
	hc := &http.Client{
		CheckRedirect: noRedirect,
		Timeout:       RequestTimeout,
	}
	tailnet := cfg.Tailnet
	if tailnet == "" {
		tailnet = "-"
	}
	hc.Transport = &namingTransport{
		base:       &provingTransport{base: l.transport, proven: &l.proven, api: base, tailnet: tailnet},
		credential: cfg.Credential, hint: cfg.Hint,
	}
	c := &Client{
		api:        &tsclient.Client{BaseURL: base, UserAgent: version.UserAgent(), Tailnet: tailnet, HTTP: hc},
		http:       hc,
		base:       base,
		tailnet:    tailnet,
		listMaxAge: o.ListMaxAge,
		login:      l,
	}
	now := o.clock()
	c.services = &list[Service]{is: isService, clock: now, load: counted(o.Metrics, listServices, c.loadServices)}
	c.devices = &list[Device]{is: isDevice, clock: now, load: counted(o.Metrics, listDevices, c.loadDevices)}
	c.authKeys = &list[Key]{is: isKey, clock: now, load: counted(o.Metrics, "keys", (&authKeyLoader{client: c}).load)}
	c.webhooks = &list[Webhook]{is: isWebhook, clock: now, load: counted(o.Metrics, "webhooks", c.loadWebhooks)}
	c.credentials = &list[Key]{is: isKey, clock: now, load: counted(o.Metrics, "trust-credentials", c.loadTrustCredentials)}
	c.integrations = &list[PostureIntegration]{is: isPostureIntegration, clock: now, load: counted(o.Metrics, "posture-integrations", c.loadPostureIntegrations)}
	c.values = newTailnetValues(c, now)
	return c
}

// counted has the metrics count the calls that fill a list.
func counted[T any](m *Metrics, name string, load func(context.Context) ([]T, time.Time, error)) func(context.Context) ([]T, time.Time, error) {
	return func(ctx context.Context) ([]T, time.Time, error) {
		m.listCalls.WithLabelValues(name).Inc()
		return load(ctx)
	}
}

// dateOf returns the time that an answer says it was made, or zero.
func dateOf(h http.Header) time.Time {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// Domain returns the DNS name of the tailnet, without a leading dot, as the
// names of its own devices tell it. It is empty while the tailnet has no device.
func (c *Client) Domain(ctx context.Context) (string, error) {
	ds, err := c.Devices(ctx, Cached)
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
