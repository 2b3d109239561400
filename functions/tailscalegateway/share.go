// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// A share is what is wanted of a TailscaleGateway with tailnets, and what was seen.
type share struct {
	owner compose.Owner
	xr    *gatewayv1alpha1.TailscaleGateway

	// gateway is nil until Crossplane has looked for all of it.
	gateway *gateway

	// found is the Gateway as the status tells of it. Nil unless it is valid.
	found *gatewayv1alpha1.GatewayStatus

	// step reports that there is no TailscaleGateway: another composite's pipeline has
	// an input like one.
	step bool

	// report of the extension. Nil while there is none.
	report *tailnetv1alpha1.GatewayReportSpec

	// envoyGateway are the namespaces in which Envoy Gateway runs.
	envoyGateway []string

	// extensionImage is that of extensions which say none.
	extensionImage string

	// extension of the Gateway's own. Nil unless it is wanted.
	extension *extension

	// installed are the Deployments of the extension that is installed for the cluster.
	installed []appsv1.Deployment

	// elsewhere reports that there is a Deployment with their labels which does not count.
	elsewhere bool

	tailnets []*tailnet

	// proxies that are wanted, in the order in which they start.
	proxies []*proxies

	// services that are wanted: those of the Gateway, of routes, and of backends.
	services []*service

	// resolvers of tailnets that are to resolve hostnames.
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

	// ingress proxies, and egress proxies for what is discovered. Nil where they are
	// not wanted.
	ingress, egress *proxies
}

func newShare(r *compose.Run, owner compose.Owner, xr *gatewayv1alpha1.TailscaleGateway, g *gateway, image string) (*share, error) {
	s := &share{owner: owner, xr: xr, gateway: g, step: r.HasInput(), extensionImage: image}
	if g != nil {
		s.found = g.status()
	}
	for _, t := range xr.Spec.Tailnets {
		tn := &tailnet{GatewayTailnet: t, ref: t.Name}
		if ref := t.TailscaleTailnetRef; ref != nil {
			tn.ref = cmp.Or(ref.Name, t.Name)
		}
		s.tailnets = append(s.tailnets, tn)
	}
	s.planProxies()
	return s, s.checkInput()
}

// checkInput for what only the extension knows: it reports of TailscaleGateways, and
// of no other composite.
func (s *share) checkInput() error {
	if !s.step {
		return nil
	}
	if s.sharing() == gatewayv1alpha1.RouteSharingRoute {
		return errors.New("cannot share each route in a step: set spec.routeSharing of the input to Gateway or None, or compose a TailscaleGateway")
	}
	if s.xr.Spec.ExtensionServer != nil {
		return errors.New("cannot run an extension for a step: remove spec.extensionServer of the input, or compose a TailscaleGateway")
	}
	return nil
}

// sharing is the schema's default unless the spec says otherwise. Without tailnets
// there is nobody to share with.
func (s *share) sharing() gatewayv1alpha1.RouteSharing {
	if len(s.tailnets) == 0 {
		return gatewayv1alpha1.RouteSharingNone
	}
	return cmp.Or(s.xr.Spec.RouteSharing, gatewayv1alpha1.RouteSharingGateway)
}

// permitted reports whether the Gateway may be shared from here, as far as is known.
func (s *share) permitted() bool { return s.gateway == nil || s.gateway.ungranted == "" }

// ingress reports whether the tailnets reach anything of the Gateway.
func (s *share) ingress() bool { return s.sharing() != gatewayv1alpha1.RouteSharingNone }

// publishes reports whether what is behind routes is shared, too.
func (s *share) publishes() bool {
	return s.ingress() && !s.step && s.xr.Spec.PublishBackends != gatewayv1alpha1.PublishBackendsNone
}

// generates reports whether routes are made for services.
func (s *share) generates() bool {
	for _, t := range s.tailnets {
		if t.discovers() || t.picks() || t.RouteGeneration.Ingress != nil {
			return !s.step
		}
	}
	return false
}

// needsReport reports whether the extension must say which routes there are, or how it
// does itself.
func (s *share) needsReport() bool {
	return s.servesRoutes() || s.generates() || s.identifiesElsewhere() || s.resolves() && !s.step || s.xr.Spec.ExtensionServer != nil && len(s.tailnets) > 0
}

// needsExtension reports whether something of the spec does not come without one.
func (s *share) needsExtension() bool {
	return s.xr.Spec.ExtensionServer != nil || s.wantsInstalled() && s.needsReport()
}

// servesRoutes reports whether routes, or what is behind them, have services.
func (s *share) servesRoutes() bool {
	return s.sharing() == gatewayv1alpha1.RouteSharingRoute || s.publishes()
}

// discovers reports whether services of a tailnet are looked for.
func (t *tailnet) discovers() bool {
	return t.ServiceDiscovery != nil && ptr.Deref(t.ServiceDiscovery.Enabled, true)
}

// requireReport is what the extension tells of the Gateway. It has no status, so each
// change of it is one run.
func requireReport(owner compose.Owner) compose.Requirement {
	return compose.Requirement{
		Key:        "report",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.GatewayReportKind,
		Namespace:  owner.Namespace,
		Name:       names.GatewayReport(owner.Name),
	}
}

// read what the share needs to know. What Crossplane has not read yet is told by
// waiting, for the user; it is empty when all is known.
func (s *share) read(r *compose.Run) (waiting string, err error) {
	for _, t := range s.tailnets {
		_, v, w, err := r.TailnetOf(t.Name, t.ref, s.owner.Namespace)
		if err != nil {
			return "", err
		}
		t.verdict, waiting = v, cmp.Or(waiting, w)
	}
	if s.wantsInstalled() {
		looked, err := s.readInstalled(r)
		if err != nil {
			return "", err
		}
		if !looked {
			waiting = cmp.Or(waiting, "Waiting for Crossplane to look for the extension")
		}
	}
	if !s.needsReport() {
		return waiting, nil
	}
	need := requireReport(s.owner)
	r.Require(need)
	found, looked, err := compose.Required[tailnetv1alpha1.GatewayReport](r, need)
	if err != nil {
		return "", err
	}
	if !looked {
		waiting = cmp.Or(waiting, "Waiting for Crossplane to read the GatewayReport")
	}
	if len(found) > 0 && found[0].Spec.Gateway == s.owner.Name {
		s.report = &found[0].Spec
	}
	return waiting, nil
}

// plan what is wanted, beside what is there.
func (s *share) plan(r *compose.Run) error {
	for _, p := range s.proxies {
		if err := p.observe(r); err != nil {
			return err
		}
	}
	if err := s.observeExtension(r); err != nil {
		return err
	}
	observed, err := observedServices(r)
	if err != nil {
		return err
	}
	for _, t := range s.tailnets {
		t.shared, t.mistake = s.shareListeners(t.Listeners)
	}
	s.planServices(observed)
	return s.planResolvers(r)
}

// conditionTypes of this share. Those of what is not asked for are left out.
func (s *share) conditionTypes() []xpv2.ConditionType {
	out := []xpv2.ConditionType{meta.TypeGatewayValid}
	if len(s.tailnets) > 0 {
		out = append(out, meta.TypeTailnetsValid)
	}
	if len(s.proxies) > 0 {
		out = append(out, meta.TypeEndpointsReady)
	}
	if s.sharing() == gatewayv1alpha1.RouteSharingGateway {
		out = append(out, meta.TypeGatewayVIPReady)
	}
	if s.ingress() {
		out = append(out, meta.TypeServicesReady)
	}
	if s.generates() {
		out = append(out, meta.TypeRoutesReady)
	}
	if s.exposes() {
		out = append(out, meta.TypeDiscoveryPrivate)
	}
	if s.resolves() {
		out = append(out, meta.TypeSplitDNSReady)
	}
	if s.wantsInstalled() || s.xr.Spec.ExtensionServer != nil {
		out = append(out, meta.TypeExtensionServerReady)
	}
	return out
}
