// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Fault spoils requests that match it.
type Fault struct {
	// Method matches exactly; empty matches all.
	Method string `json:"method,omitempty"`
	// Path is a regular expression searched in the request's path; empty
	// matches all of the API. Nodes' requests have paths like /machine/map.
	Path string `json:"path,omitempty"`
	// Count is how many requests are spoilt; 0 is until faults are cleared.
	Count int `json:"count,omitempty"`
	// LatencyMS delays the request by so many milliseconds.
	LatencyMS int `json:"latencyMS,omitempty"`
	// Status is answered instead of serving the request; 0 serves it.
	Status int `json:"status,omitempty"`
	// RetryAfter is sent in seconds with Status; 0 sends none.
	RetryAfter int `json:"retryAfter,omitempty"`
	// DropReply serves the request, then closes the connection without a reply.
	DropReply bool `json:"dropReply,omitempty"`

	re   *regexp.Regexp
	left int
}

// faultSet is safe for concurrent use.
type faultSet struct {
	mu sync.Mutex
	fs []*Fault
}

// SetFaults replaces all faults; none clears them.
func (s *Server) SetFaults(fs ...Fault) error {
	set := make([]*Fault, 0, len(fs))
	for _, f := range fs {
		re, err := regexp.Compile(f.Path)
		if err != nil {
			return errors.Wrapf(err, "cannot compile path %q", f.Path)
		}
		if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
			return errors.Errorf("status must be between 400 and 599, not %d", f.Status)
		}
		f.re, f.left = re, f.Count
		set = append(set, &f)
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.fs = set
	return nil
}

// Faults lists the faults that are still on.
func (s *Server) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	out := []Fault{}
	for _, f := range s.faults.fs {
		if f.Count == 0 || f.left > 0 {
			out = append(out, Fault{Method: f.Method, Path: f.Path, Count: f.left, LatencyMS: f.LatencyMS, Status: f.Status, RetryAfter: f.RetryAfter, DropReply: f.DropReply})
		}
	}
	return out
}

// take gives the first fault for r and counts it.
func (fs *faultSet) take(r *http.Request) *Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.fs {
		if f.Method != "" && f.Method != r.Method {
			continue
		}
		if !f.re.MatchString(r.URL.Path) || (f.Path == "" && !strings.HasPrefix(r.URL.Path, "/api/")) {
			continue
		}
		if f.Count > 0 && f.left == 0 {
			continue
		}
		if f.left > 0 {
			f.left--
		}
		return f
	}
	return nil
}

// withFaults spoils requests to h. Requests under /sim/ are never spoilt.
func (s *Server) withFaults(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sim/") {
			h.ServeHTTP(w, r)
			return
		}
		f := s.faults.take(r)
		if f == nil {
			h.ServeHTTP(w, r)
			return
		}
		if f.LatencyMS > 0 {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Duration(f.LatencyMS) * time.Millisecond):
			}
		}
		if f.Status != 0 {
			if f.RetryAfter > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
			}
			msg := http.StatusText(f.Status)
			if f.Status == http.StatusTooManyRequests {
				msg = "rate limit exceeded"
			}
			s.calls.add(r.Method + " (fault)")
			writeError(w, f.Status, msg)
			return
		}
		if f.DropReply {
			h.ServeHTTP(&sink{header: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	})
}

// sink is a reply that nobody gets.
type sink struct {
	header http.Header
	body   bytes.Buffer
}

func (k *sink) Header() http.Header         { return k.header }
func (k *sink) Write(p []byte) (int, error) { return k.body.Write(p) }
func (k *sink) WriteHeader(int)             {}

// callLog counts requests.
type callLog struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *callLog) add(k string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[k]++
}

// Calls counts API requests by method and path template, such as
// "GET /api/v2/tailnet/{tailnet}/devices".
func (s *Server) Calls() map[string]int {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	return maps.Clone(s.calls.n)
}

// ResetCalls sets all counts to zero.
func (s *Server) ResetCalls() {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.n = nil
}
