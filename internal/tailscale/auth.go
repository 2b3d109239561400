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

// A login holds the rate limit and the token that all clients with the same credential share.
type login struct {
	transport http.RoundTripper
	limited   *transport

	// proven becomes true after the first successful call with the credential.
	proven atomic.Bool

	// scopes holds the scopes of the last OAuth token. It is nil until there is one.
	scopes atomic.Pointer[[]string]

	// keyID is the ID of an API access token.
	keyID string

	// name of the credential, which is not secret. See Identity.
	name string
}

// newLogin returns the login of a config. The config's fields decide which kind of credential it
// uses.
func newLogin(base *url.URL, cfg Config, o Options) (*login, error) {
	bottom := o.Transport
	if bottom == nil {
		bottom = newWire(o.Authorities)
	}
	limited := &transport{
		base:      bottom,
		limiter:   rate.NewLimiter(rate.Limit(o.Rate), o.Burst),
		metrics:   o.Metrics,
		userAgent: version.UserAgent(),
		silence:   maxSilence,
	}
	l := &login{limited: limited, name: nameOf(cfg)}
	auth := &authTransport{base: limited, clock: o.clock(), asking: make(chan struct{}, 1), scopes: &l.scopes}
	switch {
	case cfg.APIKey != "":
		l.transport, l.keyID = &keyTransport{base: limited, key: cfg.APIKey}, keyIDOf(cfg.APIKey)
		return l, nil
	case cfg.Identity != nil:
		auth.endpoint = base.JoinPath("/api/v2/oauth/token-exchange").String()
		auth.form = func(ctx context.Context) (url.Values, error) {
			// The function that returns the workload's token does not know the request's deadline.
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

// An authTransport adds an OAuth token to every request and renews the token in time. It replaces
// the client library's own implementation, which requests tokens outside the given transport,
// cannot be cancelled, and keeps a token that the server has forgotten.
type authTransport struct {
	base     http.RoundTripper
	clock    clock.PassiveClock
	endpoint string

	// form builds the form of the request for a new token.
	form func(ctx context.Context) (url.Values, error)

	// asking holds an item while a caller reads or renews the token.
	asking chan struct{}
	token  *token

	// scopes receives the scopes of the token. Other types read it.
	scopes *atomic.Pointer[[]string]
}

// A token is an OAuth token of the API.
type token struct {
	secret string
	renew  time.Time // When to request the next token.
}

// maxTokenAnswer limits the response to a token request, in bytes.
const maxTokenAnswer = 1 << 20

// renewEarly is how long before its expiry a token is renewed, at most. It equals RequestTimeout
// because a request may wait that long before it is sent.
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
	// The API can revoke a token before it expires: request one new token.
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

// get returns a valid token other than the stale one. One caller requests it; the others wait for
// it until their contexts end.
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

// ask requests a new token. Its errors contain only the status of the response, because the
// response may contain a secret.
func (t *authTransport) ask(ctx context.Context) (*token, error) {
	form, err := t.form(ctx)
	if err != nil {
		return nil, err
	}
	// A token request is safe to repeat.
	ctx = context.WithValue(ctx, repeatKey{}, true)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, bytes.NewReader([]byte(form.Encode())))
	if err != nil {
		return nil, errors.New("cannot ask for an OAuth token, check the API URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	start := t.clock.Now()
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
		ExpiresIn   int    `json:"expires_in"` // In seconds.
		Scope       string `json:"scope"`      // Separated by spaces (RFC 6749 5.1).
	}
	if err := json.Unmarshal(b, &answer); err != nil || answer.AccessToken == "" {
		return nil, &Error{Class: ClassUnavailable, Message: "cannot get an OAuth token: the answer has none"}
	}
	t.scopes.Store(scopesOf(answer.Scope))
	life := time.Duration(answer.ExpiresIn) * time.Second
	return &token{secret: answer.AccessToken, renew: start.Add(life - min(renewEarly, life/5))}, nil
}

func tokenError(err error) error {
	var typedErr *Error
	if errors.As(err, &typedErr) {
		return typedErr
	}
	return &Error{Class: ClassUnavailable, Message: "cannot get an OAuth token: " + networkMessage(err)}
}

func tokenRefused(status int) error {
	e := &Error{Class: classOfStatus(status), Status: status, Message: "cannot get an OAuth token: " + http.StatusText(status)}
	// RFC 6749 5.2 also uses status 400 for a wrong client.
	if status == http.StatusBadRequest || status == http.StatusForbidden {
		e.Class = ClassUnauthorized
	}
	if e.Class == ClassUnauthorized {
		// The request is retried like after any other failure.
		e.Message += " (a new OAuth client takes up to a minute)"
	}
	if status == http.StatusNotFound {
		e.Class, e.Message = ClassUnavailable, "there is no OAuth token endpoint, check the API URL"
	}
	return e
}

// A namingTransport turns responses that reject the credential into errors that name the
// credential.
type namingTransport struct {
	base             http.RoundTripper
	credential, hint string
}

// RoundTrip implements http.RoundTripper.
func (t *namingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		var typedErr *Error
		if !errors.As(err, &typedErr) {
			return nil, err
		}
		e := *typedErr
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
	apiErr := tsclient.APIError{}
	if err := json.Unmarshal(b, &apiErr); err != nil {
		apiErr.Message = http.StatusText(resp.StatusCode)
	}
	return nil, &Error{
		Class: classOf(resp.StatusCode, apiErr.Message), Status: resp.StatusCode, Message: scrub(apiErr.Message),
		Credential: t.credential, Hint: t.hint,
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
