// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A conditionRule is one condition of a TailscaleServices with a Tailscale Service.
type conditionRule struct {
	kind xpv2.ConditionType

	// wanted reports whether the object uses the feature that the condition is about. It is nil for a
	// condition about no feature.
	wanted func(Features) bool

	// reported reports whether there is something to report. It is nil for a condition that always
	// reports something. An object that has the condition keeps it.
	reported func(Facts) bool

	condition func(Facts) compose.Condition
}

// conditionRules are the conditions, in order.
var conditionRules = []conditionRule{
	{kind: meta.TypeAccepted, condition: accepted},
	{kind: meta.TypeEndpointsSelected, condition: endpointsSelected},
	{kind: meta.TypeVIPServiceReady, condition: vipServiceReady},
	{kind: meta.TypeAdvertised, condition: advertised},
	{kind: meta.TypeApproved, condition: approved},
	{kind: meta.TypeRouted, reported: func(f Facts) bool { return f.Presence.Routing() != nil }, condition: primaryChosen},
	{kind: meta.TypePortsHealthy, reported: func(f Facts) bool { return f.Presence.PortsHealth() != nil }, condition: portsHealthy},
	{kind: meta.TypePortsAllowed, reported: func(f Facts) bool { return portsAllowed(f).Status == compose.False }, condition: portsAllowed},
	{kind: meta.TypeConflict, wanted: func(f Features) bool { return f.Sharing }, condition: conflict},
	{kind: meta.TypeDrained, wanted: func(f Features) bool { return f.Drain }, condition: drained},
	{kind: meta.TypeFencingReady, wanted: func(f Features) bool { return f.Fencing }, condition: fencingReady},
	{kind: meta.TypeDiscoverySuccessful, wanted: func(f Features) bool { return f.Discovery }, condition: discoverySuccessful},
}

// Features are the features of an object that some of its conditions are about.
type Features struct {
	// Sharing reports whether other clusters may also define the service.
	Sharing bool

	// Discovery reports whether services of the tailnet are listed.
	Discovery bool

	// Drain reports whether the user asks to hand the service to other clusters.
	Drain bool

	// Fencing reports whether the user asks to fence dead hosts.
	Fencing bool
}

// uses reports whether the condition is about a feature that the object uses, or about none.
func (r conditionRule) uses(f Features) bool { return r.wanted == nil || r.wanted(f) }

// All returns the conditions of the object.
func All(f Facts) []compose.Condition {
	var out []compose.Condition
	features := Features{Sharing: f.Presence.Sharing, Discovery: f.Selection.Spec.ServiceDiscovery != nil, Drain: f.AsksDrain, Fencing: f.Selection.Spec.Fencing}
	for _, r := range conditionRules {
		if r.uses(features) && (r.reported == nil || f.Existing[r.kind] || r.reported(f)) {
			out = append(out, r.condition(f))
		}
	}
	return out
}

// Types returns the types of the conditions that the object has whatever there is to report, given
// the types of those that it has.
func Types(f Features, existing map[xpv2.ConditionType]bool) []xpv2.ConditionType {
	var out []xpv2.ConditionType
	for _, r := range conditionRules {
		if r.uses(f) && (r.reported == nil || existing[r.kind]) {
			out = append(out, r.kind)
		}
	}
	return out
}

// Unpublished returns the conditions, apart from Accepted, that an object has although it has no
// Tailscale Service, with a message that says so: Crossplane would keep the last message.
func Unpublished(existing map[xpv2.ConditionType]bool) []compose.Condition {
	var out []compose.Condition
	for _, r := range conditionRules {
		if r.kind != meta.TypeAccepted && existing[r.kind] {
			out = append(out, compose.Condition{Type: r.kind, Reason: meta.ReasonNotRequested, Message: "spec.vipService.enabled is false"})
		}
	}
	return out
}
