// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// A zonedEndpoint is an endpoint with its zone.
type zonedEndpoint struct {
	zone string
	ir.Endpoint
}

// serviceEndpoints returns the endpoints of a Service's port, or the problem.
func (v *view) serviceEndpoints(n types.NamespacedName, port int32, protocol corev1.Protocol) (out []zonedEndpoint, h2c bool, problem string) {
	s := v.kubeServices[v.lookup(refService, n)]
	if s == nil {
		return nil, false, fmt.Sprintf("Service %s does not exist; make it, or name another", n)
	}
	if s.External {
		return nil, false, fmt.Sprintf("Service %s is of type ExternalName, which has no endpoints; name the host itself, as a backend of kind External", n)
	}
	i := slices.IndexFunc(s.Ports, func(p parse.ServicePort) bool { return p.Port == port && p.Protocol == protocol })
	if i < 0 {
		return nil, false, fmt.Sprintf("Service %s has no port %d of %s; add it, or name another", n, port, protocol)
	}
	wanted := s.Ports[i]
	out = v.podsOf(n, s.Family, func(sl *parse.EndpointSlice) int32 {
		if i := slices.IndexFunc(sl.Ports, func(p parse.ServicePort) bool { return p.Name == wanted.Name && p.Protocol == protocol }); i >= 0 {
			return sl.Ports[i].Port
		}
		return 0
	}, func(p parse.Endpoint) bool { return p.Ready })
	if len(out) == 0 {
		problem = fmt.Sprintf("Service %s has no pod that is ready; look at its pods", n)
	}
	return out, wanted.H2c, problem
}

// proxies returns the pods of a set of proxies at one of their ports. The governing Service
// also publishes pods that are not ready.
func (v *view) proxies(service types.NamespacedName, port int32) []zonedEndpoint {
	family := discoveryv1.AddressTypeIPv4
	if s := v.kubeServices[v.lookup(refService, service)]; s != nil {
		family = s.Family
	}
	return v.podsOf(service, family, func(*parse.EndpointSlice) int32 { return port }, func(p parse.Endpoint) bool { return p.Serving && !p.Terminating })
}

// podsOf returns the ready and the draining pods of a Service by address. It uses the slices
// of the second address family only if the Service has no pod in the first.
func (v *view) podsOf(n types.NamespacedName, family discoveryv1.AddressType, port func(*parse.EndpointSlice) int32, ready func(parse.Endpoint) bool) []zonedEndpoint {
	all := v.slices.sorted(v.lookup(refSlices, n))
	second := discoveryv1.AddressTypeIPv6
	if family == second {
		second = discoveryv1.AddressTypeIPv4
	}
	for _, f := range []discoveryv1.AddressType{family, second} {
		byAddress := map[string]zonedEndpoint{}
		for _, s := range all {
			p := port(s)
			if s.Family != f || p == 0 {
				continue
			}
			for _, endpoint := range s.Endpoints {
				e := zonedEndpoint{zone: endpoint.Zone, Endpoint: ir.Endpoint{Address: endpoint.Address, Port: p, Weight: 1}}
				switch {
				case ready(endpoint):
				case endpoint.Terminating && endpoint.Serving:
					e.Health = ir.Draining
				default:
					continue
				}
				// A pod may be in two slices while one replaces the other.
				if old, ok := byAddress[endpoint.Address]; !ok || old.Health == ir.Draining {
					byAddress[endpoint.Address] = e
				}
			}
		}
		if len(byAddress) > 0 {
			return sortedZoned(byAddress)
		}
	}
	return nil
}

// sortedZoned returns the endpoints sorted by address.
func sortedZoned(byAddress map[string]zonedEndpoint) []zonedEndpoint {
	out := make([]zonedEndpoint, 0, len(byAddress))
	for _, e := range byAddress {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b zonedEndpoint) int { return cmp.Compare(a.Address, b.Address) })
	return out
}
