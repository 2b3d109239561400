// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"net"
	"strconv"

	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Verdicts tell what probes hold of a target. False if it is not probed.
type Verdicts func(ir.TargetKey) (health.Target, bool)

// judge adds verdicts to rules.
func (v Verdicts) judge(of *Rule) {
	for i := range of.Backends {
		v.judgeBackend(&of.Backends[i])
	}
	for i := range of.Mirrors {
		v.judgeBackend(&of.Mirrors[i])
	}
}

func (v Verdicts) judgeBackend(b *Backend) {
	k, err := ir.ParseClusterName(b.Target)
	if err != nil {
		// It is not of our kinds, and not probed.
		return
	}
	t, ok := v(k)
	if !ok {
		return
	}
	b.Tier = t.Tier
	by := map[string]*Probed{}
	for _, e := range t.Endpoints {
		by[net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port)))] = &Probed{Status: e.Status, Score: e.HealthScore, Reason: e.Reason}
	}
	for _, l := range b.Localities {
		for i := range l.Endpoints {
			l.Endpoints[i].Probed = by[l.Endpoints[i].Address]
		}
	}
}
