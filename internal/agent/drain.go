// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

const (
	// graceMargin is how long after the pod's grace period tailscaled may still run: the
	// period begins some time before the drain does, never later.
	graceMargin = 15 * time.Second

	// stopTime is how much of the grace period is left to containerboot and tailscaled,
	// which end within seconds once nothing is advertised (tailscale.com
	// cmd/containerboot/main.go, killTailscaled; kube/services,
	// EnsureServicesNotAdvertised).
	stopTime = 15 * time.Second
)

// A drain is the withdrawal of all services because the pod, or only its
// tailscale container, is being stopped. A nil drain is none.
//
// Of an ingress pod it has three parts. First tailscaled takes the withdrawal, which may
// last on a busy machine. Then, for Options.Drain, new connections are taken as before, for
// control announces another machine only after a while, and clients hear of it one by
// one. In the end it waits until no connection is open, as long as the grace period has
// room. New connections are taken till the end: tailscaled hands packets of a service only
// to a handler of the serve config (wgengine/netstack, shouldProcessInbound), those of open
// connections too, so that it cannot refuse new ones and keep the others.
type drain struct {
	// session of tailscaled that is being drained.
	session int

	// until is when clients have had time to move. Zero when it is over.
	until time.Time

	// cut is when connections that are still open are cut. Zero when none are
	// waited for.
	cut time.Time

	// clients reports that clients of services are given time to move.
	clients bool

	// destinations of the connections that are waited for. Nil until they are known.
	destinations destinations

	// done is closed when it is over.
	done chan struct{}

	// settle is how long another tailscaled must run until it is taken for one
	// that stays.
	settle time.Duration

	// deadline is when tailscaled must have stopped if it is to. Zero is never.
	deadline time.Time

	// back is when another tailscaled was first seen to run after the drain was
	// over. Zero when none runs.
	back time.Time
}

// draining returns a channel that is closed when a drain begins.
func (l *loop) draining() <-chan struct{} {
	if l.begun == nil {
		l.begun = make(chan struct{})
	}
	return l.begun
}

// startDrain withdraws all services, and returns a channel that is closed when
// clients have had time to move. It is closed at once when control gave this
// machine none of the services that it advertises: then there is no client.
func (l *loop) startDrain(now time.Time) <-chan struct{} {
	if l.drain != nil {
		return l.drain.done
	}
	l.draining()
	close(l.begun)
	l.drain = &drain{until: now, settle: l.opts.Pauses.Settle, done: make(chan struct{})}
	if l.opts.Grace > 0 {
		l.drain.deadline = now.Add(l.opts.Grace + graceMargin)
	}
	for _, name := range l.advertised {
		if l.tailnet.Accepted[name] {
			l.drain.clients = true
			l.drain.until = now.Add(l.opts.Drain)
		}
	}
	if l.drain.clients && l.opts.Grace > 0 {
		l.drain.cut = latest(l.drain.until, now.Add(l.opts.Grace-stopTime))
		l.findDestinations(l.drain, maps.Clone(l.handlers))
	}
	l.roles.drain(now, l)
	l.log.Info("Withdrawing all services before tailscaled stops", "services", l.advertised, "drain", l.drain.until.Sub(now).String())
	return l.drain.done
}

// withdrawn notes that tailscaled has read the config that withdraws the services: clients
// are given their time from then on.
func (d *drain) withdrawn(now time.Time, clients time.Duration) {
	if d == nil || d.over() || !d.clients {
		return
	}
	d.until = now.Add(clients)
	if !d.cut.IsZero() {
		d.until = earlier(d.until, d.cut)
	}
}

// busy reports whether connections of services are open, once clients have had time to
// move.
func (d *drain) busy(now time.Time) bool {
	return d != nil && !d.over() && !now.Before(d.until) && now.Before(d.cut) && d.destinations.open()
}

// endDrain has services be advertised again.
func (l *loop) endDrain() { l.drain, l.begun = nil, nil }

// step ends the drain when its time is up, or when tailscaled has gone already.
// While connections are open it goes on until they are cut.
// After that it looks for another tailscaled: kubelet stops the same container
// when it only restarts it.
func (d *drain) step(now time.Time, t localapi.State, busy bool) {
	switch {
	case d == nil:
	case !d.over():
		if t.Running && (now.Before(d.until) || busy && now.Before(d.cut)) {
			return
		}
		d.until, d.session = time.Time{}, t.Session
		close(d.done)
	case !t.Running || t.Session == d.session:
		d.back = time.Time{}
	case d.back.IsZero():
		d.back = now
	}
}

// closing reports whether nobody is to open connections any more.
func (d *drain) closing(now time.Time) bool {
	return d != nil && !now.Before(d.until)
}

// over reports whether there was a drain that has ended.
func (d *drain) over() bool { return d != nil && d.until.IsZero() }

// replaced reports whether another tailscaled runs in place of the one that was
// drained.
func (d *drain) replaced(now time.Time) bool {
	return d.over() && !d.back.IsZero() && !now.Before(d.back.Add(d.settle))
}

// abandoned reports whether the pod was to be stopped and was not: kubelet would have
// killed tailscaled by now.
func (d *drain) abandoned(now time.Time) bool {
	return d.over() && !d.deadline.IsZero() && !now.Before(d.deadline)
}

// deadlines returns when there may be something to decide.
func (d *drain) deadlines(now time.Time) []time.Time {
	switch {
	case d == nil:
		return nil
	case d.over() && d.back.IsZero():
		return []time.Time{d.deadline}
	case d.over():
		return []time.Time{d.back.Add(d.settle), d.deadline}
	case d.destinations != nil && !now.Before(d.until) && now.Before(d.cut):
		return []time.Time{now.Add(openEvery), d.cut}
	}
	return []time.Time{d.until, d.cut, d.deadline}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
