// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// dial dials the loopback.
var dial = (&net.Dialer{}).DialContext

// server returns the URL of a server that succeeds from the nth request on, and its request count.
func server(t *testing.T, n int64) (string, *atomic.Int64) {
	t.Helper()
	seen := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if seen.Add(1) < n {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

// hijack returns the connection of a request.
func hijack(t *testing.T, w http.ResponseWriter) *net.TCPConn {
	t.Helper()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
	}
	out, _ := conn.(*net.TCPConn) // Servers of this test listen on TCP.
	return out
}

// TestCounts shows which request counts as lost, and as cut, each with a server that treats its first
// request in a way and answers the second one.
func TestCounts(t *testing.T) {
	t.Parallel()
	type counts struct{ Requests, Answered, Lost, Cut int }
	lost := counts{Requests: 2, Answered: 1, Lost: 1}
	answers := func(_ *testing.T, w http.ResponseWriter) { fmt.Fprint(w, "here") }
	cases := map[string]struct {
		reason string
		first  func(t *testing.T, w http.ResponseWriter)

		// refuses is for a client that cannot connect.
		refuses bool

		// event is for a request in flight during an event.
		event bool
		want  counts
	}{
		"Answers": {reason: "A whole response is an answer.", first: answers, want: counts{Requests: 2, Answered: 2}},
		"Unharmed": {
			reason: "A request with a response during an event is not cut.", first: answers, event: true,
			want: counts{Requests: 2, Answered: 2},
		},
		"Refuses": {reason: "A request without a connection is lost.", first: answers, refuses: true, want: lost},
		"Resets": {reason: "A request whose connection is reset is lost.", want: lost, first: func(t *testing.T, w http.ResponseWriter) {
			c := hijack(t, w)
			_ = c.SetLinger(0) // Close then resets the connection.
			_ = c.Close()
		}},
		"Unavailable": {reason: "An error of a proxy is no response.", want: lost, first: func(_ *testing.T, w http.ResponseWriter) {
			http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
		}},
		"ClosesInTheMiddle": {reason: "A part of a response is none.", want: lost, first: func(t *testing.T, w http.ResponseWriter) {
			c := hijack(t, w)
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhere")
			_ = c.Close()
		}},
		"AnswersOtherwise": {reason: "A response without the expected text is none.", want: lost, first: func(_ *testing.T, w http.ResponseWriter) {
			fmt.Fprint(w, "elsewhere")
		}},
		"CutByReset": {
			reason: "A request is cut if its connection ends during an event.", event: true,
			want: counts{Requests: 2, Answered: 1, Cut: 1},
			first: func(t *testing.T, w http.ResponseWriter) {
				_ = hijack(t, w).Close()
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, events := &atomic.Int64{}, &Events{}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if n.Add(1) > 1 || tc.refuses {
					fmt.Fprint(w, "here")
					return
				}
				if !tc.event {
					tc.first(t, w)
					return
				}
				_ = events.During(func() error {
					tc.first(t, w)
					return nil
				})
			}))
			t.Cleanup(s.Close)
			dials := 0
			h := HTTP{
				Targets: []Target{{URL: s.URL, Check: func(r Response) error {
					if r.Body != "here" {
						return errors.Errorf("answered %q", r.Body)
					}
					return nil
				}}},
				NewConnections: true,
				Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials++; dials == 1 && tc.refuses {
						addr = refusing(t)
					}
					return dial(ctx, network, addr)
				},
			}
			ctx, cancel := context.WithCancel(t.Context())
			r := Run(ctx, Options{Client: h.Clients, Observe: func(r Request) {
				if r.N == 1 {
					cancel()
				}
			}})
			missing, cut := events.Split(r.Failures)
			got := counts{Requests: r.Requests, Answered: r.Answered(), Lost: len(missing), Cut: len(cut)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRun(...): -want, +got:\n%s\n%s", tc.reason, diff, r)
			}
		})
	}
}

// TestTimes shows which request counts as slow, and which one as lost because it has no response in time,
// each with a server that answers its first request after a delay, and the second one at once.
func TestTimes(t *testing.T) {
	const timeout = time.Second
	type times struct {
		Requests, Lost int
		Longest        float64
	}
	cases := map[string]struct {
		reason string
		delay  time.Duration
		want   times
	}{
		"Prompt": {reason: "A response takes as long as the server does.", want: times{Requests: 2}},
		"Late":   {reason: "A late response is slow, and not lost.", delay: timeout / 2, want: times{Requests: 2, Longest: 0.5}},
		"Stalls": {reason: "A request without a response within the timeout is lost, and not slow.", delay: 2 * timeout, want: times{Requests: 2, Lost: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				delay, servers := tc.delay, sync.WaitGroup{}
				defer servers.Wait()
				h := HTTP{
					Targets: []Target{{URL: "http://web.example.com/", Check: Contains("here")}}, NewConnections: true,
					Dial: func(context.Context, string, string) (net.Conn, error) {
						c, s := net.Pipe()
						d := delay
						servers.Go(func() { answerAfter(s, d) })
						delay = 0
						return c, nil
					},
				}
				ctx, cancel := context.WithCancel(t.Context())
				r := Run(ctx, Options{Client: h.Clients, Timeout: timeout, Observe: func(r Request) {
					if r.N == 1 {
						cancel()
					}
				}})
				if diff := cmp.Diff(tc.want, times{Requests: r.Requests, Lost: r.Lost, Longest: r.Longest}); diff != "" {
					t.Errorf("\n%s\nRun(...): -want, +got:\n%s\n%s", tc.reason, diff, r)
				}
			})
		})
	}
}

// answerAfter answers a request of a connection after a delay, if the connection is still open then.
func answerAfter(c net.Conn, delay time.Duration) {
	defer func() { _ = c.Close() }() // Nothing follows.
	if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
		return
	}
	time.Sleep(delay)
	// The client may be gone.
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")
}

// refusing returns an address at which nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func TestRun(t *testing.T) {
	const failing = 5
	url, seen := server(t, failing+1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := HTTP{Targets: []Target{{URL: url}}, NewConnections: true, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if seen.Load() > 50 {
			cancel()
		}
		return dial(ctx, network, addr)
	}}
	r := Run(ctx, Options{Client: h.Clients, Workers: 4})
	if r.Lost != failing || r.Requests != int(seen.Load()) {
		t.Errorf("Run(...): want every request counted and %d lost, got %d and %d of %d", failing, r.Lost, r.Requests, seen.Load())
	}
	if len(r.Errors) != failing || r.P50 <= 0 || r.P99 < r.P50 || r.Longest < r.P99 || r.First.IsZero() || r.Seconds <= 0 {
		t.Errorf("Run(...): got %+v", r)
	}
}

// A counter counts calls.
type counter struct {
	send   func(n int) error
	closed *atomic.Int64
}

func (c counter) Send(_ context.Context, n int) (string, error) { return strconv.Itoa(n), c.send(n) }
func (c counter) Close()                                        { c.closed.Add(1) }

func TestStart(t *testing.T) {
	const workers = 3
	closed, seen := &atomic.Int64{}, make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := Start(ctx, Options{
		Workers: workers, Interval: time.Millisecond, Client: func(worker int) Client {
			return counter{closed: closed, send: func(n int) error {
				if n%workers != worker {
					t.Errorf("Start(...): worker %d sends request %d", worker, n)
				}
				return nil
			}}
		},
		Observe: func(r Request) {
			if r.Answer != strconv.Itoa(r.N) || r.Ended.Before(r.Began) {
				t.Errorf("Start(...): observed %+v", r)
			}
			select {
			case seen <- r.N:
			case <-ctx.Done():
			}
		},
	})
	for range 4 * workers {
		<-seen
	}
	cancel()
	r := l.Stop()
	if r.Requests < 4*workers || r.Requests != l.Requests() || r.Lost != 0 {
		t.Errorf("Stop(): want all requests, got %s and %d", r, l.Requests())
	}
	if got := closed.Load(); got != workers {
		t.Errorf("Stop(): want each client closed, got %d", got)
	}
}

func TestFirst(t *testing.T) {
	url, seen := server(t, 3)
	h := HTTP{Targets: []Target{{URL: url}}, Dial: dial}
	began := time.Now()
	r, err := First(t.Context(), Options{Client: h.Clients, Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if seen.Load() != 3 || r.Lost != 2 || r.First.Before(began) {
		t.Errorf("First(...): want the third answer, got %+v after %d requests", r, seen.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := First(ctx, Options{Client: h.Clients}); err == nil {
		t.Error("First(...): want an error when there is no answer")
	}
}

func TestGone(t *testing.T) {
	// It answers the third and the fourth request.
	seen := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := seen.Add(1); n < 3 || n > 4 {
			http.Error(w, "not there", http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	h := HTTP{Targets: []Target{{URL: s.URL}}, Dial: dial}
	reported := 0
	r, err := Gone(t.Context(), Options{Client: h.Clients, Interval: time.Millisecond}, func() { reported++ })
	if err != nil {
		t.Fatal(err)
	}
	if reported != 1 {
		t.Errorf("Gone(...): reported an answer %d times, want once", reported)
	}
	if seen.Load() != 5 || r.Answered() != 2 || r.Lost != 3 || !r.Last.After(r.First) {
		t.Errorf("Gone(...): want the fifth request to be the last, got %+v after %d requests", r, seen.Load())
	}

	always, answered := server(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h = HTTP{Targets: []Target{{URL: always}}, NewConnections: true, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if answered.Load() > 2 {
			cancel()
		}
		return dial(ctx, network, addr)
	}}
	if _, err := Gone(ctx, Options{Client: h.Clients, Interval: time.Millisecond}, func() {}); err == nil {
		t.Error("Gone(...): want an error while there are answers")
	}
}
