// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Outcomes of rows.
const (
	outcomePass = "PASS"
	outcomeFail = "FAIL"
	outcomeSkip = "SKIP"
)

// Reasons to skip a row.
const (
	skipFlag    = "flag"
	skipScope   = "scope"
	skipPlan    = "plan"
	skipMissing = "missing" // The tailnet or this machine lacks something.
	skipStopped = "stopped"
)

// A skip is the reason for which a row proves nothing here.
type skip struct{ kind, reason string }

func (s skip) Error() string { return s.kind + ": " + s.reason }

func skipf(kind, format string, a ...any) error { return skip{kind, fmt.Sprintf(format, a...)} }

// A result is the result of a row, as its file has it.
type result struct {
	Section string   `json:"section"`
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Outcome string   `json:"outcome"`
	Skip    string   `json:"skip,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	// Observed has facts that another tailnet should show, too.
	Observed map[string]any `json:"observed,omitempty"`

	// Seconds has durations, which differ from run to run.
	Seconds map[string]float64 `json:"seconds,omitempty"`

	Began     time.Time  `json:"began"`
	Took      float64    `json:"took"`
	Exchanges []exchange `json:"exchanges,omitempty"`
}

// A turn is one execution of a row.
type turn struct {
	*session

	rec *recorder
	run *run
	row row
	res *result
}

// name returns a name that begins with the run's prefix.
func (t *turn) name(suffix string) string { return t.run.prefix + "-" + suffix }

// note records a finding for the user.
func (t *turn) note(format string, a ...any) {
	t.res.Notes = append(t.res.Notes, t.secret.text(fmt.Sprintf(format, a...)))
}

// observe records a fact that another tailnet should show, too.
func (t *turn) observe(name string, v any) { t.res.Observed[name] = v }

// measure records a duration.
func (t *turn) measure(name string, d time.Duration) {
	t.res.Seconds[name] = float64(d.Milliseconds()) / 1000
}

// Intervals of polls, of Tailscale's servers and of others.
const (
	everyReal    = time.Second
	pollInterval = 250 * time.Millisecond
)

// until polls until check returns an empty string, and returns how long that took. check returns
// what is still missing. An error from check ends the wait.
func (t *turn) until(ctx context.Context, description string, check func(context.Context) (missing string, err error)) (time.Duration, error) {
	return t.within(ctx, t.run.opts.Timeout, description, check)
}

// A late error reports that a wait exceeded its limit.
type late struct{ error }

func (t *turn) within(ctx context.Context, limit time.Duration, description string, check func(context.Context) (string, error)) (time.Duration, error) {
	began := time.Now()
	pause := pollInterval
	if t.run.opts.real() {
		pause = everyReal
	}
	for {
		missing, err := check(ctx)
		if err != nil || missing == "" {
			return time.Since(began), err
		}
		took := time.Since(began)
		if took > limit {
			return took, late{errors.Errorf("%s: not within %s: %s", description, limit, missing)}
		}
		t.run.progress.waiting(took, description+": "+missing)
		if err := pauseFor(ctx, pause); err != nil {
			return took, errors.Wrapf(err, "%s: %s", description, missing)
		}
	}
}

// want returns an error unless the reply has one of the statuses. The error is a skip if the plan
// or the credential lacks something.
func (t *turn) want(subject string, r *reply, statuses ...int) error {
	for _, s := range statuses {
		if r.status == s {
			return nil
		}
	}
	if err := refusal(r.status, r.message()); err != nil {
		return err
	}
	return errors.Errorf("%s: the API answered %d, want %v: %s", subject, r.status, statuses, t.secret.text(r.message()))
}

// planWords matches refusals because of the plan, as Tailscale's API for log streaming returns
// ("feature not available on current billing plan").
var planWords = regexp.MustCompile(`(?i)billing|\bplan\b|subscription|upgrade|not available on`)

// refusal returns a skip if a reply refuses because of the plan or the credential, or nil.
func refusal(status int, message string) error {
	switch {
	case status == http.StatusPaymentRequired, status == http.StatusForbidden && planWords.MatchString(message):
		return skipf(skipPlan, "%d: %s", status, message)
	case status == http.StatusForbidden:
		return skipf(skipScope, "%d: %s", status, message)
	}
	return nil
}

// refused records how the API refuses a request. It returns an error if the API fails, or if it
// accepts a request that it must refuse.
func (t *turn) refused(subject string, r *reply, required bool) error {
	t.observe(subject, r.status)
	if err := refusal(r.status, r.message()); err != nil {
		return err
	}
	switch {
	case r.status >= 500:
		return errors.Errorf("%s: the API answered %d: %s", subject, r.status, t.secret.text(r.message()))
	case r.status >= 400:
		t.note("%s: refused with %d: %s", subject, r.status, strings.TrimSpace(r.message()))
	case required:
		return errors.Errorf("%s: the API answered %d, want a refusal", subject, r.status)
	default:
		t.note("%s: not refused, the API answered %d", subject, r.status)
	}
	return nil
}

// tried records in the ledger that an object was not created, if the reply says so. After another
// reply, or none, the object may exist.
func (t *turn) tried(seq int, r *reply) error {
	if r.status >= 400 && r.status < 500 {
		return t.run.ledger.gone(seq)
	}
	return nil
}
