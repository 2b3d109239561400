// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Tailscale accepts a machine as a host of a service only while the machine serves every port of
// the service. So a port is added to a service only when its hosts report that they serve it:
// otherwise the service would have no host until they do.

const (
	// portPatience is how long all hosts may take to serve a new port. After that the hosts that do
	// are enough, if there is one.
	portPatience = time.Minute

	// pollPorts is the poll interval of a service with ports that wait or do not answer.
	pollPorts = time.Minute
)

// A missingPort is a wanted port that a host of the service does not serve yet.
type missingPort struct {
	port    v1alpha1.ServicePort
	machine string
}

// rollOut returns the wanted ports that a service may have now, and one that hosts do not serve yet,
// if there is one. existing are the ports that the service has. late reports that the hosts have had
// enough time. An agent of an older version does not report its ports, and nothing waits for it.
func (c reports) rollOut(want []v1alpha1.ServicePort, existing []string, offline func(id string) bool, late bool) ([]v1alpha1.ServicePort, *missingPort) {
	hosts := c.hosting(offline)
	// Between a list and all ports there is no intermediate step.
	all := slices.Contains(want, v1alpha1.ServicePortAll) || slices.Contains(existing, string(v1alpha1.ServicePortAll))
	if len(hosts) == 0 || len(existing) == 0 || all {
		return want, nil
	}
	if late && slices.ContainsFunc(hosts, func(id string) bool { return c[id].serves(tailscale.Sorted(want)) }) {
		return want, nil
	}
	var out []v1alpha1.ServicePort
	var missing *missingPort
	for _, p := range want {
		i := slices.IndexFunc(hosts, func(id string) bool { return len(c[id].Ports) > 0 && !slices.Contains(c[id].Ports, string(p)) })
		switch {
		case slices.Contains(existing, string(p)) || i < 0:
			out = append(out, p)
		case missing == nil:
			missing = &missingPort{port: p, machine: c[hosts[i]].Machine}
		}
	}
	if len(out) == 0 {
		// The hosts serve the previous ports until the service has others.
		for _, p := range existing {
			out = append(out, v1alpha1.ServicePort(p))
		}
	}
	return out, missing
}

// hosting returns the node IDs of the machines on which the service relies.
func (c reports) hosting(offline func(id string) bool) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(c)) {
		if c[id].Advertised && !c[id].notAccepted() && !offline(id) {
			out = append(out, id)
		}
	}
	return out
}

// serves reports whether the machine reports that it serves ports.
func (c report) serves(ports []string) bool {
	return !slices.ContainsFunc(ports, func(p string) bool { return !slices.Contains(c.Ports, p) })
}

// rollOut returns the wanted ports that a service may have now. It remembers by key since when some
// have to wait, and records one that has waited for too long.
func (e *external) rollOut(mg *v1alpha1.VIPService, key types.UID, rs reports, want []v1alpha1.ServicePort, existing []string) []v1alpha1.ServicePort {
	offline := offlineHosts(mg.Status.AtProvider.Hosts)
	ports, missing := rs.rollOut(want, existing, offline, false)
	if !e.ports.waits(key, missing != nil, e.hosts.clock.Now()) {
		return ports
	}
	if ports, missing = rs.rollOut(want, existing, offline, true); missing != nil {
		e.missing = missing
	}
	return ports
}

// message says which port waits, and for which machine.
func (p missingPort) message(service string) string {
	return fmt.Sprintf("%s gets %s once its hosts serve it; machine %s does not. Check that the port's backend exists, and the agent's log", service, p.port, p.machine)
}

// A portsCache remembers the services with ports that wait or do not answer. Losing it only begins
// the waits again.
type portsCache struct {
	mu sync.Mutex

	// starts is when a service began to wait for hosts to serve its ports.
	starts map[types.UID]time.Time

	// partial is since when a service has had a port that does not answer at a machine.
	partial map[types.UID]time.Time
}

func newPortsCache() *portsCache {
	return &portsCache{starts: map[types.UID]time.Time{}, partial: map[types.UID]time.Time{}}
}

// waits records whether a service waits, and reports whether it has waited for too long.
func (c *portsCache) waits(key types.UID, waiting bool, at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !waiting {
		delete(c.starts, key)
		return false
	}
	if c.starts[key].IsZero() {
		c.starts[key] = at
	}
	return !at.Before(c.starts[key].Add(portPatience))
}

// partialFor records whether a service has a port that does not answer, and returns for how long.
func (c *portsCache) partialFor(uid types.UID, partial bool, at time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !partial {
		delete(c.partial, uid)
		return 0
	}
	if c.partial[uid].IsZero() {
		c.partial[uid] = at
	}
	return at.Sub(c.partial[uid])
}

// next returns when an object is observed again, at the latest after an interval.
func (c *portsCache) next(uid types.UID, interval time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.starts[uid].IsZero() || !c.starts[ownUID(uid)].IsZero() || !c.partial[uid].IsZero() {
		return min(interval, pollPorts)
	}
	return interval
}

// forget forgets an object.
func (c *portsCache) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.starts, uid)
	delete(c.starts, ownUID(uid))
	delete(c.partial, uid)
}
