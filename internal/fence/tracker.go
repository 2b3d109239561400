// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import "time"

const (
	// Interval is the time between two pings of a host that answers. A ping and its answer are two UDP
	// packets of some 150 bytes each, so a pair of machines exchanges 300 bytes a second.
	Interval = time.Second

	// IntervalSuspected is the time between two pings of a host that has not answered one. More pings in
	// less time distinguish a dead host from lost packets: if one of five packets is lost, one ping in
	// three fails, and two witnesses lose a living host once in many years.
	IntervalSuspected = 200 * time.Millisecond

	// Timeout is how long a ping waits for its answer: less than Interval, so that the ping after one that failed is
	// the first of many.
	Timeout = 900 * time.Millisecond

	// LostAfter is how long a lost host has not answered.
	LostAfter = 3 * time.Second

	// LostPings is how many pings must have failed in that time. A witness that itself stood still has sent fewer.
	LostPings = 10

	// AnswersFor is how long a lost host must answer before it counts as alive again.
	AnswersFor = 10 * time.Second
)

// A Tracker follows the answers of one host. The zero value is a Tracker of a host that has never answered.
type Tracker struct {
	// answered is when the last ping that was answered was sent.
	answered time.Time

	// unanswered is when the first ping after it was sent that failed, and failed how many have.
	unanswered time.Time
	failed     int

	// lost reports that the host is lost, and back since when it answers again.
	lost bool
	back time.Time
}

// Answered records that a ping that was sent at the time start was answered.
func (t *Tracker) Answered(start time.Time) {
	if start.Before(t.answered) {
		return
	}
	t.answered = start
	t.unanswered, t.failed = time.Time{}, 0
	if !t.lost {
		return
	}
	if t.back.IsZero() {
		t.back = start
	}
	t.lost = start.Sub(t.back) < AnswersFor
	if !t.lost {
		t.back = time.Time{}
	}
}

// Failed records that a ping that was sent at the time start was not answered until end.
func (t *Tracker) Failed(start, end time.Time) {
	if t.answered.IsZero() || !start.After(t.answered) {
		return
	}
	if t.failed == 0 || start.Before(t.unanswered) {
		t.unanswered = start
	}
	t.failed++
	if t.failed >= LostPings && end.Sub(t.unanswered) >= LostAfter {
		t.lost, t.back = true, time.Time{}
	}
}

// Pause returns how long to wait after a ping before the next one.
func (t *Tracker) Pause() time.Duration {
	if t.failed > 0 && !t.lost {
		return IntervalSuspected
	}
	return Interval
}

// Seen reports whether the host has ever answered.
func (t *Tracker) Seen() bool { return !t.answered.IsZero() }

// Lost reports whether a host that has answered before is lost.
func (t *Tracker) Lost() bool { return t.lost && t.back.IsZero() }

// Returning reports whether a lost host answers again, for less than AnswersFor. This says nothing about the
// host: the witness may have been the one without a network.
func (t *Tracker) Returning() bool { return t.lost && !t.back.IsZero() }
