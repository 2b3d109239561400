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
	// firstAsk is how soon hosts are asked for again that are not as agents let
	// expect. It doubles up to lastAsk.
	firstAsk = 5 * time.Second
	lastAsk  = time.Minute

	// inTurn is how many services a poll interval are asked for their hosts though
	// nothing lets expect others. The API lists hosts per service only, so asking
	// for each at each poll would cost a call each.
	inTurn = 3

	// approvedByUs is how the API calls an approval that it was asked for.
	approvedByUs = "approved:manual"
)

// A hostsCache decides when the API is asked for the hosts of a service.
type hostsCache struct {
	interval time.Duration
	clock    clock.PassiveClock

	mu     sync.Mutex
	by     map[types.UID]*asking
	window time.Time // Began when the first of its services was asked in turn.
	used   int       // How many were asked since.
}

// asking is how one service's hosts were asked for.
type asking struct {
	at     time.Time // Zero if they were never.
	claims claims
	hosts  []tailscale.Host // What the last answer said.
	again  time.Duration    // Zero if nothing else is expected.
	failed bool             // The last time it could not be told.

	preapproved  map[string]bool  // Machines that were approved before they advertised.
	looked       map[string]bool  // Machines for which a fresh list of devices was asked for.
	lost         int              // How often its annotations were seen to be lost.
	readvertised map[string]int32 // How often agents have advertised the service again.
}

func newHostsCache(interval time.Duration, c clock.PassiveClock) *hostsCache {
	return &hostsCache{interval: interval, clock: c, by: map[types.UID]*asking{}}
}

// due reports whether hosts are to be asked for now, given what agents claim and
// which are known.
func (c *hostsCache) due(uid types.UID, cl claims, known []tailscale.Host) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	if a.failed {
		// Else the condition that says why would go by itself. The reconciler asks
		// ever less often.
		return true
	}
	if cl.settled(known) {
		a.claims, a.again = maps.Clone(cl), 0
		return c.turn(a)
	}
	if !sameOffers(a.claims, cl) || a.again == 0 {
		return true
	}
	return c.clock.Since(a.at) >= a.again
}

// sameOffers reports whether claims say the same of hosts. How many backends answer
// says nothing of them.
func sameOffers(a, b claims) bool {
	return maps.EqualFunc(a, b, func(x, y claim) bool { return x.Advertised == y.Advertised && x.Accepted == y.Accepted })
}

// turn reports whether it is a settled service's turn: it is one of those that were
// not asked for the longest time, and not too many were just asked.
func (c *hostsCache) turn(a *asking) bool {
	now := c.clock.Now()
	if now.Sub(c.window) >= c.interval {
		c.window, c.used = now, 0
	}
	if c.used >= inTurn || !a.at.IsZero() && now.Sub(a.at) < c.interval/2 {
		return false
	}
	older := 0
	for _, o := range c.by {
		if o.at.Before(a.at) {
			older++
		}
	}
	// Some are paused, and never take their turn.
	if older >= max(inTurn, len(c.by)/10) {
		return false
	}
	c.used++
	return true
}

// failed notes that asking failed.
func (c *hostsCache) failed(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.by[uid]; a != nil {
		a.failed = true
	}
}

// asked notes what came of asking.
func (c *hostsCache) asked(uid types.UID, cl claims, hosts []tailscale.Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	a.failed = false
	switch {
	case cl.settled(hosts):
		a.again = 0
	case a.again == 0 || !sameOffers(a.claims, cl):
		a.again = firstAsk
	default:
		a.again = min(2*a.again, lastAsk)
	}
	a.at, a.claims, a.hosts = c.clock.Now(), maps.Clone(cl), slices.Clone(hosts)
}

// known are the hosts of the last answer. Nil if there was none.
func (c *hostsCache) known(uid types.UID) []tailscale.Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.by[uid]; a != nil {
		return slices.Clone(a.hosts)
	}
	return nil
}

// approved notes that a host was approved since.
func (c *hostsCache) approved(uid types.UID, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.by[uid]
	if a == nil {
		return
	}
	for i := range a.hosts {
		if a.hosts[i].NodeID == node {
			a.hosts[i].Approval = approvedByUs
		}
	}
}

// entry returns what is known of a service. The lock is held.
func (c *hostsCache) entry(uid types.UID) *asking {
	a := c.by[uid]
	if a == nil {
		a = &asking{}
		c.by[uid] = a
	}
	return a
}

// newcomer reports whether one of these machines, which a list of devices lacks, was not
// among them before. A machine whose device is gone may stay among them for long.
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

// preapproved notes that a machine was approved, or cannot be before it advertises.
func (c *hostsCache) preapproved(uid types.UID, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	if a.preapproved == nil {
		a.preapproved = map[string]bool{}
	}
	a.preapproved[node] = true
}

// isPreapproved reports what preapproved has noted.
func (c *hostsCache) isPreapproved(uid types.UID, node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[uid] != nil && c.by[uid].preapproved[node]
}

// readvertised returns the machines whose agents have advertised a service again since
// the last call, sorted. The first call of a process returns none.
func (c *hostsCache) readvertised(uid types.UID, cl claims) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	first := a.readvertised == nil
	if first {
		a.readvertised = map[string]int32{}
	}
	var out []string
	for id, x := range cl {
		if !first && x.Readvertised > a.readvertised[id] {
			out = append(out, id)
		}
		a.readvertised[id] = x.Readvertised
	}
	slices.Sort(out)
	return out
}

// countLost counts observations of a service whose annotations are lost, and reports whether
// this is not the first one.
func (c *hostsCache) countLost(uid types.UID, lost bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.entry(uid)
	if lost {
		a.lost++
	}
	return lost && a.lost > 1
}

// next is how long it takes until hosts are asked for again; otherwise if nothing
// else is expected.
func (c *hostsCache) next(uid types.UID, otherwise time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.by[uid]
	if a == nil || a.again == 0 {
		return otherwise
	}
	return max(a.again-c.clock.Since(a.at), time.Second)
}

// settle notes that nothing else is expected of a service.
func (c *hostsCache) settle(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.by[uid]; a != nil {
		c.by[uid] = &asking{preapproved: a.preapproved}
	}
}

// forget a service that is gone, or that nothing is expected of.
func (c *hostsCache) forget(uid types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, uid)
}
