// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// firstAsk is the delay before the API is asked again for hosts that do not match the agents'
	// reports. It doubles up to lastAsk.
	firstAsk = 5 * time.Second
	lastAsk  = time.Minute

	// inTurn is the number of settled services for whose hosts the API is asked in each poll
	// interval. The API lists hosts for one service only, so asking for all of them at each poll
	// would take a call each.
	inTurn = 3

	// approvedByUs is the API's name of an approval by an API call.
	approvedByUs = "approved:manual"
)

// A hostsCache decides when the API is asked for the hosts of a service.
type hostsCache struct {
	interval time.Duration
	clock    clock.PassiveClock

	mu      sync.Mutex
	entries map[types.UID]*asking
	window  time.Time // Start of the interval in which services are asked for in turn.
	used    int       // Number of services in the interval.
}

// asking is the state of the requests for one service's hosts.
type asking struct {
	at      time.Time // Time of the last request. Zero if there was none.
	reports reports
	hosts   []tailscale.Host // Hosts in the last answer.
	delay   time.Duration    // Delay before the next request. Zero if no change is expected.
	failed  bool             // The last request failed.
	turn    time.Time        // When the settled service last looked for its turn. Zero if it did not.

	preapproved  map[string]bool  // Machines that were approved before they advertised.
	looked       map[string]bool  // Machines for which a fresh list of devices was requested.
	lost         int              // Number of observations with lost annotations.
	readvertised map[string]int32 // How often each agent has advertised the service again.
}

func newHostsCache(interval time.Duration, c clock.PassiveClock) *hostsCache {
	return &hostsCache{interval: interval, clock: c, entries: map[types.UID]*asking{}}
}

// due reports whether to ask the API for the hosts now, given the agents' reports and the known
// hosts.
func (c *hostsCache) due(uid types.UID, rs reports, hosts []tailscale.Host) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	if a.failed {
		// Otherwise, the condition with the reason would go by itself. The reconciler backs off.
		return true
	}
	if rs.settled(hosts) {
		a.reports, a.delay = maps.Clone(rs), 0
		return c.takeTurn(a)
	}
	if !sameOffers(a.reports, rs) || a.delay == 0 {
		return true
	}
	return c.clock.Since(a.at) >= a.delay
}

// sameOffers reports whether reports are equal as far as hosts are concerned. The number of healthy
// backends does not concern them.
func sameOffers(a, b reports) bool {
	return maps.EqualFunc(a, b, func(x, y report) bool {
		return x.Advertised == y.Advertised && x.Accepted == y.Accepted && x.Unknown == y.Unknown
	})
}

// takeTurn reports whether the API is to be asked for a settled service now: the service is among those
// whose last request is the oldest, and not too many requests were made in this interval.
func (c *hostsCache) takeTurn(a *asking) bool {
	instant := c.clock.Now()
	a.turn = instant
	if instant.Sub(c.window) >= c.interval {
		c.window, c.used = instant, 0
	}
	if c.used >= inTurn || !a.at.IsZero() && instant.Sub(a.at) < c.interval/2 {
		return false
	}
	older := 0
	for _, o := range c.entries {
		// Own services, and services that are paused or gone, never take their turn.
		if o.at.Before(a.at) && instant.Sub(o.turn) <= 2*c.interval {
			older++
		}
	}
	if older >= inTurn {
		return false
	}
	c.used++
	return true
}

// keep removes the machines that no longer report a service from the service's state.
func (c *hostsCache) keep(uid types.UID, rs reports) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entries[uid]
	if a == nil {
		return
	}
	for _, m := range []map[string]bool{a.preapproved, a.looked} {
		maps.DeleteFunc(m, func(id string, _ bool) bool { _, ok := rs[id]; return !ok })
	}
	maps.DeleteFunc(a.readvertised, func(id string, _ int32) bool { _, ok := rs[id]; return !ok })
}

// failed records that a request failed.
func (c *hostsCache) failed(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.entries[uid]; a != nil {
		a.failed = true
	}
}

// asked records the result of a request.
func (c *hostsCache) asked(uid types.UID, rs reports, hosts []tailscale.Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	a.failed = false
	switch {
	case rs.settled(hosts):
		a.delay = 0
	case a.delay == 0 || !sameOffers(a.reports, rs):
		a.delay = firstAsk
	default:
		a.delay = min(2*a.delay, lastAsk)
	}
	a.at, a.reports, a.hosts = c.clock.Now(), maps.Clone(rs), slices.Clone(hosts)
}

// known returns the hosts of the last answer. It returns nil if there was none.
func (c *hostsCache) known(uid types.UID) []tailscale.Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.entries[uid]; a != nil {
		return slices.Clone(a.hosts)
	}
	return nil
}

// approved records that a host was approved after the last answer.
func (c *hostsCache) approved(uid types.UID, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entries[uid]
	if a == nil {
		return
	}
	for i := range a.hosts {
		if a.hosts[i].NodeID == node {
			a.hosts[i].Approval = approvedByUs
		}
	}
}

// entry returns the state of a service. The caller holds the lock.
func (c *hostsCache) entry(uid types.UID) *asking {
	a := c.entries[uid]
	if a == nil {
		a = &asking{}
		c.entries[uid] = a
	}
	return a
}

// newcomer reports whether one of the machines, which a list of devices lacks, was not among them
// in an earlier call. A machine whose device is gone may stay among them for a long time.
func (c *hostsCache) newcomer(uid types.UID, nodes []string) bool {
	if len(nodes) == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	if a.looked == nil {
		a.looked = map[string]bool{}
	}
	found := false
	for _, n := range nodes {
		found = found || !a.looked[n]
		a.looked[n] = true
	}
	return found
}

// preapproved records that a machine was approved, or cannot be approved before it advertises.
func (c *hostsCache) preapproved(uid types.UID, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	if a.preapproved == nil {
		a.preapproved = map[string]bool{}
	}
	a.preapproved[node] = true
}

// isPreapproved reports whether preapproved was called for a machine.
func (c *hostsCache) isPreapproved(uid types.UID, node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[uid] != nil && c.entries[uid].preapproved[node]
}

// readvertised returns the machines whose agents have advertised a service again since
// the last call, sorted. It returns no machine that the last call did not have.
func (c *hostsCache) readvertised(uid types.UID, rs reports) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	if a.readvertised == nil {
		a.readvertised = map[string]int32{}
	}
	var out []string
	for id, x := range rs {
		if count, ok := a.readvertised[id]; ok && x.Readvertised > count {
			out = append(out, id)
		}
		a.readvertised[id] = x.Readvertised
	}
	slices.Sort(out)
	return out
}

// countLost counts observations of a service whose annotations are lost, and reports
// whether this is not the first one.
func (c *hostsCache) countLost(uid types.UID, lost bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	if lost {
		a.lost++
	}
	return lost && a.lost > 1
}

// next returns the time until the API is asked again for the hosts, or otherwise if no change is
// expected.
func (c *hostsCache) next(uid types.UID, otherwise time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entries[uid]
	if a == nil || a.delay == 0 {
		return otherwise
	}
	return max(a.delay-c.clock.Since(a.at), time.Second)
}

// settle records that no change of a service is expected.
func (c *hostsCache) settle(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.entries[uid]; a != nil {
		c.entries[uid] = &asking{preapproved: a.preapproved}
	}
}

// forget removes a service that is gone, or of which no change is expected.
func (c *hostsCache) forget(uid types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, uid)
}
