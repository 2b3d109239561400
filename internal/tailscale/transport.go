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
	// maxTries of one request, the first included.
	maxTries = 4

	// maxRetryAfter bounds how long one request waits because the API says so.
	// During longer pauses requests fail at once.
	maxRetryAfter = 20 * time.Second

	// maxPause bounds how long no request of a credential is sent because the API says
	// so. Who answers with a year is likely not the API.
	maxPause = 15 * time.Minute

	baseBackoff = 200 * time.Millisecond
)

// A transport carries all requests of one credential: it keeps to a rate, obeys
// Retry-After, repeats what is safe to repeat and keeps the status of answers
// that are no JSON.
type transport struct {
	base      http.RoundTripper
	limiter   *rate.Limiter
	metrics   *Metrics
	userAgent string

	// silence is how long a try may wait for the next byte of its answer.
	silence time.Duration

	mu     sync.Mutex
	paused time.Time // No request is sent before.
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
		delay, again := t.retry(req, resp, err, try)
		if !again {
			return resp, err
		}
		// The body of an answer was read whole and is in memory: there is
		// nothing to close.
		if err := t.sleep(req.Context(), delay); err != nil {
			return nil, err
		}
	}
}

// replay returns a copy of the request with a body of its own.
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

// send makes one request and reads its answer whole. It ends once the answer stops coming.
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

// keepStatus gives an error without a JSON object a body that the client
// library can read: it forgets the status of those that it cannot, and takes a
// redirect for a success.
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

// retry decides whether a request is sent again, and after which pause.
func (t *transport) retry(req *http.Request, resp *http.Response, err error, try int) (time.Duration, bool) {
	// Full jitter keeps clients that failed together from coming back together.
	backoff := time.Duration(rand.Float64() * float64(baseBackoff<<try)) //nolint:gosec // No need for secure randomness.
	switch {
	case try == maxTries || req.Context().Err() != nil:
		return 0, false
	case ClassOf(err) != "":
		// An answer came, and another would be like it.
		return 0, false
	case err != nil:
		return backoff, repeatable(req)
	case resp.StatusCode == http.StatusTooManyRequests:
		// A request that was turned away did nothing, whatever its method.
		after := retryAfter(resp.Header, backoff)
		t.pause(after)
		return after, after <= maxRetryAfter
	case resp.StatusCode >= http.StatusInternalServerError:
		after := retryAfter(resp.Header, backoff)
		if resp.Header.Get("Retry-After") != "" {
			t.pause(after)
		}
		return after, repeatable(req) && after <= maxRetryAfter
	}
	return 0, false
}

// repeatKey is set in the context of requests that may be sent twice though
// their method does not say so.
type repeatKey struct{}

// repeatable says which requests may be sent twice blindly. PUT is not among
// them: the one that makes a service must not carry addresses, and the one that
// updates it must.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return true
	}
	harmless, ok := req.Context().Value(repeatKey{}).(bool)
	return ok && harmless
}

func retryAfter(h http.Header, otherwise time.Duration) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.Atoi(v); err == nil && s >= 0 {
		return time.Duration(s)*time.Second + otherwise
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at)) + otherwise
	}
	return otherwise
}

// pause keeps every request of this credential back for a while.
func (t *transport) pause(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := time.Now().Add(min(d, maxPause)); until.After(t.paused) {
		t.paused = until
	}
}

// wait until the rate limit and pauses allow a request.
func (t *transport) wait(ctx context.Context) error {
	start := time.Now()
	defer func() { t.metrics.waits.Add(time.Since(start).Seconds()) }()
	// What fails in a long pause takes nobody's turn.
	if _, err := t.pausedFor(); err != nil {
		return err
	}
	if err := t.limiter.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &Error{Class: ClassRateLimited, Message: "too many requests wait for their turn to reach Tailscale's API"}
	}
	left, err := t.pausedFor()
	if err != nil || left <= 0 {
		return err
	}
	return t.sleep(ctx, left)
}

// pausedFor returns how long no request may be sent, and an error if that is too long to
// wait for.
func (t *transport) pausedFor() (time.Duration, error) {
	t.mu.Lock()
	left := time.Until(t.paused)
	t.mu.Unlock()
	if left > maxRetryAfter {
		return 0, &Error{Class: ClassRateLimited, Message: "Tailscale's API has asked for a pause, and nothing is sent until it is over"}
	}
	return left, nil
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

// resources that may be metric labels.
var resources = map[string]bool{
	"devices": true, "device": true, "keys": true, "vip-services": true, "services": true,
	"dns": true, "oauth": true, "settings": true, "acl": true, "webhooks": true, "logging": true,
	"posture": true, "contacts": true, "users": true, "organizations": true,
}

// resourceOf returns the kind of resource that a path of the API is about.
func resourceOf(path string) string {
	for _, e := range strings.Split(strings.TrimPrefix(path, "/api/v2/"), "/") {
		if resources[e] {
			return e
		}
	}
	return "other"
}
