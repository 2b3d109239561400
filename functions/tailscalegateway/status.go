// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// maxListed is how many services, and how many routes, the status lists.
const maxListed = 256

// maxListedPorts is how many ports of a service it lists.
const maxListedPorts = 16

// status returns the status of the TailscaleGateway.
func (gp *gatewayPlan) status() gatewayv1alpha1.TailscaleGatewayStatus {
	out := gatewayv1alpha1.TailscaleGatewayStatus{Gateway: gp.found, ExtensionServerStatus: extensionServerStatus(gp)}
	if gp.gateway.open && gp.gateway.ref.Name != "" {
		out.GatewayRef = &gatewayv1alpha1.FoundGateway{Name: gp.gateway.ref.Name}
	}
	if len(gp.tailnets) == 0 {
		return out
	}
	for _, v := range gp.services {
		out.Services = append(out.Services, serviceInfo(gp, v))
	}
	out.Services = out.Services[:min(len(out.Services), maxListed)]
	for _, t := range gp.tailnets {
		out.TailnetStatus = append(out.TailnetStatus, t.status())
	}
	for _, v := range gp.zones {
		i := slices.Index(gp.tailnets, v.tailnet)
		out.TailnetStatus[i].SplitDNS = v.status()
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

// serviceInfo returns the status of a service.
func serviceInfo(gp *gatewayPlan, v *service) gatewayv1alpha1.GatewayServiceInfo {
	out := gatewayv1alpha1.GatewayServiceInfo{Name: childName(gp, v), Tailnet: v.tailnet.Name, Target: v.target, Message: v.omitted}
	if v.omitted != "" {
		return out
	}
	out.ServiceName, out.Ready, out.Message = v.vip, v.hosted(), v.problem()
	if !out.Ready {
		out.Message = cmp.Or(out.Message, "No proxy hosts it yet; its TailscaleServices says why")
	}
	if v.observed == nil || !out.Ready && !gp.addressReported(out.Name) {
		return out
	}
	if vip := v.observed.Status.VIPServiceStatus; vip != nil {
		out.DNSName, out.Addresses = vip.DNSName, vip.Addresses
	}
	out.Ports = v.portsInfo()
	if c := v.observed.Status.GetCondition(meta.TypeVIPServiceReady); !c.LastTransitionTime.IsZero() {
		out.LastUpdated = c.LastTransitionTime.DeepCopy()
	}
	return out
}

// portsInfo returns the ports of an existing service, in order.
func (v *service) portsInfo() []gatewayv1alpha1.GatewayServicePort {
	var out []gatewayv1alpha1.GatewayServicePort
	for _, b := range v.observed.Spec.Backends {
		out = append(out, gatewayv1alpha1.GatewayServicePort{
			Port: ptr.Deref(b.VIPPort, b.Port), TargetPort: b.Port,
			Protocol: string(cmp.Or(b.Protocol, gatewayv1alpha1.BackendProtocolTCP)),
		})
	}
	slices.SortFunc(out, func(a, b gatewayv1alpha1.GatewayServicePort) int { return cmp.Compare(a.Port, b.Port) })
	return out[:min(len(out), maxListedPorts)]
}

// addressReported reports whether the status has the address of a service. A new address is added
// together with the report that the service is hosted, because each is a write of the composite.
func (gp *gatewayPlan) addressReported(name string) bool {
	return slices.ContainsFunc(gp.reported, func(i gatewayv1alpha1.GatewayServiceInfo) bool {
		return i.Name == name && len(i.Addresses) > 0
	})
}

// status returns the status of a tailnet.
func (t *tailnet) status() gatewayv1alpha1.GatewayTailnetStatus {
	out := gatewayv1alpha1.GatewayTailnetStatus{Name: t.Name, Ready: t.verdict.Accepted}
	if !t.verdict.Accepted {
		out.Message = t.verdict.Message
	}
	for _, p := range []*proxies{t.ingress, t.egress} {
		if p == nil {
			continue
		}
		out.Endpoints = append(out.Endpoints, p.name)
		if p.complete() {
			continue
		}
		out.Ready = false
		out.Message = cmp.Or(out.Message, p.endpoints().Problem(), "Waiting for proxies; see its TailscaleEndpoints")
	}
	if t.egress == nil || t.egress.observed == nil {
		return out
	}
	found := t.egress.observed.Status
	out.Message = cmp.Or(out.Message, t.selectsAll())
	switch c := found.GetCondition(meta.TypeDiscoverySuccessful); {
	case c.Status == corev1.ConditionFalse:
		out.Message = cmp.Or(out.Message, c.Message)
	case c.Reason == meta.ReasonTooManyDiscovered:
		out.Message = cmp.Or(out.Message, "More devices and services match than can be listed; narrow serviceDiscovery")
	}
	out.DiscoveredServices = ptr.To(int32(len(found.DiscoveredEndpoints)))
	out.LastSync = found.LastSync
	return out
}

// dependencies returns the Gateway and the tailnets by kind and name, each once.
func dependencies(gp *gatewayPlan) []gatewayv1alpha1.DependencyStatus {
	valid := gp.gateway.valid()
	g := gatewayv1alpha1.DependencyStatus{
		Kind: gp.gateway.ref.Kind, Namespace: gp.gateway.ref.Namespace, Name: gp.gateway.ref.Name,
		Ready: valid.Status == compose.True,
	}
	if !g.Ready {
		g.Message = valid.Message
	}
	var out []gatewayv1alpha1.DependencyStatus
	if g.Name != "" {
		out = append(out, g)
	}
	for _, t := range gp.tailnets {
		d := gatewayv1alpha1.DependencyStatus{Kind: gatewayv1alpha1.TailscaleTailnetKind, Name: t.ref, Ready: t.verdict.Accepted}
		if !d.Ready {
			d.Message = t.verdict.Message
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
	if gp.extension == nil && gp.report == nil && len(gp.installed) == 0 {
		return nil
	}
	out := &gatewayv1alpha1.ExtensionServerStatus{}
	if e := gp.extension; e != nil {
		out.Address, out.ReadyReplicas = e.address(), ptr.To(e.readyReplicas())
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
	count := gp.omitted().GeneratedRoutes
	var out []gatewayv1alpha1.GeneratedRoute
	for _, state := range []tailnetv1alpha1.GeneratedRouteState{
		tailnetv1alpha1.GeneratedRouteConflict, tailnetv1alpha1.GeneratedRouteRefused,
		tailnetv1alpha1.GeneratedRoutePending, tailnetv1alpha1.GeneratedRouteAccepted,
	} {
		for _, g := range gp.routesIn(state) {
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

// routesIn returns the generated routes in a state, in the order of the report.
func (gp *gatewayPlan) routesIn(state tailnetv1alpha1.GeneratedRouteState) []tailnetv1alpha1.ReportedGeneratedRoute {
	var out []tailnetv1alpha1.ReportedGeneratedRoute
	for _, g := range gp.report.GeneratedRoutes {
		if g.State == state {
			out = append(out, g)
		}
	}
	return out
}
