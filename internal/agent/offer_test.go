// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
)

func TestOffers(t *testing.T) {
	const name = "web.tail1234.ts.net"
	waiting := map[string]issue.Status{name: {}}
	requested := map[string]issue.Status{name: {Requested: true}}
	limited := map[string]issue.Status{name: {Requested: true, Problem: "429 too many certificates"}}
	start := time.Unix(1000, 0)
	begins := func(elapsed time.Duration, problem string) map[string]issue.Status {
		return map[string]issue.Status{name: {Requested: true, Began: start.Add(elapsed), Problem: problem}}
	}
	refused := map[string]issue.Status{name: {Requested: true, Problem: `invalid domain "web.tail1234.ts.net"; must be one of ["proxy-0.tail1234.ts.net"]`}}
	type moment struct {
		elapsed time.Duration
		status  map[string]issue.Status
		offered bool
		retry   bool
		next    time.Duration // After the start; zero if there is none.
	}
	cases := map[string]struct {
		reason  string
		moments []moment
	}{
		"Granted": {
			reason: "A service whose name control grants in time is not offered.",
			moments: []moment{
				{status: waiting, next: offerAfter},
				{elapsed: offerAfter - time.Second, status: requested},
				{elapsed: 2 * offerAfter, status: requested},
				{elapsed: 3 * offerAfter},
			},
		},
		"Missing": {
			reason: "A missing name has the service advertised until the certificate is there, and no longer.",
			moments: []moment{
				{status: waiting, next: offerAfter},
				{elapsed: offerAfter, status: waiting, offered: true, next: offerAfter + offerFor},
				{elapsed: offerAfter + time.Second, status: begins(offerAfter+time.Second, ""), offered: true, next: offerAfter + time.Second + offerFor},
				{elapsed: offerAfter + time.Minute},
			},
		},
		"Waits": {
			reason: "The time counts from the begin of the attempt, which waits for its turn.",
			moments: []moment{
				{status: waiting, next: offerAfter},
				{elapsed: offerAfter, status: waiting, offered: true, next: offerAfter + offerFor},
				{elapsed: offerAfter + time.Second, status: requested, offered: true},
				{elapsed: offerAfter + 2*offerFor, status: requested, offered: true},
				{elapsed: offerAfter + 3*offerFor, status: begins(offerAfter+3*offerFor, ""), offered: true, next: offerAfter + 4*offerFor},
				{elapsed: offerAfter + 4*offerFor - time.Second, status: begins(offerAfter+3*offerFor, ""), offered: true, next: offerAfter + 4*offerFor},
				{elapsed: offerAfter + 4*offerFor, status: begins(offerAfter+3*offerFor, "")},
			},
		},
		"Fails": {
			reason: "Further attempts do not extend the time.",
			moments: []moment{
				{status: waiting, next: offerAfter},
				{elapsed: offerAfter, status: waiting, offered: true, next: offerAfter + offerFor},
				{elapsed: 2 * offerAfter, status: begins(2*offerAfter, ""), offered: true, next: 2*offerAfter + offerFor},
				{elapsed: 2*offerAfter + time.Minute, status: begins(2*offerAfter+time.Minute, "boom"), offered: true, next: 2*offerAfter + offerFor},
				{elapsed: 2*offerAfter + offerFor, status: begins(2*offerAfter+time.Minute, "boom")},
			},
		},
		"LimitedMeanwhile": {
			reason: "An offer whose certificate a limit refuses ends in time.",
			moments: []moment{
				{status: waiting, next: offerAfter},
				{elapsed: offerAfter, status: waiting, offered: true, next: offerAfter + offerFor},
				{elapsed: offerAfter + time.Second, status: limited, offered: true, next: offerAfter + offerFor},
				{elapsed: offerAfter + offerFor, status: limited},
			},
		},
		"NeverGranted": {
			reason: "A service whose name stays missing is offered again after an hour.",
			moments: []moment{
				{status: waiting, next: offerAfter},
				{elapsed: offerAfter, status: waiting, offered: true, next: offerAfter + offerFor},
				{elapsed: offerAfter + offerFor, status: waiting, next: offerAfter + offerFor + offerAgain},
				{elapsed: offerAfter + offerFor + offerAgain - time.Second, status: waiting, next: offerAfter + offerFor + offerAgain},
				{elapsed: offerAfter + offerFor + offerAgain, status: waiting, offered: true, next: offerAfter + 2*offerFor + offerAgain},
			},
		},
		"Limited": {
			reason:  "A failure of the certificate authority does not cause an offer.",
			moments: []moment{{status: limited}, {elapsed: time.Hour, status: limited}},
		},
		"Refused": {
			reason: "A name that tailscaled refuses is missing: the certificate is requested again at once.",
			moments: []moment{
				{status: refused, next: offerAfter},
				{elapsed: offerAfter, status: refused, offered: true, retry: true, next: offerAfter + offerFor},
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			o := offers{}
			for i, m := range tc.moments {
				offered, retries, next := o.step(start.Add(m.elapsed), m.status)
				want := time.Time{}
				if m.next != 0 {
					want = start.Add(m.next)
				}
				if offered[name] != m.offered || slices.Contains(retries, name) != m.retry || !next.Equal(want) {
					t.Errorf("\n%s\nmoment %d: want offered %t, again %t, next %v; got %v, %v, %v", tc.reason, i, m.offered, m.retry, m.next, offered, retries, next.Sub(start))
				}
			}
		})
	}
}

// TestManyOffers has more names missing than are offered at a time.
func TestManyOffers(t *testing.T) {
	start := time.Unix(1000, 0)
	status := map[string]issue.Status{}
	for n := range 2*maxOffers + 1 {
		status[fmt.Sprintf("web-%02d.tail1234.ts.net", n)] = issue.Status{}
	}
	o := offers{}
	seen := map[string]bool{}
	o.step(start, status)
	for at, rounds := start.Add(offerAfter), 0; len(status) > 0; rounds++ {
		offered, _, _ := o.step(at, status)
		if len(offered) > maxOffers || len(offered) == 0 || rounds > 3 {
			t.Fatalf("round %d: want 1 to %d offers in at most 3 rounds, got %d", rounds, maxOffers, len(offered))
		}
		// Control grants the names, and their certificates are issued.
		for name := range offered {
			delete(status, name)
			seen[name] = true
		}
	}
	if want := 2*maxOffers + 1; len(seen) != want {
		t.Errorf("want %d names offered, got %d", want, len(seen))
	}
}

func TestReadvertising(t *testing.T) {
	const name = "svc:web"
	advertised := []string{name}
	type moment struct {
		elapsed   time.Duration
		advertise []string
		accepted  bool
		away      bool
		withdrawn bool
		reloaded  bool // Tailscaled has read the config after this moment.
		count     int
	}
	cases := map[string]struct {
		reason  string
		moments []moment
	}{
		"Accepted": {
			reason: "A machine that is accepted in time keeps advertising.",
			moments: []moment{
				{advertise: advertised},
				{elapsed: acceptPatience - time.Second, advertise: advertised, accepted: true},
				{elapsed: time.Hour, advertise: advertised, accepted: true},
			},
		},
		"Pending": {
			reason: "A machine that is not accepted withdraws the service for a moment, with growing intervals.",
			moments: []moment{
				{advertise: advertised},
				{elapsed: acceptPatience, advertise: advertised, withdrawn: true, reloaded: true, count: 1},
				{elapsed: acceptPatience + withdrawFor - time.Second, advertise: advertised, withdrawn: true, count: 1},
				{elapsed: acceptPatience + withdrawFor, advertise: advertised, count: 1},
				{elapsed: 2*acceptPatience + withdrawFor, advertise: advertised, count: 1},
				{elapsed: 3*acceptPatience + withdrawFor, advertise: advertised, withdrawn: true, count: 2},
			},
		},
		"Slow": {
			reason: "The moment begins when tailscaled has read the config.",
			moments: []moment{
				{advertise: advertised},
				{elapsed: acceptPatience, advertise: advertised, withdrawn: true, count: 1},
				{elapsed: acceptPatience + 20*time.Second, advertise: advertised, withdrawn: true, reloaded: true, count: 1},
				{elapsed: acceptPatience + 24*time.Second, advertise: advertised, withdrawn: true, count: 1},
				{elapsed: acceptPatience + 25*time.Second, advertise: advertised, count: 1},
			},
		},
		"Away": {
			reason: "While tailscaled does not run, nothing changes.",
			moments: []moment{
				{advertise: advertised},
				{elapsed: time.Hour, advertise: advertised, away: true},
				{elapsed: time.Hour + time.Second, advertise: advertised},
			},
		},
		"Withdrawn": {
			reason: "A service that is no longer advertised is forgotten.",
			moments: []moment{
				{advertise: advertised},
				{elapsed: acceptPatience, advertise: advertised, withdrawn: true, count: 1},
				{elapsed: acceptPatience + time.Second},
				{elapsed: time.Hour, advertise: advertised},
			},
		},
	}
	start := time.Unix(1000, 0)
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			r := readvertising{}
			for i, m := range tc.moments {
				withdrawn, next := r.step(start.Add(m.elapsed), m.advertise, map[string]bool{name: m.accepted}, !m.away)
				got := moment{elapsed: m.elapsed, advertise: m.advertise, accepted: m.accepted, away: m.away, withdrawn: withdrawn[name], reloaded: m.reloaded, count: r.counts()[name]}
				if diff := cmp.Diff(m, got, cmp.AllowUnexported(moment{})); diff != "" {
					t.Errorf("\n%s\nmoment %d: -want, +got:\n%s", tc.reason, i, diff)
				}
				if waits := len(m.advertise) > 0 && !m.accepted && !m.away; waits == next.IsZero() {
					t.Errorf("\n%s\nmoment %d: want a next time: %t, got %v", tc.reason, i, waits, next)
				}
				if m.reloaded {
					r.reloaded(start.Add(m.elapsed), start.Add(m.elapsed))
				}
			}
			if got := slices.Collect(maps.Keys(r)); len(got) > 1 {
				t.Errorf("\n%s\nwant one service at most, got %v", tc.reason, got)
			}
		})
	}
}
