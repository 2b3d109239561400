// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// routing holds, by name, whether a host of a service is primary. Control can leave a service
// without one although its hosts are approved and online (tailscale/tailscale#19666).
type routing map[string]*routed

// A routed is what is known about one service.
type routed struct {
	// state is the last state to report. It is kept while another one is not certain.
	state v1alpha1.Routing

	// start is since when no host is known to be primary. Zero while one is, and while this machine
	// does not offer the service.
	start time.Time
}

// step updates the states of services. A service can be without a primary host for the given
// patience before that is certain. addresses holds the services' addresses, and advertised are
// the services that this machine advertises at this moment. It returns when a state can change
// without a notification, or zero.
func (r routing) step(at time.Time, patience time.Duration, services []plan.Service, addresses map[string][]netip.Addr, advertised map[string]bool, t localapi.State) (next time.Time) {
	wanted := make(map[string]bool, len(services))
	for _, s := range services {
		wanted[s.Name] = true
		x := r[s.Name]
		if x == nil {
			x = &routed{}
			r[s.Name] = x
		}
		x.step(at, patience, s.Advertise, advertised[s.Name], t.Accepted[s.Name], t.Routes.Any(addresses[s.Name]), t)
		next = earliest(at, next, x.due(patience))
	}
	maps.DeleteFunc(r, func(name string, _ *routed) bool { return !wanted[name] })
	return next
}

func (x *routed) step(at time.Time, patience time.Duration, offered, advertised, accepted, primary bool, t localapi.State) {
	switch {
	case !t.Running || !t.Routes.Reported:
		x.start = time.Time{}
	case primary:
		x.state, x.start = v1alpha1.RoutingTrue, time.Time{}
	case !offered || !accepted:
		// Another host, which this one does not see, can be primary.
		x.state, x.start = v1alpha1.RoutingUnknown, time.Time{}
	case !advertised:
		// Withdrawn for a moment.
		x.start = time.Time{}
	case x.start.IsZero():
		x.start = at
		if x.state == "" {
			x.state = v1alpha1.RoutingUnknown
		}
	case !at.Before(x.due(patience)):
		x.state = v1alpha1.RoutingFalse
	}
}

// due returns when the absence of a primary host is certain, or zero.
func (x *routed) due(patience time.Duration) time.Time {
	if x.start.IsZero() {
		return time.Time{}
	}
	return x.start.Add(patience)
}

// states returns the states to report.
func (r routing) states() map[string]v1alpha1.Routing {
	out := make(map[string]v1alpha1.Routing, len(r))
	for name, x := range r {
		out[name] = x.state
	}
	return out
}

// isDead reports whether a service has no primary host.
func (r routing) isDead(name string) bool {
	return r[name] != nil && r[name].state == v1alpha1.RoutingFalse && !r[name].start.IsZero()
}

// A routingRole follows which services have a primary host.
type routingRole struct {
	plainRole

	// patience is how long a service can be without a primary host before that is certain.
	patience time.Duration

	// services has which services have a primary host, and due is when that may change. Zero means
	// never.
	services routing
	due      time.Time

	// primaries is the number of services that this machine is primary for: a metric and not in the
	// machine's status, which would change with each failover. seen reports whether there was ever one.
	primaries int
	seen      bool
}

// prepare updates which services have a primary host.
func (r *routingRole) prepare(_ context.Context, at time.Time, f facts) {
	addresses := plan.Addresses(f.attachments)
	advertised := make(map[string]bool, len(f.advertised))
	for _, name := range f.advertised {
		advertised[name] = true
	}
	r.due = r.services.step(at, r.patience, f.services, addresses, advertised, f.tailnet)
	r.primaries = 0
	for _, s := range f.services {
		if f.tailnet.Routes.IsPrimary(addresses[s.Name]) {
			r.primaries++
		}
	}
	r.seen = r.seen || r.primaries > 0
}

// step returns when the absence of a primary host is certain.
func (r *routingRole) step(context.Context, time.Time, facts) time.Time { return r.due }

// report adds whether this machine was ever primary.
func (r *routingRole) report(s *v1alpha1.MachineAgentStatus) { s.PrimaryRoutesSeen = r.seen }
