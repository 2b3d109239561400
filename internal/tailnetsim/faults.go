// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Paths of what nodes ask, for faults.
const (
	// ControlPaths matches requests to the coordination server: for its key, for a Noise
	// connection, and in that connection (tailscale.com control/controlclient/direct.go, control/ts2021).
	// Connections and streams that are open stay open.
	ControlPaths = "^/(key|ts2021)$|^/machine/"

	// DERPPaths matches requests to the relay.
	DERPPaths = "^/derp"
)

// A Fault spoils requests that match it.
type Fault struct {
	// Method matches exactly; empty matches all.
	Method string `json:"method,omitempty"`
	// Path is a regular expression searched in the request's path; empty
	// matches all of the API. ControlPaths and DERPPaths match what nodes ask.
	Path string `json:"path,omitempty"`
	// Count is how many requests are spoilt; 0 is until faults are cleared.
	Count int `json:"count,omitempty"`
	// Probability is the share of matching requests that are spoilt, from 0 to 1.
	// 0 is all. Requests that are spared may meet the next fault.
	Probability float64 `json:"probability,omitempty"`
	// Seed makes the dice of Probability and LatencyMaxMS fall the same again.
	Seed uint64 `json:"seed,omitempty"`
	// LatencyMS delays the request by so many milliseconds.
	LatencyMS int `json:"latencyMS,omitempty"`
	// LatencyMaxMS, if it is more than LatencyMS, makes the delay a random one
	// between the two.
	LatencyMaxMS int `json:"latencyMaxMS,omitempty"`
	// Status is answered instead of serving the request; 0 serves it.
	Status int `json:"status,omitempty"`
	// RetryAfter is sent in seconds with Status; 0 sends none.
	RetryAfter int `json:"retryAfter,omitempty"`
	// DropReply serves the request, then closes the connection without a reply.
	DropReply bool `json:"dropReply,omitempty"`
	// HTML is sent with Status instead of JSON, as a proxy before the API does.
	HTML bool `json:"html,omitempty"`
	// NoBody serves the request and answers its status without a body.
	NoBody bool `json:"noBody,omitempty"`
	// Refuse resets the connection instead of serving the request. The client has no answer, as
	// from a server that is down, or behind a packet filter that rejects.
	Refuse bool `json:"refuse,omitempty"`

	re        *regexp.Regexp
	remaining int
	dice      *rand.Rand
}

// delay returns the delay of the next request. It is not safe for concurrent use.
func (f *Fault) delay() time.Duration {
	d := time.Duration(f.LatencyMS) * time.Millisecond
	if f.LatencyMaxMS > f.LatencyMS {
		d += time.Duration(f.dice.Int64N(int64(f.LatencyMaxMS-f.LatencyMS)+1)) * time.Millisecond
	}
	return d
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
		if f.Probability < 0 || f.Probability > 1 {
			return errors.Errorf("probability must be between 0 and 1, not %g", f.Probability)
		}
		f.re, f.remaining = re, f.Count
		f.dice = rand.New(rand.NewPCG(f.Seed, 0)) //nolint:gosec // Dice for tests.
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
		if f.Count == 0 || f.remaining > 0 {
			active := *f
			active.Count, active.re, active.dice = f.remaining, nil, nil
			out = append(out, active)
		}
	}
	return out
}

// take returns the first fault for r, counts it, and how long to delay r.
func (fs *faultSet) take(r *http.Request) (*Fault, time.Duration) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.fs {
		if f.Method != "" && f.Method != r.Method {
			continue
		}
		if !f.re.MatchString(r.URL.Path) || (f.Path == "" && !strings.HasPrefix(r.URL.Path, "/api/")) {
			continue
		}
		if f.Count > 0 && f.remaining == 0 {
			continue
		}
		if f.Probability > 0 && f.dice.Float64() >= f.Probability {
			continue
		}
		if f.remaining > 0 {
			f.remaining--
		}
		return f, f.delay()
	}
	return nil, 0
}

// withFaults spoils requests to h. Requests under /sim/ are never spoilt.
func (s *Server) withFaults(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sim/") || s.bystander(r) {
			h.ServeHTTP(w, r)
			return
		}
		f, delay := s.faults.take(r)
		if f == nil {
			h.ServeHTTP(w, r)
			return
		}
		if delay > 0 {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(delay):
			}
		}
		if f.Refuse {
			s.calls.add(r.Method + " (fault)")
			refuse(w)
			return
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
			if f.HTML {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(f.Status)
				// The client may be gone, and there is no one else to report to.
				_, _ = w.Write([]byte("<html><body><h1>" + msg + "</h1></body></html>"))
				return
			}
			writeError(w, f.Status, msg)
			return
		}
		if f.DropReply {
			h.ServeHTTP(&sink{header: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		if f.NoBody {
			k := &sink{header: http.Header{}, status: http.StatusOK}
			h.ServeHTTP(k, r)
			w.WriteHeader(k.status)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// refuse resets the connection of a request, or in HTTP/2 its stream.
func refuse(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if s, ok := c.(*sniffConn); ok {
		c = s.Conn
	}
	if t, ok := c.(*net.TCPConn); ok {
		// The kernel then sends a reset in place of the end of the stream.
		_ = t.SetLinger(0)
	}
	_ = c.Close() // The client learns no more from an error.
}

// sink is a reply that is thrown away.
type sink struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *sink) Header() http.Header         { return k.header }
func (k *sink) Write(p []byte) (int, error) { return k.body.Write(p) }
func (k *sink) WriteHeader(status int)      { k.status = status }

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
