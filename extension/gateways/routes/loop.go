// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// DNSName returns the DNS name of a Tailscale Service or a device in a form for comparisons.
func DNSName(fqdn string) string { return strings.ToLower(strings.TrimSuffix(fqdn, ".")) }

// publishedGateways returns the Gateways that Tailscale Services lead to, by DNS name. A DNS name also
// identifies the tailnet, independent of its name in this cluster.
func (n Neighborhood) publishedGateways() map[string][]types.NamespacedName {
	gateways := map[types.NamespacedName]types.NamespacedName{}
	for _, g := range n.Gateways {
		gateways[client.ObjectKeyFromObject(g)] = g.GatewayName()
	}
	out := map[string][]types.NamespacedName{}
	for _, s := range n.Services {
		if s.Status.VIPServiceStatus == nil || s.Status.VIPServiceStatus.DNSName == "" {
			continue
		}
		name := DNSName(s.Status.VIPServiceStatus.DNSName)
		for _, b := range s.Spec.Backends {
			gateway, ok := gateways[types.NamespacedName{Namespace: s.Namespace, Name: b.Name}]
			if ok && b.Kind == gatewayv1alpha1.BackendKindGateway && !slices.Contains(out[name], gateway) {
				out[name] = append(out[name], gateway)
			}
		}
	}
	for _, targets := range out {
		slices.SortFunc(targets, ir.CompareNames)
	}
	return out
}

// A hop leads from one Gateway to another by routes that are generated for a TailscaleGateway.
type hop struct {
	owner    types.NamespacedName
	from, to types.NamespacedName
}

// hops returns the hops of all TailscaleGateways, in the order of precedence of the
// TailscaleGateways.
func (inputs Input) hops(published map[string][]types.NamespacedName) []hop {
	endpoints := map[types.NamespacedName][]*gatewayv1alpha1.TailscaleEndpoints{}
	for _, e := range inputs.Neighborhood.Endpoints {
		endpoints[Owner(e)] = append(endpoints[Owner(e)], e)
	}
	var out []hop
	for _, g := range slices.SortedFunc(slices.Values(inputs.Neighborhood.Gateways), comparePeers) {
		key, from := client.ObjectKeyFromObject(g), g.GatewayName()
		if !inputs.Grants.PermitGateway(g.Namespace, from) {
			continue
		}
		to := map[types.NamespacedName]bool{}
		for _, t := range g.Spec.Tailnets {
			if !generatesEgress(t) {
				continue
			}
			for _, e := range endpoints[key] {
				if e.Labels[meta.LabelGatewayTailnet] != t.Name {
					continue
				}
				for _, d := range e.Status.DiscoveredEndpoints {
					for _, n := range published[DNSName(d.TailscaleFQDN)] {
						to[n] = true
					}
				}
			}
		}
		for _, n := range slices.SortedFunc(maps.Keys(to), ir.CompareNames) {
			out = append(out, hop{owner: key, from: from, to: n})
		}
	}
	return out
}

// generatesEgress reports whether routes are generated to the discovered endpoints of a
// tailnet.
func generatesEgress(t gatewayv1alpha1.GatewayTailnet) bool {
	d := t.ServiceDiscovery
	return t.RouteGeneration.Egress != nil && d != nil && ptr.Deref(d.Enabled, true) && d.Narrowed()
}

// looping returns the Tailscale Services that lead back to the TailscaleGateway's Gateway, by
// DNS name, each with the Gateway that it leads to. The hop with the lowest precedence in a
// loop is refused, so that all TailscaleGateways agree.
func (inputs Input) looping() map[string]types.NamespacedName {
	published := inputs.Neighborhood.publishedGateways()
	if len(published) == 0 {
		return nil
	}
	hops := map[types.NamespacedName][]types.NamespacedName{}
	refused := map[types.NamespacedName]bool{}
	me, mine := client.ObjectKeyFromObject(inputs.Object), inputs.Object.GatewayName()
	for _, w := range inputs.hops(published) {
		switch {
		case !reachable(hops, w.to, w.from):
			hops[w.from] = append(hops[w.from], w.to)
		case w.owner == me:
			refused[w.to] = true
		}
	}
	out := map[string]types.NamespacedName{}
	for name, gateways := range published {
		for _, gateway := range gateways {
			if gateway == mine || refused[gateway] {
				out[name] = gateway
				break
			}
		}
	}
	return out
}

// reachable reports whether hops lead from one Gateway to another, which may be the same.
func reachable(hops map[types.NamespacedName][]types.NamespacedName, from, to types.NamespacedName) bool {
	seen := map[types.NamespacedName]bool{}
	next := []types.NamespacedName{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if at == to {
			return true
		}
		if !seen[at] {
			seen[at] = true
			next = append(next, hops[at]...)
		}
	}
	return false
}

// loopMessage explains why a service that leads to a Gateway gets no route.
func loopMessage(gateway, own types.NamespacedName) string {
	const remedy = "; exclude it with excludePatterns of serviceDiscovery"
	if gateway == own {
		return "It leads to Gateway " + gateway.String() + " itself, which would create a routing loop" + remedy
	}
	return "It leads to Gateway " + gateway.String() + ", from which generated routes lead back to Gateway " + own.String() + remedy + " of either TailscaleGateway"
}
