// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// A drainRole has the drain of a pod whose tailscale container is being stopped.
type drainRole struct {
	plainRole

	log logging.Logger

	// move is how long clients have to move to another machine.
	move time.Duration

	// grace is how long kubelet gives the pod to end. Zero means no limit.
	grace time.Duration

	// settle is how long another tailscaled must run before the agent relies on it.
	settle time.Duration

	// find looks up the destinations of handlers for a drain.
	find func(d *drain, handlers map[string]plan.Handlers)

	// connected reports whether connections of a role are open. The answer may be expensive.
	connected func() bool

	// current is the drain, under way or over. Nil if there is none.
	current *drain

	// begun is closed when a drain begins. Nil if no hook waits for one.
	begun chan struct{}
}

// draining returns a channel that is closed when a drain begins.
func (r *drainRole) draining() <-chan struct{} {
	if r.begun == nil {
		r.begun = make(chan struct{})
	}
	return r.begun
}

// begin begins a drain. It withdraws all services, those with clients once another host has them. If
// control accepted none of the advertised services, there are no clients, and the drain ends at once.
// Where that is not known, there may be clients.
func (r *drainRole) begin(at time.Time, f facts) *drain {
	r.draining()
	close(r.begun)
	d := &drain{start: at.Truncate(time.Second), moveEnd: at, move: r.move, done: make(chan struct{})}
	if r.grace > 0 {
		d.deadline = at.Add(r.grace + graceMargin)
	}
	if slices.ContainsFunc(f.advertised, f.hasClients) {
		d.clients = true
		d.moveEnd = at.Add(r.move)
	}
	if d.clients && r.grace > 0 {
		d.last = latest(d.moveEnd, at.Add(r.grace-stopTime))
		d.giveTime(at)
		r.find(d, maps.Clone(f.handlers))
		d.holdServices(at)
	}
	r.current = d
	return d
}

// end ends the drain, so that services are advertised again.
func (r *drainRole) end() { r.current, r.begun = nil, nil }

// step ends the time of clients and of open connections when it is over.
func (r *drainRole) step(_ context.Context, at time.Time, f facts) time.Time {
	r.handOver(at, f.advertised)
	r.current.follow(at, r.primary(f))
	r.current.step(at, f.tailnet, r.connected)
	return earliest(at, r.deadlines(at)...)
}

// primary reports whether control sends clients of a service with another host to this machine.
func (r *drainRole) primary(f facts) bool {
	if !r.current.answers(f.handover) {
		return false
	}
	addresses := plan.Addresses(f.attachments)
	return slices.ContainsFunc(f.handover.Hosted, func(name string) bool { return f.tailnet.Routes.IsPrimary(addresses[name]) })
}

// busy reports whether connections of services are open.
func (r *drainRole) busy() bool { return r.current != nil && r.current.destinations.open() }

// deadlines returns the times at which the drain's state may change.
func (r *drainRole) deadlines(at time.Time) []time.Time {
	d := r.current
	switch {
	case d == nil:
		return nil
	case d.over() && d.back.IsZero():
		return []time.Time{d.deadline}
	case d.over():
		return []time.Time{d.back.Add(r.settle), d.deadline}
	case (d.polled || d.destinations != nil) && !at.Before(d.moveEnd) && at.Before(d.cut):
		return []time.Time{at.Add(openEvery), d.cut}
	}
	return []time.Time{d.hold, d.moveEnd, d.cut, d.deadline}
}

// replaced reports whether another tailscaled runs in place of the drained one.
func (r *drainRole) replaced(at time.Time) bool {
	d := r.current
	return d.over() && !d.back.IsZero() && !at.Before(d.back.Add(r.settle))
}

// resumption returns why the pod serves again after a drain, or "" if it does not.
func (r *drainRole) resumption(at time.Time) string {
	switch {
	case r.replaced(at):
		return "tailscaled is back, serving again"
	case r.current.abandoned(at):
		return "The pod was not stopped, serving again"
	}
	return ""
}

// held returns which of the advertised services stay advertised during a drain.
func (r *drainRole) held(at time.Time, f facts) []string {
	d := r.current
	if !d.holds() || !at.Before(d.hold) {
		return nil
	}
	healthy := plan.Advertised(f.services)
	return slices.DeleteFunc(slices.Clone(f.advertised), func(name string) bool {
		released := d.answers(f.handover) && slices.Contains(f.handover.Services, name)
		return released || !f.hasClients(name) || f.listed && !slices.Contains(healthy, name)
	})
}

// handOver begins the clients' time to move once no service is advertised any more.
func (r *drainRole) handOver(at time.Time, advertised []string) {
	d := r.current
	if !d.holds() || len(advertised) > 0 {
		return
	}
	r.log.Info("Withdrew the last service", "after", at.Sub(d.start).String(), "grace", !at.Before(d.hold))
	d.hold = time.Time{}
	d.giveTime(at)
}
