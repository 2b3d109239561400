// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// A retrier has the loop run again after a pause when a part of its step failed. The loop and its
// roles share it.
type retrier struct {
	log   logging.Logger
	pause time.Duration

	// due is when to retry. Zero if nothing failed.
	due time.Time
}

// failed logs what failed.
func (r *retrier) failed(at time.Time, msg string, err error) {
	r.log.Info(msg, "error", err)
	r.due = at.Add(r.pause)
}

// A reachability is whether the API server answers.
type reachability struct {
	log   logging.Logger
	pause time.Duration

	// check checks in the background whether the API server answers, and calls set with the result.
	check func()

	// checking reports whether a check is under way. The API server last answered at answeredAt.
	// After a failure the next check is at checkAgain.
	checking   bool
	answeredAt time.Time
	checkAgain time.Time
}

// reached reports whether the API server has just answered. If this is not known, it starts a
// check, whose result arrives as a command.
func (r *reachability) reached(at time.Time) bool {
	if !r.answeredAt.IsZero() && at.Before(r.answeredAt.Add(r.pause)) {
		return true
	}
	if !r.checking && !at.Before(r.checkAgain) {
		r.checking = true
		r.check()
	}
	return false
}

// set records the result of a check.
func (r *reachability) set(at time.Time, err error) {
	r.checking = false
	if err != nil {
		r.checkAgain = at.Add(r.pause)
		r.log.Debug("Keeping files as they are while the API server is away", "error", err)
		return
	}
	r.answeredAt, r.checkAgain = at, time.Time{}
}
