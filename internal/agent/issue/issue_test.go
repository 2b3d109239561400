// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package issue

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A tailscaled answers certificate requests.
type tailscaled struct {
	// takes is how long an attempt takes.
	takes time.Duration

	mu       sync.Mutex
	fails    error
	requests map[string]int
	broken   int

	// most is how many requests were under way at a time.
	most, underWay int
}

func (f *tailscaled) CertPairWithValidity(ctx context.Context, domain string, _ time.Duration) ([]byte, []byte, error) {
	return f.CertPair(ctx, domain)
}

func (f *tailscaled) CertPair(ctx context.Context, domain string) ([]byte, []byte, error) {
	f.mu.Lock()
	f.requests[domain]++
	f.underWay++
	f.most = max(f.most, f.underWay)
	f.mu.Unlock()
	if f.takes > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(f.takes):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underWay--
	if ctx.Err() != nil {
		f.broken++
		return nil, nil, ctx.Err()
	}
	return nil, nil, f.fails
}

// quiet returns options without effects.
func quiet() Options {
	return Options{Changed: func() {}, Attempted: func(Result) {}, Log: logging.NewNopLogger()}
}

// problems returns the problems of an Issuer, by name.
func problems(i *Issuer) map[string]string {
	out := map[string]string{}
	for name, st := range i.Statuses() {
		if st.Problem != "" {
			out[name] = st.Problem
		}
	}
	return out
}

func (f *tailscaled) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
}

func (f *tailscaled) count() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = map[string]int{}
	return out
}

func TestIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := &tailscaled{requests: map[string]int{}}
		results := map[Result]int{}
		o := quiet()
		var mu sync.Mutex
		o.Attempted = func(r Result) {
			mu.Lock()
			defer mu.Unlock()
			results[r]++
		}
		i := New(ctx, f, o)
		set := func(session int, domains ...string) {
			t.Helper()
			if err := i.Set(ctx, session, domains); err != nil {
				t.Fatalf("Set(...): %v", err)
			}
			synctest.Wait()
		}
		requested := func(reason string, want map[string]int) {
			t.Helper()
			if diff := cmp.Diff(want, f.count()); diff != "" {
				t.Errorf("\n%s\nasked for: -want, +got:\n%s", reason, diff)
			}
		}
		problem := func(reason string, want map[string]string) {
			t.Helper()
			if diff := cmp.Diff(want, problems(i)); diff != "" {
				t.Errorf("\n%s\nStatuses(): -want, +got:\n%s", reason, diff)
			}
		}

		set(1, "b.ts.net", "a.ts.net", "a.ts.net")
		requested("A name must not be requested before control grants it.", map[string]int{})
		i.Grant([]string{"c.ts.net", "b.ts.net"})
		synctest.Wait()
		requested("A name must be requested as soon as control grants it.", map[string]int{"b.ts.net": 1})
		set(1, "a.ts.net")
		set(1, "a.ts.net", "b.ts.net")
		requested("A name that is wanted again must be requested again.", map[string]int{"b.ts.net": 1})
		i.Grant([]string{"a.ts.net", "b.ts.net", "c.ts.net", "d.ts.net"})
		synctest.Wait()
		requested("The other names must not be requested again.", map[string]int{"a.ts.net": 1})
		set(1, "a.ts.net", "b.ts.net")
		requested("The same names must not be requested again.", map[string]int{})
		<-time.After(25 * time.Hour)
		synctest.Wait()
		requested("The names must be requested again after a day, so that they are renewed.", map[string]int{"a.ts.net": 1, "b.ts.net": 1})
		set(2, "a.ts.net", "b.ts.net")
		requested("All names must be requested from a new tailscaled.", map[string]int{"a.ts.net": 1, "b.ts.net": 1})
		problem("There must be no problem yet.", map[string]string{})

		f.set(errors.New("500 Internal Server Error:\n" + strings.Repeat("x", 1000)))
		set(2, "a.ts.net", "c.ts.net")
		requested("A new name must be requested.", map[string]int{"c.ts.net": 1})
		problem("A problem must be reported in one short line.",
			map[string]string{"c.ts.net": "500 Internal Server Error: " + strings.Repeat("x", maxProblem-27)})
		if diff := cmp.Diff(map[Result]int{Issued: 7, Failed: 1}, results); diff != "" {
			t.Errorf("Each attempt must be counted by its result: -want, +got:\n%s", diff)
		}
		f.set(nil)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		requested("The name must soon be requested again.", map[string]int{"c.ts.net": 1})
		problem("A name with a certificate must have no problem.", map[string]string{})

		f.set(errors.New("boom"))
		set(2, "d.ts.net")
		set(2)
		problem("A name that is not wanted must have no problem.", map[string]string{})
	})
}

// TestUnderWay changes the wanted names while tailscaled works on a request.
func TestUnderWay(t *testing.T) {
	boom := errors.New("boom")
	type step struct {
		// pause is the time since the previous step.
		pause   time.Duration
		session int
		domains []string
	}
	type want struct {
		Requests map[string]int
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
			steps:  []step{{session: 1, domains: a}, {pause: time.Second, session: 1}, {pause: time.Second, session: 1, domains: a}},
			want:   want{Requests: map[string]int{"a.ts.net": 1}, Problems: map[string]string{}},
		},
		"BusEnds": {
			reason: "A new session with the same tailscaled orders no second certificate.",
			steps:  []step{{session: 1, domains: a}, {pause: time.Second, session: 2, domains: a}, {pause: time.Second, session: 3, domains: a}},
			want:   want{Requests: map[string]int{"a.ts.net": 1}, Problems: map[string]string{}},
		},
		"Gone": {
			reason: "The attempt for a name that is no longer wanted ends, and is not repeated.",
			fails:  boom,
			steps:  []step{{session: 1, domains: a}, {pause: time.Second, session: 1}, {pause: time.Hour, session: 1}},
			want:   want{Requests: map[string]int{"a.ts.net": 1}, Problems: map[string]string{}},
		},
		"FailsForWhoCameBack": {
			reason: "A failure is not repeated at once because a name was removed for a moment.",
			fails:  boom,
			steps:  []step{{session: 1, domains: a}, {pause: time.Second, session: 1}, {pause: time.Second, session: 1, domains: a}},
			want:   want{Requests: map[string]int{"a.ts.net": 1}, Problems: map[string]string{"a.ts.net": "boom"}},
		},
		"FailsWithTheOldSession": {
			reason: "An attempt that began with the previous tailscaled and fails is repeated with the new one.",
			fails:  boom,
			steps:  []step{{session: 1, domains: a}, {pause: time.Second, session: 2, domains: a}, {pause: 20 * time.Second, session: 2, domains: a}},
			want:   want{Requests: map[string]int{"a.ts.net": 2}, Problems: map[string]string{"a.ts.net": "boom"}},
		},
		"PodEnds": {
			reason: "All attempts end with the agent, and their results are not reported.",
			steps:  []step{{session: 1, domains: a}},
			ends:   time.Second,
			want:   want{Requests: map[string]int{"a.ts.net": 1}, Broken: 1, Problems: map[string]string{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f := &tailscaled{requests: map[string]int{}, takes: 10 * time.Second, fails: tc.fails}
				i := New(ctx, f, quiet())
				i.Grant(a)
				for _, s := range tc.steps {
					<-time.After(s.pause)
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
				got := want{Requests: f.count(), Broken: f.broken, Problems: problems(i)}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestTurns requests more certificates than tailscaled gets requests at a time.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := &tailscaled{requests: map[string]int{}, takes: time.Minute}
		var changes atomic.Int32
		o := quiet()
		o.Changed = func() { changes.Add(1) }
		i := New(ctx, f, o)
		var domains []string
		for n := range 3 * maxAttempts {
			domains = append(domains, fmt.Sprintf("web-%02d.ts.net", n))
		}
		i.Grant(domains)
		begin := time.Now()
		if err := i.Set(ctx, 1, domains); err != nil {
			t.Fatalf("Set(...): %v", err)
		}
		synctest.Wait()
		waiting, last := 0, ""
		for name, st := range i.Statuses() {
			if !st.Requested {
				t.Errorf("%s must count as asked for: control has granted it", name)
			}
			if st.Began.IsZero() {
				waiting++
				last = name
			}
		}
		if want := 2 * maxAttempts; waiting != want {
			t.Errorf("want %d names that wait for their turn, got %d", want, waiting)
		}
		if n := changes.Load(); n != maxAttempts {
			t.Errorf("want a change for each attempt that began, got %d", n)
		}
		// A name that is not wanted any more gives up its turn.
		domains = slices.DeleteFunc(domains, func(d string) bool { return d == last })
		if err := i.Set(ctx, 1, domains); err != nil {
			t.Fatalf("Set(...): %v", err)
		}
		<-time.After(5 * time.Minute)
		synctest.Wait()
		began := map[time.Duration]int{}
		for _, st := range i.Statuses() {
			began[st.Began.Sub(begin)]++
		}
		// The order of the turns is not defined.
		if began[0] != maxAttempts || len(began) != 3 {
			t.Errorf("want %d attempts at a time, got %v", maxAttempts, began)
		}
		if f.most != maxAttempts {
			t.Errorf("want %d requests at a time, got %d", maxAttempts, f.most)
		}
	})
}

// TestLimited has a limit refuse a name.
func TestLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begin := time.Now().UTC()
		limitEnd := begin.Add(3 * time.Hour)
		f := &tailscaled{requests: map[string]int{}, fails: errors.New(
			"500 Internal Server Error: 429 urn:ietf:params:acme:error:rateLimited: too many certificates (50) already issued for \"tail1234.ts.net\" in the last 168h0m0s, retry after " + limitEnd.Format(time.DateTime) + " UTC: see https://letsencrypt.org/docs/rate-limits/")}
		i := New(ctx, f, quiet())
		a := []string{"a.ts.net"}
		i.Grant(a)
		set := func(session int, domains ...string) {
			t.Helper()
			if err := i.Set(ctx, session, domains); err != nil {
				t.Fatalf("Set(...): %v", err)
			}
			synctest.Wait()
		}
		set(1, a...)
		if st := i.Statuses()["a.ts.net"]; !st.Limited || !st.LimitEnd.Equal(limitEnd) {
			t.Errorf("the refusal must name its end, %v: got %+v", limitEnd, st)
		}
		// Neither pauses of the schedule, nor a new tailscaled, nor another wish end the refusal.
		<-time.After(30 * time.Minute)
		set(2, a...)
		set(2)
		set(2, a...)
		<-time.After(2 * time.Hour)
		synctest.Wait()
		if diff := cmp.Diff(map[string]int{"a.ts.net": 1}, f.count()); diff != "" {
			t.Errorf("nothing must be requested before the time of the refusal: -want, +got:\n%s", diff)
		}
		f.set(nil)
		<-time.After(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff(map[string]int{"a.ts.net": 1}, f.count()); diff != "" {
			t.Errorf("the name must be requested after the refusal: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{}, problems(i)); diff != "" {
			t.Errorf("the problem must be over then: -want, +got:\n%s", diff)
		}
	})
}

// TestReplace has tailscaled return certificates that must be replaced, and looks again a day
// later.
func TestReplace(t *testing.T) {
	const other = "https://acme.example.com/directory"
	cases := map[string]struct {
		reason    string
		directory string
		issuer    pkix.Name
		remaining time.Duration
		renewed   pkix.Name
		fails     string
		want      map[string]int
		problems  map[string]string
	}{
		"Good": {
			reason: "A good certificate is left alone.",
			issuer: issuerProduction, remaining: 60 * day,
			want: map[string]int{"get": 2},
		},
		"Staging": {
			reason:    "A staging certificate is replaced when the directory is another one.",
			directory: other, issuer: issuerStaging, remaining: 60 * day, renewed: pkix.Name{CommonName: "Example"},
			want: map[string]int{"get": 2, "renew": 1},
		},
		"ToStaging": {
			reason:    "A certificate is replaced when the directory is that of staging.",
			directory: "https://" + hostStaging + "/directory", issuer: issuerProduction, remaining: 60 * day, renewed: issuerStaging,
			want: map[string]int{"get": 2, "renew": 1},
		},
		"StagingY": {
			reason:    "A certificate of staging is left alone there, also one with the organization of production.",
			directory: "https://" + hostStaging + "/directory", issuer: issuerStagingY, remaining: 60 * day,
			want: map[string]int{"get": 2},
		},
		"PassesOn": {
			reason:    "A directory that passes orders on to staging gets one more order, and not one each day.",
			directory: other, issuer: issuerStaging, remaining: 60 * day, renewed: issuerStaging,
			want: map[string]int{"get": 2, "renew": 1},
		},
		"Late": {
			reason: "A late certificate is renewed in the foreground.",
			issuer: issuerProduction, remaining: 10 * day, renewed: issuerProduction,
			want: map[string]int{"get": 2, "renew": 1},
		},
		"CannotRenew": {
			reason: "Only a renewal in the foreground shows why it fails.",
			issuer: issuerProduction, remaining: 10 * day, fails: "requester account did not request the certificate being replaced by this order",
			want:     map[string]int{"get": 4, "renew": 4},
			problems: map[string]string{"a.ts.net": "requester account did not request the certificate being replaced by this order"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f := &renewer{requests: map[string]int{}, chain: chain(t, tc.issuer, time.Now().Add(tc.remaining-90*day), time.Now().Add(tc.remaining))}
				if tc.fails == "" {
					f.renewed = chain(t, tc.renewed, time.Now(), time.Now().Add(90*day))
				} else {
					f.fails = errors.New(tc.fails)
				}
				o := quiet()
				o.Directory = tc.directory
				i := New(ctx, f, o)
				i.Grant([]string{"a.ts.net"})
				if err := i.Set(ctx, 1, []string{"a.ts.net"}); err != nil {
					t.Fatalf("Set(...): %v", err)
				}
				<-time.After(25 * time.Hour)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, f.requests); diff != "" {
					t.Errorf("\n%s\nrequests: -want, +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.problems, problems(i), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("\n%s\nStatuses(): -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// A renewer is a tailscaled that has a certificate.
type renewer struct {
	requests map[string]int
	chain    []byte
	renewed  []byte
	fails    error
}

func (f *renewer) CertPair(context.Context, string) ([]byte, []byte, error) {
	f.requests["get"]++
	return f.chain, nil, nil
}

func (f *renewer) CertPairWithValidity(context.Context, string, time.Duration) ([]byte, []byte, error) {
	f.requests["renew"]++
	if f.fails != nil {
		return nil, nil, f.fails
	}
	f.chain = f.renewed
	return f.chain, nil, nil
}
