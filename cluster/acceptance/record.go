// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// maxReply bounds a reply, in bytes.
const maxReply = 64 << 20

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

// A recorder sends requests and records them with their replies. It is safe for concurrent use.
type recorder struct {
	base   http.RoundTripper
	secret *redactor

	mu      sync.Mutex
	entries []exchange
}

// RoundTrip implements http.RoundTripper. It reads the whole body of the reply.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
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
	resp, err := r.base.RoundTrip(req)
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
	x.Status, x.Header, x.Reply = resp.StatusCode, r.secret.header(resp.Header), r.secret.body(resp.Header.Get("Content-Type"), respBody)
	return resp, nil
}

// exchanges returns the exchanges so far.
func (r *recorder) exchanges() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]exchange{}, r.entries...)
}
