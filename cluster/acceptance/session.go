// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const (
	// maxTries is the number of attempts for a request that the API rejects temporarily.
	maxTries = 5

	// maxPause bounds the pause that the API requests.
	maxPause = time.Minute

	requestTimeout = time.Minute

	// maxMessage bounds the message of a refusal, in bytes.
	maxMessage = 300
)

// A login holds what all sessions of a run share: the credential and its token.
type login struct {
	base    *url.URL
	tailnet string
	cred    credential
	secret  *redactor
	limiter *rate.Limiter

	mu      sync.Mutex
	token   string
	expires time.Time
}

func newLogin(o *options, c credential, secret *redactor) (*login, error) {
	base, err := url.Parse(o.APIURL)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse --api-url")
	}
	secret.know(c.clientSecret, c.idToken, c.apiKey)
	limiter := rate.NewLimiter(rate.Inf, 0)
	if o.APIURL == defaultAPI {
		// Other clients use the API, too, and its limits are not published.
		limiter = rate.NewLimiter(10, 10)
	}
	return &login{base: base, tailnet: o.Tailnet, cred: c, secret: secret, limiter: limiter}, nil
}

// A session calls the API and records the calls.
type session struct {
	*login

	rec *recorder
}

func (l *login) session() *session {
	return &session{login: l, rec: &recorder{base: http.DefaultTransport, secret: l.secret}}
}

// A call is one request. Body is encoded as JSON, unless it is a string, which is
// sent as it is.
type call struct {
	method string
	path   []string // Below /api/v2, not escaped.
	query  url.Values
	header map[string]string
	body   any
}

// A reply of the API.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ok reports whether the request succeeded.
func (r *reply) ok() bool { return r.status >= 200 && r.status < 300 }

// message returns the message of an error, or the beginning of the body.
func (r *reply) message() string {
	var e struct {
		Message string `json:"message"`
	}
	s := strings.TrimSpace(string(r.body))
	if json.Unmarshal(r.body, &e) == nil && e.Message != "" {
		s = e.Message
	}
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "..."
	}
	return s
}

// value returns the reply's JSON, or nil.
func (r *reply) value() any {
	var v any
	if json.Unmarshal(r.body, &v) != nil {
		return nil
	}
	return v
}

// object returns the reply's JSON object, or an empty one if it is another type.
func (r *reply) object() map[string]any {
	m, _ := r.value().(map[string]any)
	return m
}

// into decodes the reply.
func (r *reply) into(v any) error {
	return errors.Wrap(json.Unmarshal(r.body, v), "cannot decode reply")
}

// tn returns a path below the tailnet.
func (s *session) tn(path ...string) []string { return append([]string{"tailnet", s.tailnet}, path...) }

func (s *session) get(ctx context.Context, path ...string) (*reply, error) {
	return s.do(ctx, call{method: http.MethodGet, path: path})
}

func (s *session) send(ctx context.Context, method string, body any, path ...string) (*reply, error) {
	return s.do(ctx, call{method: method, path: path, body: body})
}

func (s *session) delete(ctx context.Context, path ...string) (*reply, error) {
	return s.do(ctx, call{method: http.MethodDelete, path: path})
}

// do makes a call. An error means that there is no reply. It repeats calls that the API rejects
// temporarily, because they had no effect.
func (s *session) do(ctx context.Context, c call) (*reply, error) {
	for try := 1; ; try++ {
		r, err := s.once(ctx, c)
		if err != nil {
			return nil, err
		}
		retry := r.status == http.StatusTooManyRequests || (r.status == http.StatusUnauthorized && try == 1 && s.cred.apiKey == "")
		if r.status >= 500 && c.method == http.MethodGet {
			retry = true
		}
		if !retry || try == maxTries {
			return r, nil
		}
		if r.status == http.StatusUnauthorized {
			s.forget()
			continue
		}
		pause := time.Duration(try) * time.Second
		if n, err := strconv.Atoi(r.header.Get("Retry-After")); err == nil {
			pause = min(time.Duration(n)*time.Second+time.Second, maxPause)
		}
		if err := pauseFor(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (s *session) once(ctx context.Context, c call) (*reply, error) {
	token, err := s.bearer(ctx)
	if err != nil {
		return nil, err
	}
	u := s.base.JoinPath("/api/v2")
	for _, e := range c.path {
		u = u.JoinPath(url.PathEscape(e))
	}
	u.RawQuery = c.query.Encode()
	var body io.Reader = http.NoBody
	media := "application/json"
	switch b := c.body.(type) {
	case nil:
	case string:
		body, media = strings.NewReader(b), "application/hujson"
	default:
		enc, err := json.Marshal(b)
		if err != nil {
			return nil, errors.Wrap(err, "cannot encode request")
		}
		body = bytes.NewReader(enc)
	}
	header := http.Header{"Accept": {"application/json"}, "Authorization": {"Bearer " + token}}
	if c.body != nil {
		header.Set("Content-Type", media)
	}
	for k, v := range c.header {
		header.Set(k, v)
	}
	return s.send1(ctx, c.method, u, header, body)
}

func (s *session) send1(ctx context.Context, method string, u *url.URL, header http.Header, body io.Reader) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.limiter.Wait(ctx); err != nil {
		return nil, errors.Wrap(err, "cannot wait for the next request")
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, errors.Wrap(err, "cannot create request")
	}
	req.Header = header
	req.Header.Set("User-Agent", version.UserAgent())
	resp, err := s.rec.RoundTrip(req)
	if err != nil {
		return nil, errors.Wrapf(err, "no reply to %s %s", method, s.secret.url(u))
	}
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, errors.Wrap(err, "cannot read reply")
	}
	return &reply{status: resp.StatusCode, header: resp.Header, body: b}, nil
}

// forget drops a token that the API does not accept.
func (s *session) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
}

// bearer returns a valid token, and requests one if there is none.
func (s *session) bearer(ctx context.Context) (string, error) {
	if s.cred.apiKey != "" {
		return s.cred.apiKey, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != "" && time.Now().Before(s.expires) {
		return s.token, nil
	}
	r, err := s.askToken(ctx)
	if err != nil {
		return "", err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if r.status != http.StatusOK || r.into(&answer) != nil || answer.AccessToken == "" {
		return "", errors.Errorf("cannot get a token: the API answered %d: %s", r.status, s.secret.text(r.message()))
	}
	s.token = answer.AccessToken
	s.expires = time.Now().Add(time.Duration(answer.ExpiresIn) * time.Second * 4 / 5)
	return s.token, nil
}

// askToken requests a token, and adds it to the redactor.
func (s *session) askToken(ctx context.Context) (*reply, error) {
	u := s.base.JoinPath("/api/v2/oauth/token")
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {s.cred.clientID}, "client_secret": {s.cred.clientSecret}}
	if s.cred.idToken != "" {
		u = s.base.JoinPath("/api/v2/oauth/token-exchange")
		form = url.Values{"client_id": {s.cred.clientID}, "jwt": {s.cred.idToken}}
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	r, err := s.send1(ctx, http.MethodPost, u, header, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	if t, ok := r.object()["access_token"].(string); ok {
		s.secret.know(t)
	}
	return r, nil
}
