// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// plan returns what the facts ask of the object and its children. It depends on nothing else.
func plan(f facts) (compose.Plan, error) {
	if f.waiting != "" {
		p := compose.Wait(f.waiting, outline(f).conditionTypes()...)
		p.NotReady = true
		return p, nil
	}
	gp := newGatewayPlan(f)
	p := compose.Plan{Conditions: gp.conditions(), Status: gp.status(), NotReady: gp.problem()}
	resolvers, err := gp.resolverChildren()
	for _, c := range []children{gp.proxyChildren(), gp.serviceChildren(), resolvers, gp.extensionChildren()} {
		p.Children = append(p.Children, c.wanted...)
		p.NotReady = p.NotReady || c.incomplete
		if c.requeue {
			p.RequeueAfter = compose.RequeueInterval
		}
	}
	return p, err
}

// children are a part of what is composed.
type children struct {
	wanted []compose.Child

	// incomplete reports that something is missing or not ready, whatever is in wanted.
	incomplete bool

	// requeue reports that Crossplane should call again after a minute: its circuit breaker may
	// drop changes of so many children.
	requeue bool
}

// add appends a child.
func (c *children) add(name string, o runtime.Object, ready bool) {
	c.wanted = append(c.wanted, compose.Child{Name: name, Object: o, Ready: ready})
}

// A gatewayPlan is what follows from the facts about a TailscaleGateway. Its methods answer what
// the plan consists of.
type gatewayPlan struct {
	facts

	// found is the Gateway as the status contains it. It is nil unless the Gateway is valid.
	found *gatewayv1alpha1.GatewayStatus

	tailnets []*tailnet

	// proxies that are wanted, in the order in which they start.
	proxies []*proxies

	// extension of the Gateway's own. It is nil unless it is wanted.
	extension *extension

	// services that are wanted: those of the Gateway, of routes, and of backends.
	services []*service

	// resolvers of tailnets that resolve hostnames.
	resolvers []*resolver
}

// A tailnet is one that a Gateway is joined to.
type tailnet struct {
	gatewayv1alpha1.GatewayTailnet

	// ref is the name of the TailscaleTailnet.
	ref string

	verdict compose.TailnetVerdict

	// shared listeners, by their port in the tailnet.
	shared []sharedListener

	// mistake in spec.listeners. It is for the user.
	mistake string

	// ingress proxies, and egress proxies for discovered services. They are nil where they are
	// not wanted.
	ingress, egress *proxies
}

// newGatewayPlan returns what follows from complete facts.
func newGatewayPlan(f facts) *gatewayPlan {
	gp := outline(f)
	gp.extension = gp.planExtension()
	gp.services = gp.planServices()
	gp.resolvers = gp.planResolvers()
	return gp
}

// outline returns the tailnets and their proxies, which follow from the spec and the Gateway. The
// other facts need not be known.
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
		tn.shared, tn.mistake = gp.shareListeners(t.Listeners)
		if gp.ingress() {
			tn.ingress = gp.newProxies(tn, gatewayv1alpha1.ConnectionTypeIngress)
		}
		if tn.discovers() {
			tn.egress = gp.newProxies(tn, gatewayv1alpha1.ConnectionTypeEgress)
		}
		gp.tailnets = append(gp.tailnets, tn)
	}
	// Ingress comes first: what was shared before is shared again first.
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

// conditionTypes returns the types of the conditions that the plan sets: none of what the spec does
// not ask for.
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

// permitted reports whether the Gateway may be shared from here, as far as is known.
func (gp *gatewayPlan) permitted() bool { return gp.gateway == nil || gp.gateway.ungranted == "" }

// ingress reports whether the tailnets reach anything of the Gateway.
func (gp *gatewayPlan) ingress() bool { return gp.sharing() != gatewayv1alpha1.RouteSharingNone }

// publishes reports whether what is behind routes is shared, too.
func (gp *gatewayPlan) publishes() bool {
	return gp.ingress() && !gp.step && gp.spec.PublishBackends != gatewayv1alpha1.PublishBackendsNone
}

// generates reports whether routes are made for services.
func (gp *gatewayPlan) generates() bool {
	for _, t := range gp.tailnets {
		if t.discovers() || t.picks() || t.RouteGeneration.Ingress != nil {
			return !gp.step
		}
	}
	return false
}

// needsReport reports whether the extension must say which routes there are, or how it
// does itself.
func (gp *gatewayPlan) needsReport() bool {
	return gp.servesRoutes() || gp.generates() || gp.identifiesElsewhere() || gp.resolves() && !gp.step || gp.spec.ExtensionServer != nil && len(gp.tailnets) > 0
}

// needsExtension reports whether something of the spec does not come without one.
func (gp *gatewayPlan) needsExtension() bool {
	return gp.spec.ExtensionServer != nil || gp.wantsInstalled() && gp.needsReport()
}

// servesRoutes reports whether routes, or what is behind them, have services.
func (gp *gatewayPlan) servesRoutes() bool {
	return gp.sharing() == gatewayv1alpha1.RouteSharingRoute || gp.publishes()
}

// discovers reports whether services of a tailnet are looked for.
func (t *tailnet) discovers() bool {
	return t.ServiceDiscovery != nil && ptr.Deref(t.ServiceDiscovery.Enabled, true)
}
