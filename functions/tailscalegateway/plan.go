// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/dns"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/extensionpods"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/services"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// A gatewayPlan is what follows from complete facts about a TailscaleGateway: plans, each of which is a
// function of the facts and of the plans before it.
type gatewayPlan struct {
	facts

	tailnets  tailnets.Plan
	extension extensionpods.Plan
	services  services.Plan
	zones     dns.Plan
}

// newGatewayPlan returns the plans.
func newGatewayPlan(f facts) *gatewayPlan {
	gp := &gatewayPlan{facts: f}
	gp.tailnets = tailnets.New(tailnets.Facts{
		Owner: f.owner, Spec: f.spec.Tailnets, Sharing: f.sharing(), Gateway: f.gateway,
		Verdicts: f.verdicts, Observed: f.observed.proxies,
	})
	gp.extension = extensionpods.New(extensionpods.Facts{
		Owner: f.owner, Spec: f.spec.ExtensionServer, Gateway: f.gateway, Verdicts: f.verdicts,
		InstalledImage: f.extensionImage,
		Deployment:     f.observed.deployment, EDS: f.observed.eds,
	})
	gp.services = services.New(services.Facts{
		Owner: f.owner, Sharing: f.sharing(), Publish: f.publishing(), Drain: f.spec.Drain, Gateway: f.gateway,
		Report: f.report, Grants: f.grants, Tailnets: gp.tailnets.Tailnets,
		Observed: f.observed.services, Reported: f.reported,
	})
	gp.zones = dns.New(dns.Facts{
		Owner: f.owner, Step: f.step, Gateway: f.gateway, Report: f.report,
		Tailnets: gp.tailnets.Tailnets, Services: gp.services.Services, ConfigMaps: f.observed.zones, Splits: f.observed.splits,
	})
	return gp
}

// plan returns the desired state of the object and its children. It depends only on the facts.
func plan(f facts) (compose.Plan, error) {
	if f.waiting != "" {
		p := compose.Wait(f.waiting, conditionTypes(f)...)
		p.NotReady = true
		return p, nil
	}
	gp := newGatewayPlan(f)
	p := compose.Plan{Conditions: conditions(gp), Status: status(gp), NotReady: problem(gp)}
	if f.gateway.Ambiguous() {
		// Children of an earlier run stay.
		p.KeepExisting = true
		return p, nil
	}
	zones, err := gp.zones.Children()
	p.Add(gp.tailnets.Children(), gp.services.Children(), zones, gp.extension.Children())
	return p, err
}
