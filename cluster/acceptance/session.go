// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// patience limits how long a run waits while the API limits its rate. The product's client fails at
	// once during a long pause, because its controllers call again.
	patience = 5 * time.Minute

	// requestTimeout limits a request with all its attempts.
	requestTimeout = time.Minute

	// maxMessage bounds the message of a refusal, in bytes.
	maxMessage = 300
)

// A session calls the API with the product's client, which logs in, limits the rate, and repeats
// requests that are safe to repeat. Its requests are recorded by the recorder in their context.
type session struct {
	base    *url.URL
	wire    http.RoundTripper
	tailnet string
	cred    credential
	secret  *redactor
	product *tailscale.Client

	// official is Tailscale's own client, with the login of product.
	official *tsclient.Client
}

func newSession(o *options, c credential, secret *redactor) (*session, error) {
	return newSessionOver(http.DefaultTransport, o, c, secret)
}

// newSessionOver returns a session whose requests a transport sends.
func newSessionOver(wire http.RoundTripper, o *options, c credential, secret *redactor) (*session, error) {
	base, err := url.Parse(o.APIURL)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse --api-url")
	}
	secret.know(c.clientSecret, c.idToken, c.apiKey)
	s := &session{base: base, wire: wire, tailnet: o.Tailnet, cred: c, secret: secret}
	if s.product, err = s.login(c); err != nil {
		return nil, err
	}
	s.official = &tsclient.Client{BaseURL: base, Tailnet: o.Tailnet, HTTP: &http.Client{Timeout: requestTimeout, Transport: s.product.RoundTripper()}}
	return s, nil
}

// login returns a client of the product with a separate login.
func (s *session) login(c credential) (*tailscale.Client, error) {
	cfg := tailscale.Config{URL: s.base.String(), Tailnet: s.tailnet, ClientID: c.clientID, ClientSecret: c.clientSecret, APIKey: c.apiKey}
	if c.idToken != "" {
		cfg.Identity = func(context.Context) (string, error) { return c.idToken, nil }
	}
	o := tailscale.Options{Rate: math.MaxFloat64, ListMaxAge: time.Second, Metrics: tailscale.NewMetrics(), Transport: recordingTransport{s.wire, s.secret}}
	if s.base.String() == defaultAPI {
		// Other clients use the API, too, and its limits are not published.
		o.Rate, o.Burst = 10, 10
	}
	return tailscale.NewClient(cfg, o)
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

// do makes a call. An error means that there is no reply.
func (s *session) do(ctx context.Context, c call) (*reply, error) {
	return s.callWith(ctx, s.product, c)
}

// callWith makes a call with the login of a client. It waits while the API limits its rate.
func (s *session) callWith(ctx context.Context, client *tailscale.Client, c call) (r *reply, err error) {
	patiently(ctx, func() bool {
		r, err = s.once(ctx, client, c)
		return isLimited(err) || err == nil && r.status == http.StatusTooManyRequests
	})
	return r, err
}

// patiently repeats a call as long as it reports that the API limits its rate.
func patiently(ctx context.Context, call func() (limited bool)) {
	for end := time.Now().Add(patience); call() && time.Now().Before(end); {
		if pauseFor(ctx, time.Second) != nil {
			return
		}
	}
}

// isLimited reports whether the API limits the rate of the product's client.
func isLimited(err error) bool { return tailscale.ClassOf(err) == tailscale.ClassRateLimited }

// once makes a call. The reply is that of the API: the product's client replaces replies that the
// official client cannot read.
func (s *session) once(ctx context.Context, client *tailscale.Client, c call) (*reply, error) {
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
	last := &reply{}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, lastReplyKey{}, last), requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, u.String(), body)
	if err != nil {
		return nil, errors.Wrap(err, "cannot create request")
	}
	req.Header.Set("Accept", "application/json")
	if c.body != nil {
		req.Header.Set("Content-Type", media)
	}
	for k, v := range c.header {
		req.Header.Set(k, v)
	}
	resp, err := client.RoundTripper().RoundTrip(req)
	if err != nil {
		return nil, errors.Wrapf(err, "no reply to %s %s", c.method, s.secret.url(u))
	}
	return last, errors.Wrap(resp.Body.Close(), "cannot close reply")
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
