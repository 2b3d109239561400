// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// history builds a history from results, S for a success and F for a failure.
func history(results string) History {
	h := History{}
	for _, r := range results {
		h = h.Add(r == 'S')
	}
	return h
}

func TestScore(t *testing.T) {
	cases := map[string]struct {
		reason  string
		results string
		facts   Facts
		want    int
	}{
		"NoData":        {reason: "Without results an endpoint has the best score.", want: 100},
		"NoDataOffline": {reason: "The tailnet reports the device as offline.", facts: Facts{Offline: true}, want: 50},
		"Disabled":      {reason: "The endpoint is disabled.", results: "SSS", facts: Facts{Disabled: true}, want: 0},
		"OneFailure":    {reason: "The ratio loses a twentieth, and the penalty applies.", results: "F", want: 85},
		"Run":           {reason: "A run counts once in the ratio, and with each failure in the penalty.", results: "FFF", want: 65},
		"LongRun":       {reason: "The score is never below 0.", results: "FFFFFFFFFFFFFFFFFFFFFFFFF", want: 0},
		"Back":          {reason: "The length of an outage no longer counts after recovery.", results: "FFFFFFFFFFFFFFFFFFFFFFFFFSS", want: 95},
		"Flaps":         {reason: "Every other probe failed.", results: "SFSFSFSFSFSFSFSFSFSF", want: 40},
		"FiveGood":      {reason: "Five successes in a row are not steady.", results: "FSFSFSFSSSSS", want: 80},
		"SixGood":       {reason: "Six are.", results: "FSFSFSFSSSSSS", want: 82},
		"Steady":        {reason: "The bonus has a limit, as the score has.", results: "FSFSFSFSFSFSFSSSSSSSSSSSSSSS", want: 100},
		"OfflineGood":   {reason: "A device that is offline has a low score, even if it answers.", results: "SSSSSSSSSS", facts: Facts{Offline: true}, want: 50},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Score(history(tc.results), tc.facts)); diff != "" {
				t.Errorf("%s\nScore(%s): -want, +got\n%s", tc.reason, tc.results, diff)
			}
		})
	}
}

// TestScoreProperties checks for any history that scores are between 0 and 100, that a failure
// never raises one, and that enough successes restore the best.
func TestScoreProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		h := History{}
		for range r.IntN(60) {
			previous := Score(h, Facts{})
			ok := r.IntN(3) > 0
			h = h.Add(ok)
			s := Score(h, Facts{})
			switch {
			case s < 0 || s > 100:
				t.Fatalf("score %d of %+v", s, h)
			case !ok && s > previous:
				t.Fatalf("a failure raised the score from %d to %d: %+v", previous, s, h)
			}
		}
		for range window {
			h = h.Add(true)
		}
		if s := Score(h, Facts{}); s != best {
			t.Fatalf("score %d after %d successes", s, window)
		}
	}
}

func TestState(t *testing.T) {
	th := Thresholds{Score: ScoreThreshold, Healthy: 2, Unhealthy: 3}
	type want struct {
		Status  Status
		Reason  string
		Failing bool
	}
	cases := map[string]struct {
		reason string
		// results: S answers, E answers with an error, F cannot be reached.
		results string
		facts   Facts
		th      Thresholds
		blind   bool
		want    want
	}{
		"New":         {reason: "One answer is not enough.", results: "S", th: th, want: want{Status: Unknown}},
		"Healthy":     {reason: "Two are.", results: "SS", th: th, want: want{Status: Healthy}},
		"TwoErrors":   {reason: "Two errors are not enough.", results: "SSEE", th: th, want: want{Status: Healthy, Reason: "e"}},
		"Unhealthy":   {reason: "Three are.", results: "SSEEE", th: th, want: want{Status: Unhealthy, Reason: "e", Failing: true}},
		"Unreachable": {reason: "An endpoint that was reached and no longer answers is unhealthy.", results: "SSFFF", th: th, want: want{Status: Unhealthy, Reason: "f", Failing: true}},
		"Blind":       {reason: "It is not while no other host answers.", results: "SSFFFF", th: th, blind: true, want: want{Status: Healthy, Reason: "f", Failing: true}},
		"BlindErrors": {reason: "An error shows that the endpoint is reachable.", results: "SSEEE", th: th, blind: true, want: want{Status: Unhealthy, Reason: "e", Failing: true}},
		"Never":       {reason: "Envoy decides about an endpoint that was never reached.", results: "FFFFF", th: th, want: want{Status: Unknown, Reason: "f", Failing: true}},
		"FirstErrors": {reason: "Errors count from the start.", results: "EEE", th: th, want: want{Status: Unhealthy, Reason: "e", Failing: true}},
		"Recovering":  {reason: "One answer is not enough to recover.", results: "SSEEES", th: th, want: want{Status: Unhealthy, Reason: "e", Failing: true}},
		"Recovered":   {reason: "Two are.", results: "SSEEESS", th: th, want: want{Status: Healthy}},
		"Flaps":       {reason: "Intermittent failures never reach the threshold in a row, but they lower the score.", results: "SSESESESESESESESES", th: th, want: want{Status: Unhealthy, Reason: reasonFlaps, Failing: true}},
		"Patient":     {reason: "The threshold limits failures in a row, not the penalty for each.", results: "SSEEEEEE", th: Thresholds{Score: ScoreThreshold, Healthy: 1, Unhealthy: 7}, want: want{Status: Healthy, Reason: "e"}},
		"Offline":     {reason: "A device that is offline is unhealthy, even if another host answers at its address.", results: "SSSS", facts: Facts{Offline: true}, th: th, want: want{Status: Unhealthy, Reason: reasonOffline, Failing: true}},
		"Disabled":    {reason: "A disabled endpoint is unhealthy.", results: "SSSS", facts: Facts{Disabled: true}, th: th, want: want{Status: Unhealthy, Reason: reasonDisabled, Failing: true}},
		"NoThreshold": {reason: "A threshold of zero counts as one.", results: "SE", want: want{Status: Unhealthy, Reason: "e", Failing: true}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			r := State{}
			for _, result := range tc.results {
				r = r.Next(map[rune]Result{'S': {OK: true, Answered: true}, 'E': {Answered: true, Reason: "e"}, 'F': {Reason: "f"}}[result], tc.facts, tc.th, tc.blind)
			}
			if diff := cmp.Diff(tc.want, want{Status: r.Status, Reason: r.Reason, Failing: r.Failing(tc.th)}); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLearn(t *testing.T) {
	th := Thresholds{Score: ScoreThreshold, Healthy: 1, Unhealthy: 1}
	r := State{Status: Unknown}.Learn(Facts{Offline: true}, th)
	if r.Status != Unhealthy || r.Score != doubtful {
		t.Errorf("a device that is offline: %+v", r)
	}
	if r = r.Learn(Facts{}, th); r.Status != Unknown || r.Score != best {
		t.Errorf("a device that is online again, without a probe: %+v", r)
	}
	r = State{}.Next(Result{OK: true}, Facts{}, th, false).Learn(Facts{Offline: true}, th).Learn(Facts{}, th)
	if r.Status != Healthy {
		t.Errorf("a device that is online again, and answered before: %+v", r)
	}
}

func TestShift(t *testing.T) {
	const away, back = 20 * time.Second, 60 * time.Second
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	type step struct {
		second      int
		failing     bool
		substituted bool
		recheck     int
	}
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"Away": {reason: "Other clusters serve after the time away.", steps: []step{{second: 0}, {second: 10, failing: true, recheck: 30}, {second: 29, failing: true, recheck: 30}, {second: 30, failing: true, substituted: true}}},
		"Short": {
			reason: "A recovery in time resets the time away.",
			steps:  []step{{second: 10, failing: true, recheck: 30}, {second: 20}, {second: 25, failing: true, recheck: 45}, {second: 44, failing: true, recheck: 45}},
		},
		"Back": {
			reason: "They stop after the time back, which each failure resets.",
			steps: []step{
				{second: 0, failing: true, recheck: 20}, {second: 20, failing: true, substituted: true}, {second: 30, substituted: true, recheck: 90},
				{second: 40, failing: true, substituted: true}, {second: 50, substituted: true, recheck: 110}, {second: 110},
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := Shift{}
			for _, st := range tc.steps {
				var recheck time.Time
				s, recheck = s.Next(at(st.second), st.failing, away, back)
				want := time.Time{}
				if st.recheck > 0 {
					want = at(st.recheck)
				}
				if s.Substituted != st.substituted || !recheck.Equal(want) {
					t.Fatalf("%s\nat %d: over %v, again %v; want %v, %v", tc.reason, st.second, s.Substituted, recheck, st.substituted, want)
				}
			}
		})
	}
	if s, recheck := (Shift{}).Next(at(0), true, 0, 0); !s.Substituted || !recheck.IsZero() {
		t.Errorf("without a delay other clusters serve at once: %+v, %v", s, recheck)
	}
}
