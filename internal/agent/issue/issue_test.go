// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// A tailscaled answers certificate requests.
type tailscaled struct {
	// takes is how long an attempt takes.
	takes time.Duration

	mu     sync.Mutex
	fails  error
	asked  map[string]int
	broken int
}

func (f *tailscaled) CertPair(ctx context.Context, domain string) ([]byte, []byte, error) {
	f.mu.Lock()
	f.asked[domain]++
	f.mu.Unlock()
	if f.takes > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(f.takes):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		f.broken++
		return nil, nil, ctx.Err()
	}
	return nil, nil, f.fails
}

func (f *tailscaled) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
}

func (f *tailscaled) count() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.asked
	f.asked = map[string]int{}
	return out
}

func TestIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := &tailscaled{asked: map[string]int{}}
		changes := 0
		i := New(ctx, f, func() { changes++ }, logging.NewNopLogger())
		set := func(session int, domains ...string) {
			t.Helper()
			if err := i.Set(ctx, session, domains); err != nil {
				t.Fatalf("Set(...): %v", err)
			}
			synctest.Wait()
		}
		asked := func(reason string, want map[string]int) {
			t.Helper()
			if diff := cmp.Diff(want, f.count()); diff != "" {
				t.Errorf("\n%s\nasked for: -want, +got:\n%s", reason, diff)
			}
		}
		problems := func(reason string, want map[string]string) {
			t.Helper()
			if diff := cmp.Diff(want, i.Problems()); diff != "" {
				t.Errorf("\n%s\nProblems(): -want, +got:\n%s", reason, diff)
			}
		}

		set(1, "b.ts.net", "a.ts.net", "a.ts.net")
		asked("A name must not be requested before control grants it.", map[string]int{})
		i.Grant([]string{"c.ts.net", "b.ts.net"})
		synctest.Wait()
		asked("A name must be requested as soon as control grants it.", map[string]int{"b.ts.net": 1})
		set(1, "a.ts.net")
		set(1, "a.ts.net", "b.ts.net")
		asked("A name that is wanted again must be requested again.", map[string]int{"b.ts.net": 1})
		i.Grant([]string{"a.ts.net", "b.ts.net", "c.ts.net", "d.ts.net"})
		synctest.Wait()
		asked("The other names must not be requested again.", map[string]int{"a.ts.net": 1})
		set(1, "a.ts.net", "b.ts.net")
		asked("The same names must not be requested again.", map[string]int{})
		<-time.After(25 * time.Hour)
		synctest.Wait()
		asked("The names must be requested again after a day, so that they are renewed.", map[string]int{"a.ts.net": 1, "b.ts.net": 1})
		set(2, "a.ts.net", "b.ts.net")
		asked("All names must be requested from a new tailscaled.", map[string]int{"a.ts.net": 1, "b.ts.net": 1})
		problems("There must be no problem yet.", map[string]string{})

		f.set(errors.New("500 Internal Server Error:\n" + strings.Repeat("x", 1000)))
		set(2, "a.ts.net", "c.ts.net")
		asked("A new name must be requested.", map[string]int{"c.ts.net": 1})
		problems("A problem must be reported in one short line.",
			map[string]string{"c.ts.net": "500 Internal Server Error: " + strings.Repeat("x", maxProblem-27)})
		if changes != 1 {
			t.Errorf("changed must be called once, was called %d times", changes)
		}
		f.set(nil)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		asked("The name must soon be requested again.", map[string]int{"c.ts.net": 1})
		problems("A name with a certificate must have no problem.", map[string]string{})

		f.set(errors.New("boom"))
		set(2, "d.ts.net")
		set(2)
		problems("A name that is not wanted must have no problem.", map[string]string{})
	})
}

// TestUnderWay changes the wanted names while tailscaled works on a request.
func TestUnderWay(t *testing.T) {
	boom := errors.New("boom")
	type step struct {
		// after is the time since the previous step.
		after   time.Duration
		session int
		domains []string
	}
	type want struct {
		Asked    map[string]int
		Broken   int
		Problems map[string]string
	}
	a := []string{"a.ts.net"}
	cases := map[string]struct {
		reason string
		fails  error
		steps  []step
		ends   time.Duration
		want   want
	}{
		"NameFlaps": {
			reason: "A name that is removed for a moment causes only one order.",
			steps:  []step{{session: 1, domains: a}, {after: time.Second, session: 1}, {after: time.Second, session: 1, domains: a}},
			want:   want{Asked: map[string]int{"a.ts.net": 1}, Problems: map[string]string{}},
		},
		"BusEnds": {
			reason: "A new session with the same tailscaled orders no second certificate.",
			steps:  []step{{session: 1, domains: a}, {after: time.Second, session: 2, domains: a}, {after: time.Second, session: 3, domains: a}},
			want:   want{Asked: map[string]int{"a.ts.net": 1}, Problems: map[string]string{}},
		},
		"Gone": {
			reason: "The attempt for a name that is no longer wanted ends, and is not repeated.",
			fails:  boom,
			steps:  []step{{session: 1, domains: a}, {after: time.Second, session: 1}, {after: time.Hour, session: 1}},
			want:   want{Asked: map[string]int{"a.ts.net": 1}, Problems: map[string]string{}},
		},
		"FailsForWhoCameBack": {
			reason: "A failure is not repeated at once because a name was removed for a moment.",
			fails:  boom,
			steps:  []step{{session: 1, domains: a}, {after: time.Second, session: 1}, {after: time.Second, session: 1, domains: a}},
			want:   want{Asked: map[string]int{"a.ts.net": 1}, Problems: map[string]string{"a.ts.net": "boom"}},
		},
		"FailsWithTheOldSession": {
			reason: "An attempt that began with the previous tailscaled and fails is repeated with the new one.",
			fails:  boom,
			steps:  []step{{session: 1, domains: a}, {after: time.Second, session: 2, domains: a}, {after: 20 * time.Second, session: 2, domains: a}},
			want:   want{Asked: map[string]int{"a.ts.net": 2}, Problems: map[string]string{"a.ts.net": "boom"}},
		},
		"PodEnds": {
			reason: "All attempts end with the agent, and their results are not reported.",
			steps:  []step{{session: 1, domains: a}},
			ends:   time.Second,
			want:   want{Asked: map[string]int{"a.ts.net": 1}, Broken: 1, Problems: map[string]string{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f := &tailscaled{asked: map[string]int{}, takes: 10 * time.Second, fails: tc.fails}
				i := New(ctx, f, func() {}, logging.NewNopLogger())
				i.Grant(a)
				for _, s := range tc.steps {
					<-time.After(s.after)
					if err := i.Set(ctx, s.session, s.domains); err != nil {
						t.Fatalf("\n%s\nSet(...): %v", tc.reason, err)
					}
				}
				if tc.ends > 0 {
					<-time.After(tc.ends)
					cancel()
				}
				<-time.After(30 * time.Second)
				synctest.Wait()
				got := want{Asked: f.count(), Broken: f.broken, Problems: i.Problems()}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
