// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"tailscale.com/health"
	"tailscale.com/ipn"
	"tailscale.com/tsnet"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// loginError waits for a health warning about the login of a node that cannot log in.
func loginError(ctx context.Context, t *testing.T, n *tsnet.Server) string {
	t.Helper()
	lc, err := n.LocalClient()
	if err != nil {
		t.Fatalf("cannot get a local client: %v", err)
	}
	// A watch for the health alone has no first message, and misses a warning that is there already
	// (tailscale v1.102.5 ipn/ipnlocal/local.go WatchNotificationsAs: initialBits lacks
	// NotifyInitialHealthState).
	bus, err := lc.WatchIPNBus(ctx, ipn.NotifyInitialState|ipn.NotifyInitialHealthState)
	if err != nil {
		t.Fatalf("cannot watch the node: %v", err)
	}
	defer bus.Close() // Only read.
	for {
		m, err := bus.Next()
		if err != nil {
			t.Fatalf("cannot read from the node's bus: %v", err)
		}
		if m.Health == nil {
			continue
		}
		if w, ok := m.Health.Warnings[health.LoginStateWarnable.Code]; ok {
			return w.Text
		}
	}
}

// TestControlFaults starts a node again while control fails in different ways: tailscaled reports a
// login error at once, and logs in as the same node when control answers again.
func TestControlFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  tailnetsim.Fault
		want   string
	}{
		"Refused": {
			reason: "A connection that is reset is a login error.",
			fault:  tailnetsim.Fault{Path: tailnetsim.ControlPaths, Refuse: true},
			want:   "last login error",
		},
		"KeyLimited": {
			reason: "An answer 429 of the key endpoint is a login error.",
			fault:  tailnetsim.Fault{Path: tailnetsim.ControlPaths, Status: http.StatusTooManyRequests, RetryAfter: 1},
			want:   "429",
		},
		"RegisterLimited": {
			reason: "An answer 429 to a registration alone is a login error.",
			fault:  tailnetsim.Fault{Path: "^/machine/register$", Status: http.StatusTooManyRequests, RetryAfter: 1},
			want:   "rate limited",
		},
		"Unavailable": {
			reason: "An answer 503 is a login error.",
			fault:  tailnetsim.Fault{Path: tailnetsim.ControlPaths, Status: http.StatusServiceUnavailable},
			want:   "503",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := simtest.Start(t)
			n := r.NewNode(t, "node", "tag:k8s")
			id := simtest.NodeID(t, n)
			if err := n.Close(); err != nil {
				t.Fatalf("cannot stop the node: %v", err)
			}
			if err := r.SetFaults(tc.fault); err != nil {
				t.Fatal(err)
			}
			restarted := &tsnet.Server{Dir: n.Dir, Hostname: n.Hostname, ControlURL: n.ControlURL, Logf: n.Logf, UserLogf: n.UserLogf}
			t.Cleanup(func() { _ = restarted.Close() })
			ctx, cancel := context.WithTimeout(t.Context(), simtest.Timeout)
			defer cancel()
			if got := loginError(ctx, t, restarted); !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\nlogin error: want %q in it, got %q", tc.reason, tc.want, got)
			}
			if err := r.SetFaults(); err != nil {
				t.Fatal(err)
			}
			// An attempt that failed before may be reported only then.
			for {
				_, err := restarted.Up(ctx)
				if err == nil {
					break
				}
				if ctx.Err() != nil {
					t.Fatalf("\n%s\nthe node is not back: %v", tc.reason, err)
				}
			}
			if got := simtest.NodeID(t, restarted); got != id {
				t.Errorf("\n%s\nthe node was %s, is %s", tc.reason, id, got)
			}
		})
	}
}

// TestFaultPaths makes requests to what nodes ask without Noise.
func TestFaultPaths(t *testing.T) {
	r := simtest.Start(t)
	get := func(path string) (int, time.Duration) {
		began := time.Now()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			return 0, time.Since(began)
		}
		_ = res.Body.Close() // Only the status counts.
		return res.StatusCode, time.Since(began)
	}
	cases := map[string]struct {
		reason    string
		fault     tailnetsim.Fault
		path      string
		want      int
		atLeastMS int
	}{
		"Whole":       {reason: "Without a fault control's key is served.", path: "/key?v=1", want: http.StatusOK},
		"API":         {reason: "A fault without a path leaves control alone.", fault: tailnetsim.Fault{Status: 500}, path: "/key?v=1", want: http.StatusOK},
		"Refused":     {reason: "A refused request has no answer.", fault: tailnetsim.Fault{Path: tailnetsim.ControlPaths, Refuse: true}, path: "/key?v=1"},
		"Upgrade":     {reason: "The Noise connection can fail.", fault: tailnetsim.Fault{Path: tailnetsim.ControlPaths, Status: 503}, path: "/ts2021", want: 503},
		"Relay":       {reason: "The relay can fail.", fault: tailnetsim.Fault{Path: tailnetsim.DERPPaths, Status: 503}, path: "/derp", want: 503},
		"RelayWhole":  {reason: "A fault of control leaves the relay alone.", fault: tailnetsim.Fault{Path: tailnetsim.ControlPaths, Status: 503}, path: "/derp/probe", want: http.StatusOK},
		"Slow":        {reason: "A slow answer is late, and whole.", fault: tailnetsim.Fault{Path: tailnetsim.ControlPaths, LatencyMS: 300}, path: "/key?v=1", want: http.StatusOK, atLeastMS: 300},
		"AdminServed": {reason: "Requests that end faults are never spoilt.", fault: tailnetsim.Fault{Path: ".", Status: 503}, path: "/sim/faults", want: http.StatusOK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fs := []tailnetsim.Fault{tc.fault}
			if tc.fault == (tailnetsim.Fault{}) {
				fs = nil
			}
			if err := r.SetFaults(fs...); err != nil {
				t.Fatal(err)
			}
			got, took := get(tc.path)
			if got != tc.want {
				t.Errorf("\n%s\nGET %s: want %d, got %d", tc.reason, tc.path, tc.want, got)
			}
			if took < time.Duration(tc.atLeastMS)*time.Millisecond {
				t.Errorf("\n%s\nGET %s took only %s", tc.reason, tc.path, took)
			}
		})
	}
}
