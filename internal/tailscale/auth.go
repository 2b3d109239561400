// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// An authTransport adds an OAuth token to every request. The client library's
// own asks for tokens outside the transport that it is given, and keeps a token
// that the server has forgotten.
type authTransport struct {
	base   http.RoundTripper
	config clientcredentials.Config

	mu    sync.Mutex
	token *oauth2.Token
}

// RoundTrip implements http.RoundTripper.
func (t *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := t.get(req.Context(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := t.send(req, token, 1)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	// Tokens may be revoked before their time: ask for one new one.
	token, err = t.get(req.Context(), token)
	if err != nil {
		return nil, err
	}
	return t.send(req, token, 2)
}

func (t *authTransport) send(req *http.Request, token *oauth2.Token, try int) (*http.Response, error) {
	c, err := replay(req, try)
	if err != nil {
		return nil, err
	}
	token.SetAuthHeader(c)
	return t.base.RoundTrip(c)
}

// get returns a valid token other than the stale one.
func (t *authTransport) get(ctx context.Context, stale *oauth2.Token) (*oauth2.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token.Valid() && t.token != stale {
		return t.token, nil
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: t.base, CheckRedirect: noRedirect})
	token, err := t.config.Token(ctx)
	if err != nil {
		return nil, tokenError(err)
	}
	t.token = token
	return token, nil
}

// tokenError keeps of a failed token request what is safe: oauth2's own error
// prints the server's whole answer.
func tokenError(err error) error {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) || re.Response == nil {
		return &Error{Class: ClassUnavailable, Message: "cannot get an OAuth token: " + networkMessage(err)}
	}
	status := re.Response.StatusCode
	e := &Error{Class: classOfStatus(status), Status: status, Message: "cannot get an OAuth token: " + http.StatusText(status)}
	// RFC 6749 5.2 answers a wrong client with 400 as well.
	if status == http.StatusBadRequest || status == http.StatusForbidden {
		e.Class = ClassUnauthorized
	}
	if status == http.StatusNotFound {
		e.Class, e.Message = ClassUnavailable, "there is no OAuth token endpoint, check the API URL"
	}
	return e
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
