// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// moved returns moves with one move, that has just happened.
func moved(t *testing.T) *load.Events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m, hosts := &load.Events{}, []string{"one", "two", "two"}
	m.WatchMoves(ctx, func(context.Context) (string, error) {
		host := hosts[0]
		if hosts = hosts[1:]; len(hosts) == 0 {
			cancel()
		}
		return host, nil
	})
	if m.Count() != 1 {
		t.Fatalf("there are %d moves, not one", m.Count())
	}
	return m
}

func TestJudge(t *testing.T) {
	m := moved(t)
	instant := time.Now()
	at := func(d time.Duration) load.Failure {
		return load.Failure{Began: instant.Add(d), Ended: instant.Add(d + time.Second), Error: "reset"}
	}
	long, during := at(-time.Hour), at(0)
	cases := map[string]struct {
		reason   string
		path     Path
		report   load.Report
		moves    *load.Events
		replaced int
		want     Row
		problems int
	}{
		"AllAnswered": {
			reason: "Nothing is lost.",
			path:   Path{Name: "egress"},
			report: load.Report{Requests: 10, Gap: 0.25, Seconds: 60},
			want:   Row{Phase: "upgrade", Path: "egress", Requests: 10, Gap: 250 * time.Millisecond, Duration: time.Minute},
		},
		"Lost": {
			reason:   "A request without a response is lost, also one that the report does not list.",
			path:     Path{Name: "egress"},
			report:   load.Report{Requests: 12, Lost: 2, Failures: []load.Failure{long}},
			replaced: 2,
			want:     Row{Phase: "upgrade", Path: "egress", Requests: 12, Lost: 2},
			problems: 1,
		},
		"CutByMove": {
			reason: "A request during a move of the addresses is cut, and another one lost.",
			path:   Path{Name: "vip"},
			report: load.Report{Requests: 12, Lost: 2, Failures: []load.Failure{long, during}},
			moves:  m, replaced: 2,
			want:     Row{Phase: "upgrade", Path: "vip", Requests: 12, Lost: 1, Cut: 1, Allowed: 1},
			problems: 1,
		},
		"ManyCutByMove": {
			reason:   "A move cuts only what is in flight.",
			path:     Path{Name: "vip"},
			report:   load.Report{Requests: 12, Lost: 2, Failures: []load.Failure{during, during}},
			moves:    m,
			want:     Row{Phase: "upgrade", Path: "vip", Requests: 12, Cut: 2, Allowed: 1},
			problems: 1,
		},
		"Kept": {
			reason:   "A kept connection ends with its proxy.",
			path:     Path{Name: "egress, kept", KeepAlive: true, Workers: 2},
			report:   load.Report{Requests: 14, Lost: 4, Failures: []load.Failure{long, long, long, long}},
			replaced: 2,
			want:     Row{Phase: "upgrade", Path: "egress, kept", Requests: 14, Cut: 4, Allowed: 4},
		},
		"KeptNotReplaced": {
			reason:   "Without a replaced proxy there is no reason for a kept connection to break.",
			path:     Path{Name: "envoy, kept", KeepAlive: true, Workers: 2},
			report:   load.Report{Requests: 11, Lost: 1, Failures: []load.Failure{long}},
			want:     Row{Phase: "upgrade", Path: "envoy, kept", Requests: 11, Lost: 1},
			problems: 1,
		},
		"NoRequests": {
			reason:   "A load that sent nothing proves nothing.",
			path:     Path{Name: "vip"},
			want:     Row{Phase: "upgrade", Path: "vip"},
			problems: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.path.Judge("upgrade", tc.report, tc.moves, tc.replaced)
			if ps := got.Problems(); len(ps) != tc.problems {
				t.Errorf("\n%s\nProblems(): want %d, got %q", tc.reason, tc.problems, ps)
			}
			if len(got.Errors) > got.Lost {
				t.Errorf("\n%s\nJudge(...): %d errors of %d lost requests", tc.reason, len(got.Errors), got.Lost)
			}
			got.Errors = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nJudge(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTable(t *testing.T) {
	got := Table([]Row{
		{Phase: "upgrade", Path: "vip", Requests: 1200, Cut: 1, Allowed: 2, Gap: 1234567 * time.Microsecond, Duration: 90 * time.Second},
		{Phase: "rollback", Path: "egress, kept", Requests: 7, Lost: 1},
	})
	const want = `PHASE     PATH          REQUESTS  LOST  CUT  ALLOWED  LONGEST GAP  DURATION
upgrade   vip           1200      0     1    2        1.235s       1m30s
rollback  egress, kept  7         1     0    0        0s           0s
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Table(...): -want, +got:\n%s", diff)
	}
}
