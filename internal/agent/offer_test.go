// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
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
	asked := map[string]issue.Status{name: {Asked: true}}
	limited := map[string]issue.Status{name: {Asked: true, Problem: "429 too many certificates"}}
	refused := map[string]issue.Status{name: {Asked: true, Problem: `invalid domain "web.tail1234.ts.net"; must be one of ["proxy-0.tail1234.ts.net"]`}}
	type moment struct {
		after   time.Duration
		status  map[string]issue.Status
		offered bool
		again   bool
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
				{after: offerAfter - time.Second, status: asked},
				{after: 2 * offerAfter, status: asked},
				{after: 3 * offerAfter},
			},
		},
		"Missing": {
			reason: "A missing name has the service advertised until the certificate is there, and no longer.",
			moments: []moment{
				{status: waiting, next: offerAfter},
				{after: offerAfter, status: waiting, offered: true, next: offerAfter + offerFor},
				{after: offerAfter + time.Second, status: asked, offered: true, next: offerAfter + offerFor},
				{after: offerAfter + time.Minute},
			},
		},
		"NeverGranted": {
			reason: "A service whose name stays missing is offered again after an hour.",
			moments: []moment{
				{status: waiting, next: offerAfter},
				{after: offerAfter, status: waiting, offered: true, next: offerAfter + offerFor},
				{after: offerAfter + offerFor, status: waiting, next: offerAfter + offerFor + offerAgain},
				{after: offerAfter + offerFor + offerAgain - time.Second, status: waiting, next: offerAfter + offerFor + offerAgain},
				{after: offerAfter + offerFor + offerAgain, status: waiting, offered: true, next: offerAfter + 2*offerFor + offerAgain},
			},
		},
		"Limited": {
			reason:  "A failure of the certificate authority does not cause an offer.",
			moments: []moment{{status: limited}, {after: time.Hour, status: limited}},
		},
		"Refused": {
			reason: "A name that tailscaled refuses is missing: the certificate is requested again at once.",
			moments: []moment{
				{status: refused, next: offerAfter},
				{after: offerAfter, status: refused, offered: true, again: true, next: offerAfter + offerFor},
			},
		},
	}
	start := time.Unix(1000, 0)
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			o := offers{}
			for i, m := range tc.moments {
				offered, again, next := o.step(start.Add(m.after), m.status)
				want := time.Time{}
				if m.next != 0 {
					want = start.Add(m.next)
				}
				if offered[name] != m.offered || slices.Contains(again, name) != m.again || !next.Equal(want) {
					t.Errorf("\n%s\nmoment %d: want offered %t, again %t, next %v; got %v, %v, %v", tc.reason, i, m.offered, m.again, m.next, offered, again, next.Sub(start))
				}
			}
		})
	}
}

func TestReadvertising(t *testing.T) {
	const name = "svc:web"
	advertised := []string{name}
	type moment struct {
		after     time.Duration
		advertise []string
		accepted  bool
		away      bool
		withdrawn bool
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
				{after: acceptPatience - time.Second, advertise: advertised, accepted: true},
				{after: time.Hour, advertise: advertised, accepted: true},
			},
		},
		"Pending": {
			reason: "A machine that is not accepted withdraws the service for a moment, with growing intervals.",
			moments: []moment{
				{advertise: advertised},
				{after: acceptPatience, advertise: advertised, withdrawn: true, count: 1},
				{after: acceptPatience + withdrawFor - time.Second, advertise: advertised, withdrawn: true, count: 1},
				{after: acceptPatience + withdrawFor, advertise: advertised, count: 1},
				{after: 2*acceptPatience + withdrawFor, advertise: advertised, count: 1},
				{after: 3*acceptPatience + withdrawFor, advertise: advertised, withdrawn: true, count: 2},
			},
		},
		"Away": {
			reason: "While tailscaled does not run, nothing changes.",
			moments: []moment{
				{advertise: advertised},
				{after: time.Hour, advertise: advertised, away: true},
				{after: time.Hour + time.Second, advertise: advertised},
			},
		},
		"Withdrawn": {
			reason: "A service that is no longer advertised is forgotten.",
			moments: []moment{
				{advertise: advertised},
				{after: acceptPatience, advertise: advertised, withdrawn: true, count: 1},
				{after: acceptPatience + time.Second},
				{after: time.Hour, advertise: advertised},
			},
		},
	}
	start := time.Unix(1000, 0)
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			r := readvertising{}
			for i, m := range tc.moments {
				withdrawn, next := r.step(start.Add(m.after), m.advertise, map[string]bool{name: m.accepted}, !m.away)
				got := moment{after: m.after, advertise: m.advertise, accepted: m.accepted, away: m.away, withdrawn: withdrawn[name], count: r.counts()[name]}
				if diff := cmp.Diff(m, got, cmp.AllowUnexported(moment{})); diff != "" {
					t.Errorf("\n%s\nmoment %d: -want, +got:\n%s", tc.reason, i, diff)
				}
				if waits := len(m.advertise) > 0 && !m.accepted && !m.away; waits == next.IsZero() {
					t.Errorf("\n%s\nmoment %d: want a next time: %t, got %v", tc.reason, i, waits, next)
				}
			}
			if got := slices.Collect(maps.Keys(r)); len(got) > 1 {
				t.Errorf("\n%s\nwant one service at most, got %v", tc.reason, got)
			}
		})
	}
}
