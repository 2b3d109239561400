// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// maxListed is how many routes the status lists.
const maxListed = 256

// status returns the status of the TailscaleGateway.
func status(gp *gatewayPlan) gatewayv1alpha1.TailscaleGatewayStatus {
	out := gatewayv1alpha1.TailscaleGatewayStatus{Gateway: gp.gateway.Found, ExtensionServerStatus: extensionServerStatus(gp)}
	if gp.gateway.Open && gp.gateway.Ref.Name != "" {
		out.GatewayRef = &gatewayv1alpha1.FoundGateway{Name: gp.gateway.Ref.Name}
	}
	if len(gp.tailnets.Tailnets) == 0 {
		return out
	}
	out.Services = gp.services.Status()
	for _, t := range gp.tailnets.Tailnets {
		out.TailnetStatus = append(out.TailnetStatus, t.Status())
	}
	for _, z := range gp.zones.Zones {
		i := slices.Index(gp.tailnets.Tailnets, z.Tailnet)
		out.TailnetStatus[i].SplitDNS = z.Status()
	}
	out.DependencyStatus = dependencies(gp)
	if gp.report == nil {
		return out
	}
	if gp.generates() {
		out.GeneratedRouteCount, out.GeneratedRoutes = generatedRoutes(gp)
	}
	return out
}

// dependencies returns the Gateway and the tailnets by kind and name, each once.
func dependencies(gp *gatewayPlan) []gatewayv1alpha1.DependencyStatus {
	valid := gp.gateway.Valid()
	g := gatewayv1alpha1.DependencyStatus{
		Kind: gp.gateway.Ref.Kind, Namespace: gp.gateway.Ref.Namespace, Name: gp.gateway.Ref.Name,
		Ready: valid.Status == compose.True,
	}
	if !g.Ready {
		g.Message = valid.Message
	}
	var out []gatewayv1alpha1.DependencyStatus
	if g.Name != "" {
		out = append(out, g)
	}
	for _, t := range gp.tailnets.Tailnets {
		d := gatewayv1alpha1.DependencyStatus{Kind: gatewayv1alpha1.TailscaleTailnetKind, Name: t.Ref, Ready: t.Verdict.Accepted}
		if !d.Ready {
			d.Message = t.Verdict.Message
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b gatewayv1alpha1.DependencyStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(out)
}

// extensionServerStatus returns the state of the extension, or nil if it is unknown.
func extensionServerStatus(gp *gatewayPlan) *gatewayv1alpha1.ExtensionServerStatus {
	if gp.extension.Extension == nil && gp.report == nil && len(gp.installed) == 0 {
		return nil
	}
	out := &gatewayv1alpha1.ExtensionServerStatus{}
	if e := gp.extension.Extension; e != nil {
		out.Address, out.ReadyReplicas = e.Address(), ptr.To(e.ReadyReplicas())
	}
	for i := range gp.installed {
		out.ReadyReplicas = ptr.To(ptr.Deref(out.ReadyReplicas, 0) + readyPods(&gp.installed[i]))
	}
	if gp.report == nil {
		return out
	}
	out.Version = gp.report.Extension.Version
	if h := gp.report.Extension.Hooks; h != nil {
		out.HookCallMetrics = &gatewayv1alpha1.HookCallMetrics{Total: h.Total, Successful: h.Total - h.Failed, Failed: h.Failed, LastCall: h.LastCall}
	}
	return out
}

// generatedRoutes returns the number of generated routes, and the routes with the worst states
// first. Those that the report omits are accepted.
func generatedRoutes(gp *gatewayPlan) (*int32, []gatewayv1alpha1.GeneratedRoute) {
	count := routes.Omitted(gp.report).GeneratedRoutes
	var out []gatewayv1alpha1.GeneratedRoute
	for _, state := range []tailnetv1alpha1.GeneratedRouteState{
		tailnetv1alpha1.GeneratedRouteConflict, tailnetv1alpha1.GeneratedRouteRefused,
		tailnetv1alpha1.GeneratedRoutePending, tailnetv1alpha1.GeneratedRouteAccepted,
	} {
		for _, g := range routes.Generated(gp.report, state) {
			if g.Name != "" {
				count++
			}
			out = append(out, gatewayv1alpha1.GeneratedRoute{
				Kind: g.Kind, Namespace: g.Namespace, Name: g.Name, Tailnet: g.Tailnet, Direction: string(g.Direction), Service: g.Service,
				Hostname: g.Hostname, PathPrefix: g.PathPrefix, State: string(g.State), Message: g.Message,
			})
		}
	}
	return &count, out[:min(len(out), maxListed)]
}
