// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// maxListed is how many services the status lists, and maxListedPorts how many ports of each.
const maxListed, maxListedPorts = 256, 16

// Status returns the services for the status.
func (p Plan) Status() []gatewayv1alpha1.GatewayServiceInfo {
	var out []gatewayv1alpha1.GatewayServiceInfo
	for _, v := range p.Services {
		out = append(out, p.info(v))
	}
	return out[:min(len(out), maxListed)]
}

// info returns the status of a service.
func (p Plan) info(v *Service) gatewayv1alpha1.GatewayServiceInfo {
	out := gatewayv1alpha1.GatewayServiceInfo{Name: v.Name, Tailnet: v.Tailnet.Name, Target: v.Target, Message: v.omitted}
	if v.omitted != "" {
		return out
	}
	out.ServiceName, out.Ready, out.Message = v.vip, v.hosted(), v.problem()
	if !out.Ready {
		out.Message = cmp.Or(out.Message, "No proxy hosts it yet; its TailscaleServices says why")
	}
	if v.Observed == nil || !out.Ready && !p.addressReported(out.Name) {
		return out
	}
	if vip := v.Observed.Status.VIPServiceStatus; vip != nil {
		out.DNSName, out.Addresses = vip.DNSName, vip.Addresses
	}
	out.Ports = v.portsInfo()
	if c := v.Observed.Status.GetCondition(meta.TypeVIPServiceReady); !c.LastTransitionTime.IsZero() {
		out.LastUpdated = c.LastTransitionTime.DeepCopy()
	}
	return out
}

// portsInfo returns the ports of an existing service, in order.
func (v *Service) portsInfo() []gatewayv1alpha1.GatewayServicePort {
	var out []gatewayv1alpha1.GatewayServicePort
	for _, b := range v.Observed.Spec.Backends {
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
func (p Plan) addressReported(name string) bool {
	return slices.ContainsFunc(p.Reported, func(i gatewayv1alpha1.GatewayServiceInfo) bool {
		return i.Name == name && len(i.Addresses) > 0
	})
}
