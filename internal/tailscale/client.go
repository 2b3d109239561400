// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/utils/clock"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// OAuth scopes of calls, as Tailscale's API names them.
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

// RequestTimeout limits one call with all its attempts: no request of this process reaches the API
// later than this after the call began.
const RequestTimeout = 45 * time.Second

// Types of the client library that callers use.
type (
	// A Device is a device of a tailnet.
	Device = tsclient.Device

	// A Key is an auth key, an OAuth client or another key of a tailnet.
	Key = tsclient.Key
)

// A Config describes how to reach one tailnet.
type Config struct {
	// URL is the URL of the API without /api/v2.
	URL string

	// Tailnet is the tailnet's name in the API; "-" is the credential's tailnet.
	Tailnet string

	// ClientID and ClientSecret are those of an OAuth client. A federated identity has only a
	// ClientID.
	ClientID     string
	ClientSecret string

	// Identity returns the JWT of the workload that the federated identity trusts. It is called
	// each time the API's token is renewed.
	Identity func(ctx context.Context) (string, error)

	// IdentityName distinguishes Identity functions, because functions cannot be compared.
	IdentityName string

	// APIKey is an API access token.
	APIKey string

	// Credential is the credential's name in errors, such as "the OAuth client in Secret
	// team/oauth". Hint is the advice in the error when the API rejects the credential. Both may be
	// empty.
	Credential, Hint string
}

// Options are the settings that all clients of a process share.
type Options struct {
	// Rate is the sustained number of requests per second of a client, and Burst how many it may
	// send at once.
	Rate  float64
	Burst int

	// ListMaxAge is the maximum age of a shared list that callers get.
	ListMaxAge time.Duration

	// Metrics must not be nil.
	Metrics *Metrics

	// Transport sends the requests. Nil means a separate transport for the client, or for the pool,
	// that closes dead connections within seconds.
	Transport http.RoundTripper

	// Authorities verify the API's certificate, unless Transport is set. Nil means those of the system.
	Authorities *x509.CertPool

	// Clock determines the age of lists and tokens. Nil means the real clock.
	Clock clock.PassiveClock
}

func (o Options) clock() clock.PassiveClock {
	if o.Clock == nil {
		return clock.RealClock{}
	}
	return o.Clock
}

// A Client calls the API of one tailnet with one credential. It is safe for concurrent use. Each area of the
// API has a type with its calls, as in the official client.
type Client struct{ *core }

// Devices returns the calls for devices.
func (c *Client) Devices() DevicesResource { return DevicesResource{c.core} }

// Keys returns the calls for auth keys.
func (c *Client) Keys() KeysResource { return KeysResource{c.core} }

// TrustCredentials returns the calls for OAuth clients and federated identities.
func (c *Client) TrustCredentials() TrustCredentialsResource { return TrustCredentialsResource{c.core} }

// Services returns the calls for Tailscale Services and their hosts.
func (c *Client) Services() ServicesResource { return ServicesResource{c.core} }

// DNS returns the calls for the tailnet's DNS settings.
func (c *Client) DNS() DNSResource { return DNSResource{c.core} }

// PolicyFile returns the calls for the policy file.
func (c *Client) PolicyFile() PolicyFileResource { return PolicyFileResource{c.core} }

// Posture returns the calls for posture integrations.
func (c *Client) Posture() PostureResource { return PostureResource{c.core} }

// Webhooks returns the calls for webhooks.
func (c *Client) Webhooks() WebhooksResource { return WebhooksResource{c.core} }

// Logging returns the calls for log streaming.
func (c *Client) Logging() LoggingResource { return LoggingResource{c.core} }

// Tailnet returns the calls for the tailnet itself: its settings, contacts, name and organization, and the
// credential.
func (c *Client) Tailnet() TailnetResource { return TailnetResource{c.core} }

// A core is what all areas of the API share: a login, the guard of writes, and what was read before.
type core struct {
	api        *tsclient.Client
	http       *http.Client
	base       *url.URL
	tailnet    string
	listMaxAge time.Duration
	login      *login

	// guard checks writes. Nil permits all writes.
	guard Guard

	// signer wraps auth keys. Nil wraps none.
	signer *LockSigner

	metrics *Metrics
	clock   clock.PassiveClock

	services *list[Service]
	devices  *list[Device]
	authKeys *list[Key]

	// lists are the lists of the other kinds by the name of their call, see listOfKind. Guarded clients
	// share them.
	lists *sync.Map

	values *tailnetValues
}

// NewClient returns a client with a separate login. It sends no request.
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

// clientWith returns a client that shares a login with other clients.
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
	c := &core{
		api:        &tsclient.Client{BaseURL: base, UserAgent: version.UserAgent(), Tailnet: tailnet, HTTP: hc},
		http:       hc,
		base:       base,
		tailnet:    tailnet,
		listMaxAge: o.ListMaxAge,
		login:      l,
		metrics:    o.Metrics,
		clock:      o.clock(),
		lists:      &sync.Map{},
	}
	c.services = &list[Service]{match: isService, clock: c.clock, load: counted(o.Metrics, listServices, ServicesResource{c}.loadServices)}
	c.devices = &list[Device]{match: isDevice, clock: c.clock, load: counted(o.Metrics, listDevices, DevicesResource{c}.loadDevices)}
	c.authKeys = &list[Key]{match: isKey, clock: c.clock, load: counted(o.Metrics, "keys", (&authKeyLoader{client: c}).load)}
	c.values = newTailnetValues(c, c.clock)
	return &Client{c}
}

// listOfKind returns the shared list of a kind, which the first call creates. The name is that of its
// list call in metrics.
func listOfKind[T any](c *core, name string, match func(item T, key string) bool, load func(*core) loader[T]) *list[T] {
	l, ok := c.lists.Load(name)
	if !ok {
		// The list outlives the caller, and must not keep its guard and its signer.
		plain := *c
		plain.guard, plain.signer = nil, nil
		l, _ = c.lists.LoadOrStore(name, &list[T]{match: match, clock: c.clock, load: counted(c.metrics, name, load(&plain))})
	}
	return l.(*list[T]) //nolint:errcheck,forcetypeassert // No two kinds have the same name.
}

// A loader requests a list, and returns it with its time.
type loader[T any] func(ctx context.Context) ([]T, time.Time, error)

// counted returns a load function whose calls the metrics count.
func counted[T any](m *Metrics, name string, load loader[T]) loader[T] {
	return func(ctx context.Context) ([]T, time.Time, error) {
		m.listCalls.WithLabelValues(name).Inc()
		return load(ctx)
	}
}

// dateOf returns the time in the Date header of a response, or zero.
func dateOf(h http.Header) time.Time {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// RoundTripper returns what sends the client's requests: it logs in, limits their rate, and repeats
// those that are safe to repeat. A refusal is a response, and no error.
func (c *Client) RoundTripper() http.RoundTripper { return c.login.transport }

// Domain returns the DNS name of the tailnet without a leading dot. It derives the name from the
// tailnet's own devices, and returns an empty string while there are none.
func (c TailnetResource) Domain(ctx context.Context) (string, error) {
	ds, err := DevicesResource(c).Devices(ctx, Cached)
	return domainOf(ds), err
}
