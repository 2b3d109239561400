// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// manyAtOnce is the number of new children that exceeds the limit of Crossplane's circuit breaker:
// all discovered endpoints of a tailnet appear at the same time.
const manyAtOnce = 32

// plan returns the desired state of the object and its children. It depends only on the facts.
func plan(f facts) (compose.Plan, error) {
	if f.waiting != "" {
		return compose.Wait(f.waiting, conditionTypes...), nil
	}
	e := newEndpoints(f)
	t, err := e.planEgress()
	if err != nil {
		return compose.Plan{}, err
	}
	p := compose.Plan{Conditions: e.allConditions(t), Status: e.status(t), NotReady: !e.verdict.Accepted}
	if e.verdict.Reason == meta.ReasonNotGranted || e.spec.Tailnet == "" {
		// The new spec cannot be applied, so the existing children stay.
		p.KeepExisting = true
		return p, nil
	}
	p.Children = e.wantedChildren(t)
	fresh := 0
	for _, c := range p.Children {
		if !f.has(c.Name) {
			fresh++
		}
		// Crossplane would list the children that are not ready, and write the composite each time
		// one becomes ready.
		p.NotReady = p.NotReady || !c.Ready
	}
	if fresh > manyAtOnce {
		p.RequeueAfter = compose.RequeueInterval
	}
	return p, nil
}
