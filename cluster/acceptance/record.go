// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// maxReply bounds a reply, in bytes.
	maxReply = 64 << 20

	// tokenPath is in the paths of requests for tokens.
	tokenPath = "/oauth/token"
)

// An exchange is a request and its reply, without secrets.
type exchange struct {
	At     time.Time `json:"at"`
	Millis int64     `json:"millis"`

	Method        string            `json:"method"`
	URL           string            `json:"url"`
	RequestHeader map[string]string `json:"requestHeader,omitempty"`
	Request       any               `json:"request,omitempty"`

	Status int               `json:"status,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Reply  any               `json:"reply,omitempty"`

	// Error of a request without a reply.
	Error string `json:"error,omitempty"`
}

// A recorder records requests with their replies. It is safe for concurrent use.
type recorder struct {
	secret *redactor

	mu      sync.Mutex
	entries []exchange
}

type recorderKey struct{}

// attach returns a context whose requests are recorded.
func (r *recorder) attach(ctx context.Context) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// lastReplyKey is set in the context of requests whose last reply is also copied to a *reply.
type lastReplyKey struct{}

// A recordingTransport has each request recorded by the recorder in its context. Requests without
// one are not kept.
type recordingTransport struct {
	base   http.RoundTripper
	secret *redactor
}

// RoundTrip implements http.RoundTripper.
func (t recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r, ok := req.Context().Value(recorderKey{}).(*recorder)
	if !ok {
		r = &recorder{secret: t.secret}
	}
	return r.send(t.base, req)
}

// send sends a request, and reads the whole body of its reply.
func (r *recorder) send(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	var reqBody []byte
	if req.Body != nil {
		var err error
		reqBody, err = io.ReadAll(req.Body)
		if err := errors.Join(err, req.Body.Close()); err != nil {
			return nil, errors.Wrap(err, "cannot read request")
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(reqBody))
	}
	began := time.Now()
	x := exchange{
		At: began.UTC(), Method: req.Method, URL: r.secret.url(req.URL), RequestHeader: r.secret.header(req.Header),
		Request: r.secret.body(req.Header.Get("Content-Type"), reqBody),
	}
	defer func() {
		x.Millis = time.Since(began).Milliseconds()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.entries = append(r.entries, x)
	}()
	resp, err := base.RoundTrip(req)
	if err != nil {
		x.Error = r.secret.text(err.Error())
		return nil, err
	}
	respBody, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		x.Error = r.secret.text(err.Error())
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(respBody))
	r.learn(req, respBody)
	if last, ok := req.Context().Value(lastReplyKey{}).(*reply); ok {
		*last = reply{status: resp.StatusCode, header: resp.Header, body: respBody}
	}
	x.Status, x.Header, x.Reply = resp.StatusCode, r.secret.header(resp.Header), r.secret.body(resp.Header.Get("Content-Type"), respBody)
	return resp, nil
}

// learn adds the token in a reply to the secrets.
func (r *recorder) learn(req *http.Request, reply []byte) {
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if strings.Contains(req.URL.Path, tokenPath) && json.Unmarshal(reply, &answer) == nil {
		r.secret.know(answer.AccessToken)
	}
}

// token returns the last reply to a request for a token, without secrets, or nil.
func (r *recorder) token() *reply {
	for _, x := range slices.Backward(r.exchanges()) {
		if strings.Contains(x.URL, tokenPath) && x.Status != 0 {
			return &reply{status: x.Status, body: mustJSON(x.Reply)}
		}
	}
	return nil
}

// exchanges returns the exchanges so far.
func (r *recorder) exchanges() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]exchange{}, r.entries...)
}
