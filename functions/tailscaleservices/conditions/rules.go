// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A conditionRule is one condition of a TailscaleServices with a Tailscale Service.
type conditionRule struct {
	kind xpv2.ConditionType

	// wanted reports whether the spec uses the feature that the condition is about. It is nil for a
	// condition about no feature.
	wanted func(gatewayv1alpha1.TailscaleServicesSpec) bool

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
	{kind: meta.TypeConflict, wanted: shared, condition: conflict},
	{kind: meta.TypeDiscoverySuccessful, wanted: discovers, condition: discoverySuccessful},
}

// shared reports whether other clusters may also define the service.
func shared(spec gatewayv1alpha1.TailscaleServicesSpec) bool {
	return spec.Sharing == gatewayv1alpha1.SharingShared
}

// discovers reports whether services of the tailnet are listed.
func discovers(spec gatewayv1alpha1.TailscaleServicesSpec) bool { return spec.ServiceDiscovery != nil }

// uses reports whether the condition is about a feature that the spec uses, or about none.
func (r conditionRule) uses(spec gatewayv1alpha1.TailscaleServicesSpec) bool {
	return r.wanted == nil || r.wanted(spec)
}

// All returns the conditions of the object.
func All(f Facts) []compose.Condition {
	var out []compose.Condition
	for _, r := range conditionRules {
		if r.uses(f.Selection.Spec) && (r.reported == nil || f.Existing[r.kind] || r.reported(f)) {
			out = append(out, r.condition(f))
		}
	}
	return out
}

// Types returns the types of the conditions that the object has whatever there is to report, given
// the types of those that it has.
func Types(spec gatewayv1alpha1.TailscaleServicesSpec, existing map[xpv2.ConditionType]bool) []xpv2.ConditionType {
	var out []xpv2.ConditionType
	for _, r := range conditionRules {
		if r.uses(spec) && (r.reported == nil || existing[r.kind]) {
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
