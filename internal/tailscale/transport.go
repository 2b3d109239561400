// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// maxTries is the number of attempts of one request, including the first.
	maxTries = 4

	// maxRetryAfter limits how long one request waits for Retry-After. During longer pauses
	// requests fail immediately.
	maxRetryAfter = 20 * time.Second

	// maxPause limits how long Retry-After stops all requests of a credential. A server that
	// returns a year is probably not the API.
	maxPause = 15 * time.Minute

	baseBackoff = 200 * time.Millisecond
)

// A transport sends all requests of one credential. It limits the rate, follows Retry-After,
// repeats requests that are safe to repeat, and keeps the status of responses that are not JSON.
type transport struct {
	base      http.RoundTripper
	limiter   *rate.Limiter
	metrics   *Metrics
	userAgent string

	// silence is how long an attempt may wait for the next byte of its response.
	silence time.Duration

	mu     sync.Mutex
	paused time.Time // No request is sent before this time.
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.try(req)
	switch {
	case err != nil:
		t.metrics.failed(req.URL.Path, ClassUnavailable)
	case resp.StatusCode >= http.StatusBadRequest:
		t.metrics.failed(req.URL.Path, classOfStatus(resp.StatusCode))
	}
	return resp, err
}

func (t *transport) try(req *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		if err := t.wait(req.Context()); err != nil {
			return nil, err
		}
		attempt, err := replay(req, try)
		if err != nil {
			return nil, err
		}
		attempt.Header.Set("User-Agent", t.userAgent)
		resp, err := t.send(attempt)
		delay, retry := t.retry(req, resp, err, try)
		if !retry {
			return resp, err
		}
		// The response's body was read completely and is in memory: there is nothing to close.
		if err := t.sleep(req.Context(), delay); err != nil {
			return nil, err
		}
	}
}

// replay returns a copy of the request with a separate body.
func replay(req *http.Request, try int) (*http.Request, error) {
	c := req.Clone(req.Context())
	if try == 1 || req.Body == nil || req.Body == http.NoBody {
		return c, nil
	}
	if req.GetBody == nil {
		return nil, errors.New("cannot repeat a request without its body")
	}
	b, err := req.GetBody()
	c.Body = b
	return c, errors.Wrap(err, "cannot repeat a request's body")
}

// send makes one request and reads its response completely. It fails once the response stops
// arriving.
func (t *transport) send(req *http.Request) (*http.Response, error) {
	start := time.Now()
	resource := resourceOf(req.URL.Path)
	req, w := watched(req, t.silence)
	defer w.stop()
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		t.metrics.observe(req.Method, resource, "0", time.Since(start))
		return nil, silent(req, err)
	}
	body, err := readReply(w.reading(resp.Body), replyLimit(req))
	cerr := resp.Body.Close()
	t.metrics.observe(req.Method, resource, strconv.Itoa(resp.StatusCode), time.Since(start))
	if err != nil {
		return nil, silent(req, err)
	}
	if cerr != nil {
		return nil, cerr
	}
	keepStatus(resp, &body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	return resp, nil
}

// keepStatus replaces an error body that is not a JSON object with one that the client library can
// read. The library drops the status of bodies that it cannot read, and treats a redirect as a
// success.
func keepStatus(resp *http.Response, body *[]byte) {
	if resp.StatusCode < http.StatusMultipleChoices {
		return
	}
	if resp.StatusCode < http.StatusBadRequest {
		*body = []byte(`{"message":"unexpected redirect, check the API URL"}`)
		resp.StatusCode = http.StatusBadGateway
		return
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(*body, &object) == nil && object["message"] != nil {
		return
	}
	*body = []byte(`{"message":` + strconv.Quote(http.StatusText(resp.StatusCode)) + `}`)
}

// retry decides whether to repeat a request, and after which pause.
func (t *transport) retry(req *http.Request, resp *http.Response, err error, try int) (time.Duration, bool) {
	// Full jitter prevents clients that failed together from retrying together.
	backoff := time.Duration(rand.Float64() * float64(baseBackoff<<try)) //nolint:gosec // No need for secure randomness.
	switch {
	case try == maxTries || req.Context().Err() != nil:
		return 0, false
	case ClassOf(err) != "":
		// The server answered, and would give the same response again.
		return 0, false
	case err != nil:
		return backoff, repeatable(req)
	case resp.StatusCode == http.StatusTooManyRequests:
		// A rate-limited request had no effect, whatever its method.
		delay := retryAfter(resp.Header, backoff)
		t.pause(delay)
		return delay, delay <= maxRetryAfter
	case resp.StatusCode >= http.StatusInternalServerError:
		delay := retryAfter(resp.Header, backoff)
		if resp.Header.Get("Retry-After") != "" {
			t.pause(delay)
		}
		return delay, repeatable(req) && delay <= maxRetryAfter
	}
	return 0, false
}

// repeatKey is set in the context of requests that are safe to repeat although their method is not.
type repeatKey struct{}

// repeatable reports whether a request is safe to repeat. PUT is not: the request that creates a
// service must not contain addresses, and the request that updates it must.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return true
	}
	harmless, ok := req.Context().Value(repeatKey{}).(bool)
	return ok && harmless
}

// retryAfter returns the time that a response asks to wait, limited to maxPause, plus otherwise, or
// otherwise alone.
func retryAfter(h http.Header, otherwise time.Duration) time.Duration {
	v := h.Get("Retry-After")
	// Out of range means the largest number.
	if s, err := strconv.ParseUint(v, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(s, uint64(maxPause/time.Second)))*time.Second + otherwise
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(0, time.Until(at)), maxPause) + otherwise
	}
	return otherwise
}

// pause delays every request of this credential.
func (t *transport) pause(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end := time.Now().Add(min(d, maxPause)); end.After(t.paused) {
		t.paused = end
	}
}

// wait waits until the rate limit and pauses permit a request.
func (t *transport) wait(ctx context.Context) error {
	start := time.Now()
	defer func() { t.metrics.waits.Add(time.Since(start).Seconds()) }()
	// A request that fails because of a long pause does not use the rate limit.
	if _, err := t.pausedFor(); err != nil {
		return err
	}
	if err := t.limiter.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &Error{Class: ClassRateLimited, Message: "too many requests wait for their turn to reach Tailscale's API"}
	}
	remaining, err := t.pausedFor()
	if err != nil || remaining <= 0 {
		return err
	}
	return t.sleep(ctx, remaining)
}

// pausedFor returns how long to wait before the next request, and an error if the pause is too long
// to wait for.
func (t *transport) pausedFor() (time.Duration, error) {
	t.mu.Lock()
	remaining := time.Until(t.paused)
	t.mu.Unlock()
	if remaining > maxRetryAfter {
		return 0, &Error{Class: ClassRateLimited, Message: "Tailscale's API has asked for a pause, and nothing is sent until it is over"}
	}
	return remaining, nil
}

func (t *transport) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// resources are the kinds of resources that are metric labels.
var resources = map[string]bool{
	"devices": true, "device": true, "keys": true, "vip-services": true, "services": true,
	"dns": true, "oauth": true, "settings": true, "acl": true, "webhooks": true, "logging": true,
	"posture": true, "contacts": true, "users": true, "organizations": true,
}

// resourceOf returns the kind of resource of a path of the API.
func resourceOf(path string) string {
	for _, e := range strings.Split(strings.TrimPrefix(path, "/api/v2/"), "/") {
		if resources[e] {
			return e
		}
	}
	return "other"
}
