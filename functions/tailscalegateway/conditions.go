// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// optionalTypes are the types of conditions of optional features.
var optionalTypes = []xpv2.ConditionType{
	meta.TypeTailnetsValid, meta.TypeEndpointsReady, meta.TypeGatewayVIPReady, meta.TypeServicesReady,
	meta.TypeRoutesReady, meta.TypeDiscoveryPrivate, meta.TypeSplitDNSReady, meta.TypeExtensionServerReady,
}

// sharedTypes are the types of conditions that do not exist for a Gateway that may not be shared.
var sharedTypes = []xpv2.ConditionType{
	meta.TypeGatewayVIPReady, meta.TypeServicesReady, meta.TypeRoutesReady, meta.TypeSplitDNSReady,
}

// conditions returns the conditions of the features that the spec uses. A condition of a feature
// that the spec no longer uses gets a message that says so, because Crossplane would keep the last
// message.
func (gp *gatewayPlan) conditions() []compose.Condition {
	var out []compose.Condition
	types := gp.conditionTypes()
	for _, t := range types {
		out = append(out, conditionOf(gp, t))
	}
	for _, t := range optionalTypes {
		if !slices.Contains(types, t) && gp.facts.conditions[t] {
			out = append(out, compose.Condition{Type: t, Reason: meta.ReasonNotRequested, Message: "The spec does not ask for it"})
		}
	}
	return out
}

// conditionParts are the functions that return the condition of each type.
var conditionParts = map[xpv2.ConditionType]func(*gatewayPlan) compose.Condition{
	meta.TypeGatewayValid:         gatewayValid,
	meta.TypeTailnetsValid:        tailnetsValid,
	meta.TypeEndpointsReady:       endpointsReady,
	meta.TypeGatewayVIPReady:      gatewayVIPReady,
	meta.TypeServicesReady:        servicesReady,
	meta.TypeRoutesReady:          routesReady,
	meta.TypeDiscoveryPrivate:     discoveryPrivate,
	meta.TypeSplitDNSReady:        splitDNSReady,
	meta.TypeExtensionServerReady: extensionServerReady,
}

// conditionOf returns the condition of a type.
func conditionOf(gp *gatewayPlan, t xpv2.ConditionType) compose.Condition {
	c := conditionParts[t](gp)
	c.Type = t
	if !gp.permitted() && slices.Contains(sharedTypes, t) {
		c.Status, c.Reason, c.Message = compose.False, meta.ReasonRefNotPermitted, "The Gateway may not be shared from here; "+string(meta.TypeGatewayValid)+" names the missing ReferenceGrant"
	}
	return c
}

// tailnetsValid returns the condition TailnetsValid.
func tailnetsValid(gp *gatewayPlan) compose.Condition {
	for _, t := range gp.tailnets {
		if !t.verdict.Accepted {
			return compose.Condition{Status: compose.False, Reason: t.verdict.Reason, Message: t.verdict.Message}
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonAccepted, Message: "All tailnets may be used"}
}

// endpointsReady returns the condition EndpointsReady: True if all proxies are in their
// tailnets. Its message does not count proxies: each write of the composite counts against it in
// Crossplane's circuit breaker, and status.tailnetStatus has more details anyway.
func endpointsReady(gp *gatewayPlan) compose.Condition {
	c := compose.Condition{Status: compose.True, Reason: meta.ReasonEndpointsReady, Message: "All proxies are in their tailnets"}
	for _, p := range gp.proxies {
		if p.complete() {
			continue
		}
		c.Status, c.Reason = compose.False, meta.ReasonEndpointsNotReady
		// Problems that the user must fix come before those that only need time.
		if m := p.endpoints().Problem(); m != "" {
			c.Message = fmt.Sprintf("TailscaleEndpoints %s: %s", p.name, m)
			return c
		}
		c.Message = "Waiting for proxies; each TailscaleEndpoints in status.tailnetStatus says what it waits for"
	}
	return c
}

// gatewayVIPReady returns the condition GatewayVIPReady: True if the Gateway answers in each
// tailnet. Its message does not name the other tailnets, because status.services does.
func gatewayVIPReady(gp *gatewayPlan) compose.Condition {
	c := compose.Condition{Status: compose.True, Reason: meta.ReasonGatewayVIPHosted, Message: "Proxies host the Gateway's Tailscale Service in each tailnet"}
	for _, v := range gp.services {
		if !v.isGateway() || v.hosted() && v.mistake == "" {
			continue
		}
		c.Status, c.Reason = compose.False, meta.ReasonGatewayVIPNotHosted
		// Problems that the user must fix come before those that only need time.
		if p := v.problem(); p != "" {
			c.Message = fmt.Sprintf("%s in tailnet %q: %s", v.vip, v.tailnet.ref, p)
			return c
		}
		c.Message = "Waiting for proxies to host the Gateway's Tailscale Service; status.services lists them by tailnet"
	}
	return c
}

// servicesReady returns the condition ServicesReady: True if all services have their desired
// configuration. status.services reports whether a backend answers. The Gateway's own service
// counts once it is hosted, together with GatewayVIPReady.
func servicesReady(gp *gatewayPlan) compose.Condition {
	c := compose.Condition{Status: compose.False, Reason: meta.ReasonServiceError}
	for _, t := range gp.tailnets {
		if t.mistake != "" {
			c.Message = fmt.Sprintf("spec.tailnets[%s].listeners: %s", t.Name, t.mistake)
			return c
		}
	}
	if m := missingIdentity(gp); m != "" {
		c.Reason, c.Message = meta.ReasonRefNotPermitted, m
		return c
	}
	waiting := gp.found == nil || gp.report == nil && gp.servesRoutes()
	for _, v := range gp.services {
		if p := v.problem(); p != "" {
			c.Message = fmt.Sprintf("%s in tailnet %q: %s", cmp.Or(v.vip, v.target), v.tailnet.ref, p)
			return c
		}
		waiting = waiting || v.omitted == "" && !v.settled()
	}
	if gp.hidesAll() {
		c.Reason = meta.ReasonPoliciesUnknown
		c.Message = "No backend is published, for the extension does not know all policies of Envoy Gateway that may protect them: it is older than this, or may not read them, or the cluster lacks one of their kinds; apply the definitions and rights of this version, or set publishBackends All to publish protected ones, too, or None"
		return c
	}
	if slices.ContainsFunc(gp.services, func(v *service) bool { return v.full }) {
		c.Reason, c.Message = meta.ReasonTooManyRoutes, fullServices()+"; status.services lists those that are omitted"
		return c
	}
	if l := gp.omitted(); gp.servesRoutes() && l.Routes+l.TruncatedRoutes > 0 {
		c.Reason, c.Message = meta.ReasonTooManyRoutes, tooManyRoutes(gp)
		return c
	}
	if waiting {
		c.Reason, c.Message = meta.ReasonServicesCreating, "Waiting for Tailscale Services; status.services has the state of each"
		return c
	}
	for _, v := range gp.services {
		if m := renamed(gp, v); m != "" {
			return compose.Condition{Status: compose.True, Reason: meta.ReasonNameTaken, Message: m}
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonServicesConfigured, Message: "All Tailscale Services are configured"}
}

// omitted returns the numbers of routes that do not fit into the report.
func (gp *gatewayPlan) omitted() tailnetv1alpha1.ReportedOmissions {
	if gp.report == nil {
		return tailnetv1alpha1.ReportedOmissions{}
	}
	return ptr.Deref(gp.report.Omitted, tailnetv1alpha1.ReportedOmissions{})
}

// tooManyRoutes returns a message without numbers: the report has them, and each change of a
// message is a write.
func tooManyRoutes(gp *gatewayPlan) string {
	return "The Gateway has more routes than a report has room for, and the omitted ones are neither shared nor resolved: split them over several Gateways; spec.omitted of GatewayReport " + names.GatewayReport(gp.owner.Name) + " counts them"
}

// routesReady returns the condition RoutesReady: True if all generated routes answer. The worst
// state comes first.
func routesReady(gp *gatewayPlan) compose.Condition {
	for _, t := range gp.tailnets {
		if m := t.selectsAll(); m != "" {
			return compose.Condition{Status: compose.False, Reason: meta.ReasonDiscoverySelectsAll, Message: m}
		}
	}
	if gp.report == nil {
		return compose.Condition{Reason: compose.ReasonWaiting, Message: "Waiting for the extension to report the routes that it generates"}
	}
	for _, state := range []tailnetv1alpha1.GeneratedRouteState{
		tailnetv1alpha1.GeneratedRouteConflict, tailnetv1alpha1.GeneratedRouteRefused, tailnetv1alpha1.GeneratedRoutePending,
	} {
		if routes := gp.routesIn(state); len(routes) > 0 {
			return routesNotReady(gp, routes)
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonRoutesAccepted, Message: "The Gateway has accepted all generated routes"}
}

// routesNotReady returns a condition about the first of some routes in one state, and the number
// of the others.
func routesNotReady(gp *gatewayPlan, routes []tailnetv1alpha1.ReportedGeneratedRoute) compose.Condition {
	first := routes[0]
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
	if n := len(routes) - 1; n > 0 {
		c.Message += fmt.Sprintf(" (and %d more)", n)
	}
	return c
}

// extensionServerReady returns the condition ExtensionServerReady.
func extensionServerReady(gp *gatewayPlan) compose.Condition {
	if gp.extension != nil {
		if c := gp.extension.ready(); c.Status != compose.True || gp.report != nil || !gp.needsReport() {
			return c
		}
		return compose.Condition{Reason: compose.ReasonWaiting, Message: "Waiting for extension " + gp.extension.name + " to report of the Gateway"}
	}
	if gp.spec.ExtensionServer != nil && !gp.step {
		return *extensionRefused(gp)
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
func (gp *gatewayPlan) problem() bool {
	if gp.gateway.valid().Status != compose.True || gp.needsExtension() && extensionServerReady(gp).Status != compose.True {
		return true
	}
	for _, t := range gp.tailnets {
		if !t.verdict.Accepted || t.mistake != "" || t.selectsAll() != "" {
			return true
		}
	}
	return missingIdentity(gp) != ""
}
