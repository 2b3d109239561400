// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"
)

// A drain is the withdrawal of all services because the pod, or only its
// tailscale container, is being stopped. A nil drain is none.
type drain struct {
	// session of tailscaled that is being drained.
	session int

	// until is when clients have had time to move. Zero when it is over.
	until time.Time

	// done is closed when it is over.
	done chan struct{}
}

// startDrain withdraws all services, and returns a channel that is closed when
// clients have had time to move. It is closed at once when control gave this
// machine none of the services that it advertises: then there is no client.
func (l *loop) startDrain(now time.Time) <-chan struct{} {
	if l.drain != nil {
		return l.drain.done
	}
	l.drain = &drain{session: l.tailnet.Session, until: now, done: make(chan struct{})}
	for _, name := range l.advertised {
		if l.tailnet.Accepted[name] {
			l.drain.until = now.Add(l.opts.Drain)
		}
	}
	l.log.Info("Withdrawing all services before tailscaled stops", "services", l.advertised, "drain", l.drain.until.Sub(now).String())
	return l.drain.done
}

// step ends the drain when its time is up, or when tailscaled has gone already.
func (d *drain) step(now time.Time, running bool) {
	if d == nil || d.over() || running && now.Before(d.until) {
		return
	}
	d.until = time.Time{}
	close(d.done)
}

// over tells whether there was a drain that has ended.
func (d *drain) over() bool { return d != nil && d.until.IsZero() }

// deadline returns when the drain ends, or zero.
func (d *drain) deadline() time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.until
}
