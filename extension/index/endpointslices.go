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

// A servedPort is a port of a Service's pods.
type servedPort struct {
	service types.NamespacedName
	family  discoveryv1.AddressType

	// name and protocol are those of the port in EndpointSlices.
	name     string
	protocol corev1.Protocol

	// proxied reports that the pods are proxies. Their port is number, and EndpointSlices have no name of it.
	proxied bool
	number  int32
}

// in returns the port of the pods of a slice. It is 0 if they have none.
func (p servedPort) in(s *parse.EndpointSlice) int32 {
	if p.proxied {
		return p.number
	}
	if i := slices.IndexFunc(s.Ports, func(o parse.ServicePort) bool { return o.Name == p.name && o.Protocol == p.protocol }); i >= 0 {
		return s.Ports[i].Port
	}
	return 0
}

// readies reports whether a pod gets new requests. The governing Service of proxies also publishes pods that
// are not ready.
func (p servedPort) readies(e parse.Endpoint) bool {
	if p.proxied {
		return e.Serving && !e.Terminating
	}
	return e.Ready
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
	out = v.podsOf(servedPort{service: n, family: s.Family, name: wanted.Name, protocol: protocol})
	if len(out) == 0 {
		problem = fmt.Sprintf("Service %s has no pod that is ready; look at its pods", n)
	}
	return out, wanted.H2c, problem
}

// proxies returns the pods of a set of proxies at one of their ports.
func (v *view) proxies(service types.NamespacedName, port int32) []zonedEndpoint {
	family := discoveryv1.AddressTypeIPv4
	if s := v.kubeServices[v.lookup(refService, service)]; s != nil {
		family = s.Family
	}
	return v.podsOf(servedPort{service: service, family: family, number: port, proxied: true})
}

// podsOf returns the ready and the draining pods of a Service's port by address. All targets of an edit share
// them: those of a tenant may name one Service a thousand times.
func (v *view) podsOf(p servedPort) []zonedEndpoint {
	n := v.lookup(refSlices, p.service)
	if _, ok := v.pods[p]; !ok {
		v.pods[p] = findPods(p, v.slices.sorted(n))
	}
	return v.pods[p]
}

// findPods returns the ready and the draining pods of slices, sorted by address. It uses the slices of the
// second address family only if the Service has no pod in the first.
func findPods(p servedPort, all []*parse.EndpointSlice) []zonedEndpoint {
	second := discoveryv1.AddressTypeIPv6
	if p.family == second {
		second = discoveryv1.AddressTypeIPv4
	}
	for _, f := range []discoveryv1.AddressType{p.family, second} {
		var out []zonedEndpoint
		for _, s := range all {
			port := p.in(s)
			if s.Family != f || port == 0 {
				continue
			}
			out = slices.Grow(out, len(s.Endpoints))
			for _, endpoint := range s.Endpoints {
				e := zonedEndpoint{zone: endpoint.Zone, Endpoint: ir.Endpoint{Address: endpoint.Address, Port: port, Weight: 1}}
				switch {
				case p.readies(endpoint):
				case endpoint.Terminating && endpoint.Serving:
					e.Health = ir.Draining
				default:
					continue
				}
				out = append(out, e)
			}
		}
		if len(out) > 0 {
			return uniquePods(out)
		}
	}
	return nil
}

// uniquePods sorts pods by address. A pod may be in two slices while one replaces the other: a ready state
// precedes a draining one, then the state of the first slice a later one.
func uniquePods(pods []zonedEndpoint) []zonedEndpoint {
	slices.SortStableFunc(pods, func(a, b zonedEndpoint) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Health, b.Health))
	})
	return slices.CompactFunc(pods, func(a, b zonedEndpoint) bool { return a.Address == b.Address })
}
