// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// plan returns the desired state of the object and its children. It depends only on the facts.
func plan(f facts) (compose.Plan, error) {
	if f.waiting != "" {
		p := compose.Wait(f.waiting, outline(f).conditionTypes()...)
		p.NotReady = true
		return p, nil
	}
	gp := newGatewayPlan(f)
	p := compose.Plan{Conditions: gp.conditions(), Status: gp.status(), NotReady: gp.problem()}
	if gp.gateway.ambiguous() {
		// Children of an earlier run stay.
		p.KeepExisting = true
		return p, nil
	}
	zones, err := zoneChildren(gp)
	for _, c := range []children{proxyChildren(gp), serviceChildren(gp), zones, extensionChildren(gp)} {
		p.Children = append(p.Children, c.wanted...)
		p.NotReady = p.NotReady || c.incomplete
		if c.requeue {
			p.RequeueAfter = compose.RequeueInterval
		}
	}
	return p, err
}

// children are a part of the composed children.
type children struct {
	wanted []compose.Child

	// incomplete means that a child is missing or not ready, in addition to those in wanted.
	incomplete bool

	// requeue means that Crossplane should call the function again after a minute, because its
	// circuit breaker may drop changes of so many children.
	requeue bool
}

// add appends a child.
func (c *children) add(name string, o runtime.Object, ready bool) {
	c.wanted = append(c.wanted, compose.Child{Name: name, Object: o, Ready: ready})
}

// A gatewayPlan is what follows from the facts about a TailscaleGateway. Functions of it return the
// parts of the plan: proxies, services, zones, the extension, conditions and the status.
type gatewayPlan struct {
	facts

	// found is the Gateway as the status contains it. It is nil unless the Gateway is valid.
	found *gatewayv1alpha1.GatewayStatus

	tailnets []*tailnet

	// proxies are the desired proxies, in the order in which they start.
	proxies []*proxies

	// extension is the Gateway's separate extension. It is nil unless it is wanted.
	extension *extension

	// services are the desired services: those of the Gateway, of routes, and of backends.
	services []*service

	// zones are those of tailnets that resolve hostnames.
	zones []*tailnetZone
}

// A tailnet is one of the tailnets that a Gateway joins.
type tailnet struct {
	gatewayv1alpha1.GatewayTailnet

	// ref is the name of the TailscaleTailnet.
	ref string

	verdict compose.TailnetVerdict

	// shared are the shared listeners, by their port in the tailnet.
	shared []sharedListener

	// mistake is a message for the user about spec.listeners.
	mistake string

	// ingress are the ingress proxies, and egress the egress proxies for discovered services. They
	// are nil if they are not wanted.
	ingress, egress *proxies
}

// newGatewayPlan returns what follows from complete facts.
func newGatewayPlan(f facts) *gatewayPlan {
	gp := outline(f)
	gp.extension = planExtension(gp)
	gp.services = planServices(gp)
	if gp.gateway.ambiguous() {
		// No service is composed that was not before.
		gp.services = slices.DeleteFunc(gp.services, func(v *service) bool { return v.observed == nil })
	}
	gp.zones = planZones(gp)
	return gp
}

// outline returns the tailnets and their proxies, which follow from the spec and the Gateway, even
// if other facts are missing.
func outline(f facts) *gatewayPlan {
	gp := &gatewayPlan{facts: f}
	if f.gateway != nil {
		gp.found = f.gateway.status()
	}
	for i, t := range f.spec.Tailnets {
		tn := &tailnet{GatewayTailnet: t, ref: tailnetRef(t)}
		if i < len(f.verdicts) {
			tn.verdict = f.verdicts[i]
		}
		tn.shared, tn.mistake = shareListeners(gp, t.Listeners)
		if gp.ingress() {
			tn.ingress = newProxies(gp, tn, gatewayv1alpha1.ConnectionTypeIngress)
		}
		if tn.discovers() {
			tn.egress = newProxies(gp, tn, gatewayv1alpha1.ConnectionTypeEgress)
		}
		gp.tailnets = append(gp.tailnets, tn)
	}
	// Ingress comes first, so that services that were shared before are shared again first.
	for _, t := range gp.tailnets {
		if t.ingress != nil {
			gp.proxies = append(gp.proxies, t.ingress)
		}
	}
	for _, t := range gp.tailnets {
		if t.egress != nil {
			gp.proxies = append(gp.proxies, t.egress)
		}
	}
	return gp
}

// conditionTypes returns the types of the conditions that the plan sets. It omits conditions of
// features that the spec does not use.
func (gp *gatewayPlan) conditionTypes() []xpv2.ConditionType {
	out := []xpv2.ConditionType{meta.TypeGatewayValid}
	if len(gp.tailnets) > 0 {
		out = append(out, meta.TypeTailnetsValid)
	}
	if len(gp.proxies) > 0 {
		out = append(out, meta.TypeEndpointsReady)
	}
	if gp.sharing() == gatewayv1alpha1.RouteSharingGateway {
		out = append(out, meta.TypeGatewayVIPReady)
	}
	if gp.ingress() {
		out = append(out, meta.TypeServicesReady)
	}
	if gp.generates() {
		out = append(out, meta.TypeRoutesReady)
	}
	if gp.exposes() {
		out = append(out, meta.TypeDiscoveryPrivate)
	}
	if gp.resolves() {
		out = append(out, meta.TypeSplitDNSReady)
	}
	if gp.wantsInstalled() || gp.spec.ExtensionServer != nil {
		out = append(out, meta.TypeExtensionServerReady)
	}
	return out
}

// permitted reports whether this TailscaleGateway may share the Gateway, as far as is known.
func (gp *gatewayPlan) permitted() bool { return gp.gateway == nil || gp.gateway.ungranted == "" }

// ingress reports whether the tailnets reach anything of the Gateway.
func (gp *gatewayPlan) ingress() bool { return gp.sharing() != gatewayv1alpha1.RouteSharingNone }

// publishes reports whether the Services behind routes are also shared.
func (gp *gatewayPlan) publishes() bool {
	return gp.ingress() && !gp.step && gp.spec.PublishBackends != gatewayv1alpha1.PublishBackendsNone
}

// generates reports whether routes are generated for services.
func (gp *gatewayPlan) generates() bool {
	for _, t := range gp.tailnets {
		if t.discovers() || t.picks() || t.RouteGeneration.Ingress != nil {
			return !gp.step
		}
	}
	return false
}

// needsReport reports whether the extension must report the routes, or its own state.
func (gp *gatewayPlan) needsReport() bool {
	return gp.servesRoutes() || gp.generates() || gp.identifiesElsewhere() || gp.resolves() && !gp.step || gp.spec.ExtensionServer != nil && len(gp.tailnets) > 0
}

// needsExtension reports whether the spec uses a feature that requires an extension.
func (gp *gatewayPlan) needsExtension() bool {
	return gp.spec.ExtensionServer != nil || gp.wantsInstalled() && gp.needsReport()
}

// servesRoutes reports whether routes, or the Services behind them, have Tailscale Services.
func (gp *gatewayPlan) servesRoutes() bool {
	return gp.sharing() == gatewayv1alpha1.RouteSharingRoute || gp.publishes()
}

// discovers reports whether services of a tailnet are discovered.
func (t *tailnet) discovers() bool {
	return t.ServiceDiscovery != nil && ptr.Deref(t.ServiceDiscovery.Enabled, true)
}
