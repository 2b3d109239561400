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

// Why a row is skipped.
const (
	skipFlag    = "flag"
	skipScope   = "scope"
	skipPlan    = "plan"
	skipMissing = "missing" // The tailnet or this machine lacks something.
	skipStopped = "stopped"
)

// A skip is why a row proves nothing here.
type skip struct{ kind, reason string }

func (s skip) Error() string { return s.kind + ": " + s.reason }

func skipf(kind, format string, a ...any) error { return skip{kind, fmt.Sprintf(format, a...)} }

// A result is what a row found, as it is kept.
type result struct {
	Section string   `json:"section"`
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Outcome string   `json:"outcome"`
	Skip    string   `json:"skip,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	// Observed is what another tailnet should show, too.
	Observed map[string]any `json:"observed,omitempty"`

	// Seconds that things took. They differ from run to run.
	Seconds map[string]float64 `json:"seconds,omitempty"`

	Began     time.Time  `json:"began"`
	Took      float64    `json:"took"`
	Exchanges []exchange `json:"exchanges,omitempty"`
}

// A turn is a row that runs.
type turn struct {
	*session

	run *run
	row row
	res *result
}

// name returns a name that begins with the run's prefix.
func (t *turn) name(suffix string) string { return t.run.prefix + "-" + suffix }

// note keeps a finding for a person.
func (t *turn) note(format string, a ...any) {
	t.res.Notes = append(t.res.Notes, t.secret.text(fmt.Sprintf(format, a...)))
}

// observe keeps a fact that another tailnet should show, too.
func (t *turn) observe(name string, v any) { t.res.Observed[name] = v }

// measure keeps how long something took.
func (t *turn) measure(name string, d time.Duration) {
	t.res.Seconds[name] = float64(d.Milliseconds()) / 1000
}

// How often something that is waited for is looked at, at Tailscale and elsewhere.
const (
	everyReal    = time.Second
	pollInterval = 250 * time.Millisecond
)

// until waits for something, and returns how long it took. check says what is still
// missing, or nothing. An error of it ends the wait.
func (t *turn) until(ctx context.Context, description string, check func(context.Context) (missing string, err error)) (time.Duration, error) {
	return t.within(ctx, t.run.opts.Timeout, description, check)
}

// A late error is of a wait that was too long.
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

// want returns an error unless the reply has one of the statuses. One that says
// that the plan or the credential lacks something is a reason to skip.
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

// planWords are in refusals that are about the plan. Seen with Tailscale's API for
// log streaming ("feature not available on current billing plan").
var planWords = regexp.MustCompile(`(?i)billing|\bplan\b|subscription|upgrade|not available on`)

// refusal says which of a plan's or a credential's limits a reply names, or nil.
func refusal(status int, message string) error {
	switch {
	case status == http.StatusPaymentRequired, status == http.StatusForbidden && planWords.MatchString(message):
		return skipf(skipPlan, "%d: %s", status, message)
	case status == http.StatusForbidden:
		return skipf(skipScope, "%d: %s", status, message)
	}
	return nil
}

// refused keeps how the API refuses something. It is an error only if the API fails
// itself, or if it should have refused and did not.
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
		return errors.Errorf("%s: the API answered %d, and should have refused", subject, r.status)
	default:
		t.note("%s: not refused, the API answered %d", subject, r.status)
	}
	return nil
}

// tried writes into the ledger that an object was not made, if the reply says so. A
// reply of another kind, or none, leaves it open.
func (t *turn) tried(seq int, r *reply) error {
	if r.status >= 400 && r.status < 500 {
		return t.run.ledger.gone(seq)
	}
	return nil
}
