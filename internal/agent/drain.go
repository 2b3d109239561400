// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

const (
	// graceMargin is how long after the pod's grace period tailscaled may still run: the grace
	// period begins before the drain, never after it.
	graceMargin = 15 * time.Second

	// stopTime is the part of the grace period that is reserved for containerboot and tailscaled.
	// They end within seconds once nothing is advertised (tailscale.com cmd/containerboot/main.go,
	// killTailscaled; kube/services, EnsureServicesNotAdvertised).
	stopTime = 15 * time.Second

	// openTime is how long connections of services may stay open once clients have had time to move.
	openTime = 15 * time.Second
)

// A drain is the withdrawal of all services because the pod, or only its tailscale container,
// is being stopped. A nil drain means that there is none.
//
// The drain of an ingress pod has four parts. First a service with clients stays advertised until
// the provider says that another host has it, or that none will come (handover.go). Then tailscaled
// reads the config that withdraws the services, which can take time on a busy machine. Then, for
// Options.Drain, tailscaled accepts new connections as before, because control announces another
// machine only after a while, and notifies clients one by one: half of that time is control's, and half
// the clients'. While control still sends clients to this machine, although another host is there, the
// clients' half begins again, up to twice Options.Drain in all. At the end the drain waits for a while
// until no connection is open. All of it ends within the grace period.
//
// New connections are accepted until the end: tailscaled delivers packets of a service,
// including those of open connections, only to a handler of the serve config
// (wgengine/netstack, shouldProcessInbound). So it cannot refuse new connections and keep open
// ones.
type drain struct {
	// move is how long clients have to move to another machine.
	move time.Duration

	// session is the session of the tailscaled that is drained.
	session int

	// start is when the drain began, in seconds, as the Machine's status has it.
	start time.Time

	// hold is until when services without another host stay advertised. Zero if none does any more.
	hold time.Time

	// moveEnd is when clients have had time to move. Zero when the drain is over.
	moveEnd time.Time

	// last is the latest possible time of cut. Zero if the drain waits for no connections.
	last time.Time

	// longest is the latest possible moveEnd: control may be slow, but need not move the addresses at all.
	longest time.Time

	// primary reports that control sent clients of a withdrawn service to this machine in the last step.
	primary bool

	// cut is when connections that are still open are cut. Zero if the drain waits for none.
	cut time.Time

	// clients reports that clients of services are given time to move.
	clients bool

	// destinations are the destinations of the connections that the drain waits for. Nil until they
	// are known.
	destinations destinations

	// ends cut connections that are still open when the drain is over. Their clients open others, and do not
	// wait for a tailscaled that stops.
	ends []func()

	// polled reports that the drain waits for connections that the kernel forwards, of which
	// nothing notifies the agent.
	polled bool

	// done is closed when the drain is over.
	done chan struct{}

	// deadline is the time by which tailscaled must have stopped if the pod is stopped. Zero means
	// no deadline.
	deadline time.Time

	// back is when another tailscaled was first seen running after the drain was over. Zero when
	// none runs.
	back time.Time
}

// giveTime gives clients time to move, and open connections time to end after that.
func (d *drain) giveTime(at time.Time) {
	d.longest = at.Add(2 * d.move)
	d.moveUntil(at.Add(d.move))
}

// moveUntil sets until when clients have time to move.
func (d *drain) moveUntil(end time.Time) {
	d.moveEnd = end
	if !d.last.IsZero() {
		d.moveEnd = earlier(d.moveEnd, d.last)
		d.cut = earlier(d.moveEnd.Add(openTime), d.last)
	}
}

// follow records whether control sends clients of a withdrawn service, which has another host, to this
// machine. Those clients have half of the time to move, from when control has moved the addresses.
func (d *drain) follow(at time.Time, primary bool) {
	if d == nil || d.over() || !d.clients || d.holds() {
		return
	}
	if primary || d.primary {
		d.moveUntil(latest(d.moveEnd, earlier(at.Add(d.move/2), d.longest)))
	}
	d.primary = primary
}

// withdrawn records that tailscaled has read the config that withdraws the services: the
// clients' time to move begins now.
func (d *drain) withdrawn(at time.Time) {
	if d == nil || d.over() || !d.clients || d.holds() {
		return
	}
	d.giveTime(at)
}

// step ends the drain when its time is over, or when tailscaled has stopped. While connections
// are open, the drain continues until it cuts them. After the drain, step looks for another
// tailscaled: kubelet also runs the hook when it only restarts the container.
// It calls busy, which may be expensive, only once clients have had time to move.
func (d *drain) step(at time.Time, t localapi.State, busy func() bool) {
	switch {
	case d == nil:
	case !d.over():
		if t.Running && (at.Before(d.moveEnd) || at.Before(d.cut) && busy()) {
			return
		}
		d.moveEnd, d.session = time.Time{}, t.Session
		for _, end := range d.ends {
			end()
		}
		close(d.done)
	case !t.Running || t.Session == d.session:
		d.back = time.Time{}
	case d.back.IsZero():
		d.back = at
	}
}

// limit returns the latest time at which the drain ends.
func (d *drain) limit() time.Time { return latest(latest(d.moveEnd, d.last), d.cut) }

// closing reports whether clients must not open connections any more.
func (d *drain) closing(at time.Time) bool {
	return d != nil && !at.Before(d.moveEnd)
}

// over reports whether there was a drain that has ended.
func (d *drain) over() bool { return d != nil && d.moveEnd.IsZero() }

// abandoned reports whether the pod still runs although it was being stopped: kubelet would
// have killed tailscaled by now.
func (d *drain) abandoned(at time.Time) bool {
	return d.over() && !d.deadline.IsZero() && !at.Before(d.deadline)
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
