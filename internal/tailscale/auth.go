// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// A login is what all clients with the same credential share: its rate and its
// token.
type login struct {
	transport http.RoundTripper
	limited   *transport

	// proven is set once a call with the credential has succeeded.
	proven atomic.Bool

	// scopes of the last OAuth token. Nil while there is none.
	scopes atomic.Pointer[[]string]

	// keyID of an API access token.
	keyID string
}

// newLogin makes a login. Which kind it is depends on what the config has.
func newLogin(base *url.URL, cfg Config, o Options) (*login, error) {
	bottom := o.Transport
	if bottom == nil {
		bottom = newWire()
	}
	limited := &transport{
		base:      bottom,
		limiter:   rate.NewLimiter(rate.Limit(o.Rate), o.Burst),
		metrics:   o.Metrics,
		userAgent: version.UserAgent(),
		silence:   maxSilence,
	}
	l := &login{limited: limited}
	auth := &authTransport{base: limited, clock: o.clock(), asking: make(chan struct{}, 1), scopes: &l.scopes}
	switch {
	case cfg.APIKey != "":
		l.transport, l.keyID = &keyTransport{base: limited, key: cfg.APIKey}, keyIDOf(cfg.APIKey)
		return l, nil
	case cfg.Identity != nil:
		auth.endpoint = base.JoinPath("/api/v2/oauth/token-exchange").String()
		auth.form = func(ctx context.Context) (url.Values, error) {
			// The provider of the token knows nothing of our deadlines.
			jwt, err := cfg.Identity(ctx)
			if err != nil {
				return nil, &Error{Class: ClassUnauthorized, Message: "cannot get an identity token: " + scrub(err.Error())}
			}
			return url.Values{"client_id": {cfg.ClientID}, "jwt": {jwt}}, nil
		}
	case cfg.ClientID != "" || cfg.ClientSecret != "":
		auth.endpoint = base.JoinPath("/api/v2/oauth/token").String()
		auth.form = func(context.Context) (url.Values, error) {
			return url.Values{"grant_type": {"client_credentials"}, "client_id": {cfg.ClientID}, "client_secret": {cfg.ClientSecret}}, nil
		}
	default:
		return nil, errors.New("there is no credential")
	}
	l.transport = auth
	return l, nil
}

// A keyTransport adds an API access token to every request.
type keyTransport struct {
	base http.RoundTripper
	key  string
}

// RoundTrip implements http.RoundTripper.
func (t *keyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := req.Clone(req.Context())
	c.Header.Set("Authorization", "Bearer "+t.key)
	return t.base.RoundTrip(c)
}

// An authTransport adds an OAuth token to every request and renews it in time.
// The client library's own asks for tokens outside the transport that it is
// given, cannot be cancelled, and keeps a token that the server has forgotten.
type authTransport struct {
	base     http.RoundTripper
	clock    clock.PassiveClock
	endpoint string

	// form makes what a new token is asked for with.
	form func(ctx context.Context) (url.Values, error)

	// asking holds an item while somebody looks at token.
	asking chan struct{}
	token  *token

	// scopes of the token, for others.
	scopes *atomic.Pointer[[]string]
}

// A token of the API.
type token struct {
	secret string
	renew  time.Time // When to ask for the next.
}

// maxTokenAnswer bounds the answer to a request for a token, in bytes.
const maxTokenAnswer = 1 << 20

// renewEarly is how long before its end a token is renewed, at most: a request
// may wait for its turn that long.
const renewEarly = RequestTimeout

// RoundTrip implements http.RoundTripper.
func (t *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	tk, err := t.get(req.Context(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := t.send(req, tk, 1)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	// Tokens may be revoked before their time: ask for one new one.
	tk, err = t.get(req.Context(), tk)
	if err != nil {
		return nil, err
	}
	return t.send(req, tk, 2)
}

func (t *authTransport) send(req *http.Request, tk *token, try int) (*http.Response, error) {
	c, err := replay(req, try)
	if err != nil {
		return nil, err
	}
	c.Header.Set("Authorization", "Bearer "+tk.secret)
	return t.base.RoundTrip(c)
}

// get returns a valid token other than the stale one. One caller asks for it,
// the others wait as long as their contexts let them.
func (t *authTransport) get(ctx context.Context, stale *token) (*token, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case t.asking <- struct{}{}:
	}
	defer func() { <-t.asking }()
	if t.token != nil && t.token != stale && t.clock.Now().Before(t.token.renew) {
		return t.token, nil
	}
	tk, err := t.ask(ctx)
	if err != nil {
		return nil, err
	}
	t.token = tk
	return tk, nil
}

// ask for a new token. Its errors keep nothing of the answer but its status: it
// may have a secret.
func (t *authTransport) ask(ctx context.Context) (*token, error) {
	form, err := t.form(ctx)
	if err != nil {
		return nil, err
	}
	// Asking twice for a token does no harm.
	ctx = context.WithValue(ctx, repeatKey{}, true)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, bytes.NewReader([]byte(form.Encode())))
	if err != nil {
		return nil, errors.New("cannot ask for an OAuth token, check the API URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	asked := t.clock.Now()
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, tokenError(err)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, tokenError(err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, tokenRefused(resp.StatusCode)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"` // Seconds.
		Scope       string `json:"scope"`      // Divided by spaces (RFC 6749 5.1).
	}
	if err := json.Unmarshal(b, &answer); err != nil || answer.AccessToken == "" {
		return nil, &Error{Class: ClassUnavailable, Message: "cannot get an OAuth token: the answer has none"}
	}
	t.scopes.Store(scopesOf(answer.Scope))
	life := time.Duration(answer.ExpiresIn) * time.Second
	return &token{secret: answer.AccessToken, renew: asked.Add(life - min(renewEarly, life/5))}, nil
}

func tokenError(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Class: ClassUnavailable, Message: "cannot get an OAuth token: " + networkMessage(err)}
}

func tokenRefused(status int) error {
	e := &Error{Class: classOfStatus(status), Status: status, Message: "cannot get an OAuth token: " + http.StatusText(status)}
	// RFC 6749 5.2 answers a wrong client with 400 as well.
	if status == http.StatusBadRequest || status == http.StatusForbidden {
		e.Class = ClassUnauthorized
	}
	if e.Class == ClassUnauthorized {
		// It is tried again like any other failure.
		e.Message += " (a new OAuth client takes up to a minute)"
	}
	if status == http.StatusNotFound {
		e.Class, e.Message = ClassUnavailable, "there is no OAuth token endpoint, check the API URL"
	}
	return e
}

// A namingTransport makes errors of answers that are about the credential, which
// say which one it is.
type namingTransport struct {
	base             http.RoundTripper
	credential, hint string
}

// RoundTrip implements http.RoundTripper.
func (t *namingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		var known *Error
		if !errors.As(err, &known) {
			return nil, err
		}
		e := *known
		e.Credential, e.Hint = t.credential, t.hint
		return nil, &e
	}
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, nil
	}
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	said := tsclient.APIError{}
	if err := json.Unmarshal(b, &said); err != nil {
		said.Message = http.StatusText(resp.StatusCode)
	}
	return nil, &Error{
		Class: classOf(resp.StatusCode, said.Message), Status: resp.StatusCode, Message: scrub(said.Message),
		Credential: t.credential, Hint: t.hint,
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
