// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

const (
	// acceptPatience is how long control can take to accept a machine that advertises a service,
	// before the machine withdraws the service and advertises it again.
	acceptPatience = 30 * time.Second

	// maxAcceptPatience bounds the patience, which doubles each time: an administrator may approve
	// the machine at any later time.
	maxAcceptPatience = 30 * time.Minute
)

// readvertising withdraws services that control does not accept, each for a moment, by name: an
// approval may reach a machine only when it advertises the service again
// (tailscale/tailscale#18821). A service that is not accepted has no traffic to lose.
type readvertising map[string]*pending

// A pending is a service that is advertised and not accepted.
type pending struct {
	start    time.Time // Since when the service is advertised and not accepted.
	patience time.Duration
	absence  absence // While the service is withdrawn.
	count    int
}

// step returns those of the services to advertise that are withdrawn for a moment, and when
// this may change. accepted has the services that control accepted the machine for. While it is
// not known what control has not accepted, no service is withdrawn.
func (r readvertising) step(at time.Time, advertise []string, accepted map[string]bool, reported bool) (withdrawn map[string]bool, next time.Time) {
	withdrawn = map[string]bool{}
	wanted := map[string]bool{}
	for _, name := range advertise {
		wanted[name] = true
		p := r[name]
		if p == nil {
			p = &pending{patience: acceptPatience}
			r[name] = p
		}
		p.step(at, accepted[name], reported)
		if p.absence.active() {
			withdrawn[name] = true
		}
		next = earliest(at, next, p.due())
	}
	for name := range r {
		if !wanted[name] {
			delete(r, name)
		}
	}
	return withdrawn, next
}

func (p *pending) step(at time.Time, accepted, reported bool) {
	switch {
	case accepted:
		p.start, p.patience = time.Time{}, acceptPatience
		p.absence.end()
	case !reported:
		p.start = time.Time{}
		p.absence.end()
	case p.start.IsZero():
		p.start = at
	case p.absence.over(at):
		p.start, p.patience = at, min(2*p.patience, maxAcceptPatience)
		p.absence.end()
	case !p.absence.active() && !at.Before(p.due()):
		p.absence.begin(at)
		p.count++
	}
}

// due returns when the service is withdrawn or advertised again, or zero for never.
func (p *pending) due() time.Time {
	switch {
	case p.absence.active():
		return p.absence.due()
	case !p.start.IsZero():
		return p.start.Add(p.patience)
	}
	return time.Time{}
}

// reloaded records that tailscaled has read its config, on a request of a time.
func (r readvertising) reloaded(request, at time.Time) {
	for _, p := range r {
		p.absence.reloaded(request, at)
	}
}

// counts returns how often each service was withdrawn in this way.
func (r readvertising) counts() map[string]int {
	out := make(map[string]int, len(r))
	for name, p := range r {
		out[name] = p.count
	}
	return out
}

// A readvertiseRole has the services that are withdrawn for a moment because control does not accept
// the machine for them.
type readvertiseRole struct {
	plainRole

	// services are the advertised services that control does not accept yet, and due is when to act on
	// one of them. Zero means never.
	services readvertising
	due      time.Time
}

// persist returns the names without the services that are withdrawn for a moment.
func (r *readvertiseRole) persist(at time.Time, names []string, tn localapi.State) []string {
	withdrawn, next := r.services.step(at, names, tn.Accepted, tn.Running && tn.AcceptedKnown)
	r.due = next
	return slices.DeleteFunc(names, func(n string) bool { return withdrawn[n] })
}

// step returns when to act on a service.
func (r *readvertiseRole) step(context.Context, time.Time, facts) time.Time { return r.due }
