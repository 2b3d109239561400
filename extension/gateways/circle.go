// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A neighbourhood is what of all namespaces may lead a generated route back to its Gateway.
// It is empty where nothing that a TailscaleGateway discovers leads to a Gateway.
type neighbourhood struct {
	// gateways are all TailscaleGateways.
	gateways []*gatewayv1alpha1.TailscaleGateway

	// services have a TailscaleGateway as a backend.
	services []*gatewayv1alpha1.TailscaleServices

	// endpoints discover for TailscaleGateways.
	endpoints []*gatewayv1alpha1.TailscaleEndpoints
}

// dnsNameOf a Tailscale Service or a device, as it is compared.
func dnsNameOf(fqdn string) string { return strings.ToLower(strings.TrimSuffix(fqdn, ".")) }

// fronts are the Gateways that Tailscale Services lead to, by DNS name: that says the
// tailnet, too, whatever it is called here.
func (n neighbourhood) fronts() map[string][]types.NamespacedName {
	gateways := map[types.NamespacedName]types.NamespacedName{}
	for _, g := range n.gateways {
		gateways[client.ObjectKeyFromObject(g)] = gatewayOf(g)
	}
	out := map[string][]types.NamespacedName{}
	for _, s := range n.services {
		if s.Status.VIPServiceStatus == nil || s.Status.VIPServiceStatus.DNSName == "" {
			continue
		}
		name := dnsNameOf(s.Status.VIPServiceStatus.DNSName)
		for _, b := range s.Spec.Backends {
			to, ok := gateways[types.NamespacedName{Namespace: s.Namespace, Name: b.Name}]
			if ok && b.Kind == gatewayv1alpha1.BackendKindGateway && !slices.Contains(out[name], to) {
				out[name] = append(out[name], to)
			}
		}
	}
	for _, to := range out {
		slices.SortFunc(to, compareNames)
	}
	return out
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// A way leads from one Gateway to another one by routes that are generated for a
// TailscaleGateway.
type way struct {
	of       types.NamespacedName
	from, to types.NamespacedName
}

// ways of all TailscaleGateways, those of the ones that come first before the others.
func (in input) ways(fronts map[string][]types.NamespacedName) []way {
	endpoints := map[types.NamespacedName][]*gatewayv1alpha1.TailscaleEndpoints{}
	for _, e := range in.around.endpoints {
		endpoints[ownerByLabels(e)] = append(endpoints[ownerByLabels(e)], e)
	}
	var out []way
	for _, g := range slices.SortedFunc(slices.Values(in.around.gateways), comparePeers) {
		of, from := client.ObjectKeyFromObject(g), gatewayOf(g)
		if !in.grants.PermitGateway(g.Namespace, from) {
			continue
		}
		to := map[types.NamespacedName]bool{}
		for _, t := range g.Spec.Tailnets {
			if !generatesEgress(t) {
				continue
			}
			for _, e := range endpoints[of] {
				if e.Labels[meta.LabelGatewayTailnet] != t.Name {
					continue
				}
				for _, d := range e.Status.DiscoveredEndpoints {
					for _, n := range fronts[dnsNameOf(d.TailscaleFQDN)] {
						to[n] = true
					}
				}
			}
		}
		for _, n := range slices.SortedFunc(maps.Keys(to), compareNames) {
			out = append(out, way{of: of, from: from, to: n})
		}
	}
	return out
}

// generatesEgress reports whether routes are generated to what is found in a tailnet.
func generatesEgress(t gatewayv1alpha1.GatewayTailnet) bool {
	d := t.ServiceDiscovery
	return t.RouteGeneration.Egress != nil && d != nil && ptr.Deref(d.Enabled, true) && d.Narrowed()
}

// circular are the Tailscale Services that lead back to the TailscaleGateway's Gateway, by
// DNS name, each with the Gateway that it leads to. Of ways that close a circle together
// the one that comes last is refused, so that all TailscaleGateways agree on which.
func (in input) circular() map[string]types.NamespacedName {
	fronts := in.around.fronts()
	if len(fronts) == 0 {
		return nil
	}
	taken := map[types.NamespacedName][]types.NamespacedName{}
	refused := map[types.NamespacedName]bool{}
	me, mine := client.ObjectKeyFromObject(in.object), gatewayOf(in.object)
	for _, w := range in.ways(fronts) {
		switch {
		case !leads(taken, w.to, w.from):
			taken[w.from] = append(taken[w.from], w.to)
		case w.of == me:
			refused[w.to] = true
		}
	}
	out := map[string]types.NamespacedName{}
	for name, of := range fronts {
		for _, to := range of {
			if to == mine || refused[to] {
				out[name] = to
				break
			}
		}
	}
	return out
}

// leads reports whether ways lead from one Gateway to another, which may be itself.
func leads(ways map[types.NamespacedName][]types.NamespacedName, from, to types.NamespacedName) bool {
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
			next = append(next, ways[at]...)
		}
	}
	return false
}

// circle says why a service gets no route that leads to a Gateway.
func circle(to, own types.NamespacedName) string {
	const instead = "; leave it out by excludePatterns of serviceDiscovery"
	if to == own {
		return "It leads to Gateway " + to.String() + " itself, which would be a circle" + instead
	}
	return "It leads to Gateway " + to.String() + ", from which generated routes lead back to Gateway " + own.String() + instead + ", here or there"
}
