// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"net"
	"strconv"

	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Probes returns the probed health of a target. False if it is not probed.
type Probes func(ir.TargetKey) (health.Target, bool)

// describe adds the probed health to a rule's backends.
func (v Probes) describe(rule *Rule) {
	for i := range rule.Backends {
		v.describeBackend(&rule.Backends[i])
	}
	for i := range rule.Mirrors {
		v.describeBackend(&rule.Mirrors[i])
	}
}

func (v Probes) describeBackend(b *Backend) {
	k, err := ir.ParseClusterName(b.Target)
	if err != nil {
		// Other backends are not probed.
		return
	}
	t, ok := v(k)
	if !ok {
		return
	}
	b.Tier = t.Tier
	byAddress := map[string]*Probed{}
	for _, e := range t.Endpoints {
		byAddress[net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port)))] = &Probed{Status: e.Status, Score: e.HealthScore, Reason: e.Reason}
	}
	for _, l := range b.Localities {
		for i := range l.Endpoints {
			l.Endpoints[i].Probed = byAddress[l.Endpoints[i].Address]
		}
	}
}
