// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// setPolicyOptions sets which clients may connect to the pods. Targets whose endpoint names clients
// have a separate rule; the others share one.
func setPolicyOptions(o *proxy.Options, p *endpointsPlan) {
	policy := ptr.Deref(p.spec.Proxy.NetworkPolicy, gatewayv1alpha1.ProxyNetworkPolicy{})
	o.NetworkPolicy.Metrics = policy.Metrics
	if o.Pods.Direction != tailnetv1alpha1.DirectionEgress {
		return
	}
	common := proxy.PolicyTarget{Clients: policy.Clients}
	if len(common.Clients) == 0 {
		common.Clients = proxy.DefaultClients(p.envoyGateway)
	}
	own := map[string]proxy.PolicyTarget{}
	for _, t := range p.forwarding.Targets.All {
		if t.ProxyPort == 0 {
			continue
		}
		port := proxy.PolicyPort{Port: t.ProxyPort, Protocol: t.Protocol}
		if len(t.Clients) == 0 {
			common.Ports = append(common.Ports, port)
			continue
		}
		own[t.Endpoint] = proxy.PolicyTarget{Clients: t.Clients, Ports: append(own[t.Endpoint].Ports, port)}
	}
	o.NetworkPolicy.Targets = append(o.NetworkPolicy.Targets, common)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		o.NetworkPolicy.Targets = append(o.NetworkPolicy.Targets, own[name])
	}
}

// wantsNetworkPolicy reports whether the proxies have a NetworkPolicy.
func wantsNetworkPolicy(p gatewayv1alpha1.Proxy) bool {
	return p.NetworkPolicy == nil || ptr.Deref(p.NetworkPolicy.Enabled, true)
}

// wantsPodMonitor reports whether the proxies have a PodMonitor.
func wantsPodMonitor(p gatewayv1alpha1.Proxy) bool {
	return p.Metrics != nil && ptr.Deref(p.Metrics.Enabled, true) && p.Metrics.PodMonitor != nil
}

// labelsOf returns labels as plain strings.
func labelsOf(labels map[string]tailnetv1alpha1.LabelValue) map[string]string {
	out := make(map[string]string, len(labels))
	for k, v := range labels {
		out[k] = string(v)
	}
	return out
}
