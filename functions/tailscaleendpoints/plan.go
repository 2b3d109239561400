// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// manyAtOnce is how many new children exceed what Crossplane's circuit breaker lets through: what
// is discovered in a tailnet comes at once.
const manyAtOnce = 32

// plan returns what the facts ask of the object and its children. It depends on nothing else.
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
	if e.verdict.Reason == meta.ReasonNotGranted {
		// Nothing of what the spec asks for now reaches what runs, which stays.
		p.KeepExisting = true
		return p, nil
	}
	p.Children = e.wantedChildren(t)
	fresh := 0
	for _, c := range p.Children {
		if !f.has(c.Name) {
			fresh++
		}
		// Crossplane would list those that are not ready, and write the composite each
		// time that one becomes ready.
		p.NotReady = p.NotReady || !c.Ready
	}
	if fresh > manyAtOnce {
		p.RequeueAfter = compose.RequeueInterval
	}
	return p, nil
}
