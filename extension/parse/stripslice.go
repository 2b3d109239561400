// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// stripEndpointSlice keeps only the address, the zone and the conditions of each endpoint. A cluster has
// more endpoints than all other objects that the extension reads, and names of pods and nodes are most of
// each. Endpoints share what is equal.
func stripEndpointSlice(o *discoveryv1.EndpointSlice) {
	addresses, zones := make([]string, 0, len(o.Endpoints)), map[string]*string{}
	// A decoder allocates more than it needs.
	all := make([]discoveryv1.Endpoint, 0, len(o.Endpoints))
	for _, e := range o.Endpoints {
		retained := discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{
			Ready: shared(e.Conditions.Ready), Serving: shared(e.Conditions.Serving), Terminating: shared(e.Conditions.Terminating),
		}}
		if len(e.Addresses) > 0 {
			// Only the first is used (discovery/v1 Endpoint).
			addresses = append(addresses, e.Addresses[0])
			retained.Addresses = addresses[len(addresses)-1 : len(addresses) : len(addresses)]
		}
		if e.Zone != nil {
			if zones[*e.Zone] == nil {
				zones[*e.Zone] = e.Zone
			}
			retained.Zone = zones[*e.Zone]
		}
		all = append(all, retained)
	}
	o.Endpoints = all
}

// conditions are the values of all conditions.
var conditions = map[bool]*bool{false: ptr.To(false), true: ptr.To(true)}

// shared returns a pointer that all endpoints share. Objects of a cache are not written to.
func shared(b *bool) *bool {
	if b == nil {
		return nil
	}
	return conditions[*b]
}

// stripService removes the fields of a Service that decide only how nodes forward connections.
func stripService(o *corev1.Service) {
	spec := o.Spec
	o.Spec = corev1.ServiceSpec{
		Type: spec.Type, ClusterIP: spec.ClusterIP, ClusterIPs: spec.ClusterIPs, IPFamilies: spec.IPFamilies,
		Selector: spec.Selector, TrafficDistribution: spec.TrafficDistribution, Ports: spec.Ports,
	}
	for i, p := range spec.Ports {
		o.Spec.Ports[i] = corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port}
	}
	o.Status = corev1.ServiceStatus{}
}
