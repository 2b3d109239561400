// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/conditions"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// plan returns the desired state of the object and its children. It depends only on the facts.
func plan(f facts) compose.Plan {
	switch {
	case f.waiting != "":
		return compose.Wait(f.waiting, f.conditionTypes()...)
	case !f.publishes():
		return planForRoutes(f)
	}
	s := newService(f)
	p := compose.Plan{Conditions: conditions.All(s.conditionFacts()), Status: s.status(), NotReady: s.problem() || !s.answers() || s.presence.DNSName() != "" && !s.nameReported()}
	if s.verdict.Reason == meta.ReasonNotGranted {
		// The new spec cannot be applied, so the existing children stay.
		p.KeepExisting, p.Except = true, s.succession.Forbidden()
		return p
	}
	p.Add(s.children())
	return p
}

// conditionTypes returns the types of the conditions that a plan sets.
func (f facts) conditionTypes() []xpv2.ConditionType {
	if !f.publishes() {
		return []xpv2.ConditionType{meta.TypeAccepted}
	}
	return conditions.Types(conditions.Features{Sharing: f.shared(), Discovery: f.discovers(), Drain: f.asksDrain()}, f.conditions)
}
