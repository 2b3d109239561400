// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A conditionRule is one condition of a TailscaleGateway.
type conditionRule struct {
	kind xpv2.ConditionType

	// wanted reports whether the spec uses the feature that the condition is about.
	wanted func(facts) bool

	condition func(*gatewayPlan) compose.Condition

	// shared means that there is nothing to report of a Gateway that may not be shared.
	shared bool
}

// conditionRules are the conditions, in order. The first is for every spec.
var conditionRules = []conditionRule{
	{kind: meta.TypeGatewayValid, wanted: func(facts) bool { return true }, condition: gatewayValid},
	{kind: meta.TypeTailnetsValid, wanted: func(f facts) bool { return len(f.spec.Tailnets) > 0 }, condition: func(gp *gatewayPlan) compose.Condition { return gp.tailnets.Valid() }},
	{kind: meta.TypeEndpointsReady, wanted: func(f facts) bool { return f.ingress() || f.discovers() }, condition: func(gp *gatewayPlan) compose.Condition { return gp.tailnets.EndpointsReady() }},
	{kind: meta.TypeGatewayVIPReady, wanted: func(f facts) bool { return f.sharing() == gatewayv1alpha1.RouteSharingGateway }, condition: func(gp *gatewayPlan) compose.Condition { return gp.services.GatewayVIPReady() }, shared: true},
	{kind: meta.TypeServicesReady, wanted: facts.ingress, condition: func(gp *gatewayPlan) compose.Condition { return gp.services.Ready() }, shared: true},
	{kind: meta.TypeRoutesReady, wanted: facts.generates, condition: routesReady, shared: true},
	{kind: meta.TypeDiscoveryPrivate, wanted: facts.exposes, condition: discoveryPrivate},
	{kind: meta.TypeSplitDNSReady, wanted: facts.resolves, condition: func(gp *gatewayPlan) compose.Condition { return gp.zones.Ready() }, shared: true},
	{kind: meta.TypeExtensionServerReady, wanted: func(f facts) bool { return f.wantsInstalled() || f.spec.ExtensionServer != nil }, condition: extensionServerReady},
}

// conditionTypes returns the types of the conditions that the plan sets. It omits conditions of
// features that the spec does not use.
func conditionTypes(f facts) []xpv2.ConditionType {
	var out []xpv2.ConditionType
	for _, rule := range conditionRules {
		if rule.wanted(f) {
			out = append(out, rule.kind)
		}
	}
	return out
}

// conditions returns the conditions of the features that the spec uses. A condition of a feature
// that the spec no longer uses gets a message that says so, because Crossplane would keep the last
// message.
func conditions(gp *gatewayPlan) []compose.Condition {
	var out, unused []compose.Condition
	for _, rule := range conditionRules {
		switch {
		case rule.wanted(gp.facts):
			out = append(out, conditionOf(gp, rule))
		case gp.conditions[rule.kind]:
			unused = append(unused, compose.Condition{Type: rule.kind, Reason: meta.ReasonNotRequested, Message: "The spec does not ask for it"})
		}
	}
	return append(out, unused...)
}

// conditionOf returns a condition with its type.
func conditionOf(gp *gatewayPlan, rule conditionRule) compose.Condition {
	c := rule.condition(gp)
	c.Type = rule.kind
	if rule.shared && !gp.gateway.Permitted() {
		c.Status, c.Reason, c.Message = compose.False, meta.ReasonRefNotPermitted, "The Gateway may not be shared from here; "+string(meta.TypeGatewayValid)+" names the missing ReferenceGrant"
	}
	return c
}

// gatewayValid returns the condition GatewayValid. Its message also names the listeners that trust
// identity headers although clients may reach them without the product's proxies. Such a listener
// alone does not make the condition False, because the function cannot know whether other rules
// block these clients.
func gatewayValid(gp *gatewayPlan) compose.Condition {
	c := gp.gateway.Valid()
	front := gp.gateway.Service()
	if front == nil || front.Spec.Type != corev1.ServiceTypeLoadBalancer && front.Spec.Type != corev1.ServiceTypeNodePort {
		return c
	}
	if identified := gp.identityListeners(); len(identified) > 0 {
		c.Message += fmt.Sprintf("; it is of type %s, and a client that reaches one of the listeners %s without the proxies can claim any identity: admit only the proxies with a NetworkPolicy, or use a Service of type ClusterIP",
			front.Spec.Type, compose.List(identified...))
	}
	return c
}

// routesReady returns the condition RoutesReady: True if all generated routes answer. The worst
// state comes first.
func routesReady(gp *gatewayPlan) compose.Condition {
	for _, t := range gp.tailnets.Tailnets {
		if m := t.SelectsAll(); m != "" {
			return compose.Condition{Status: compose.False, Reason: meta.ReasonDiscoverySelectsAll, Message: m}
		}
	}
	if gp.report == nil {
		return compose.Condition{Reason: compose.ReasonWaiting, Message: "Waiting for the extension to report the routes that it generates"}
	}
	for _, state := range []tailnetv1alpha1.GeneratedRouteState{
		tailnetv1alpha1.GeneratedRouteConflict, tailnetv1alpha1.GeneratedRouteRefused, tailnetv1alpha1.GeneratedRoutePending,
	} {
		if reported := routes.Generated(gp.report, state); len(reported) > 0 {
			return routesNotReady(reported)
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonRoutesAccepted, Message: "The Gateway has accepted all generated routes"}
}

// routesNotReady returns a condition about the first of some routes in one state, and the number
// of the others.
func routesNotReady(reported []tailnetv1alpha1.ReportedGeneratedRoute) compose.Condition {
	first := reported[0]
	c := compose.Condition{Status: compose.False, Message: fmt.Sprintf("%s of tailnet %q: %s", first.Service, first.Tailnet, first.Message)}
	switch {
	case first.State == tailnetv1alpha1.GeneratedRoutePending:
		c.Reason, c.Message = meta.ReasonRoutesPending, "Waiting for the Gateway to accept generated routes; status.generatedRoutes lists them"
		return c
	case first.State == tailnetv1alpha1.GeneratedRouteRefused:
		c.Reason = meta.ReasonRouteRefused
	case first.ConflictsWithGenerated:
		c.Reason = meta.ReasonHostCollision
	default:
		c.Reason = meta.ReasonRouteConflict
	}
	if n := len(reported) - 1; n > 0 {
		c.Message += fmt.Sprintf(" (and %d more)", n)
	}
	return c
}

// extensionServerReady returns the condition ExtensionServerReady.
func extensionServerReady(gp *gatewayPlan) compose.Condition {
	if e := gp.extension.Extension; e != nil {
		if c := e.Ready(); c.Status != compose.True || gp.report != nil || !gp.needsReport() {
			return c
		}
		return compose.Condition{Reason: compose.ReasonWaiting, Message: "Waiting for extension " + e.Name + " to report of the Gateway"}
	}
	if c := gp.extension.Refused; c != nil {
		return *c
	}
	return installedReady(gp)
}

// withoutReport returns what is missing without a report, for a message.
func withoutReport(gp *gatewayPlan) string {
	var out []string
	if gp.sharing() == gatewayv1alpha1.RouteSharingRoute {
		out = append(out, "no route is shared")
	}
	if gp.publishes() {
		out = append(out, "no backend is published (publishBackends None asks for none)")
	}
	if gp.generates() {
		out = append(out, "no route is generated")
	}
	if gp.resolves() {
		out = append(out, "no hostname of a route resolves")
	}
	if gp.identifiesElsewhere() {
		out = append(out, "clients can forge identity headers")
	}
	return strings.Join(out, " and ")
}

// problem reports whether there is something to fix or to wait for, independent of the children's
// reports. Conflicting routes do not count, because the others answer.
func problem(gp *gatewayPlan) bool {
	if gp.gateway.Valid().Status != compose.True || gp.needsExtension() && extensionServerReady(gp).Status != compose.True {
		return true
	}
	for _, t := range gp.tailnets.Tailnets {
		if !t.Verdict.Accepted || t.Mistake != "" || t.SelectsAll() != "" {
			return true
		}
	}
	return gp.services.MissingIdentity() != ""
}
