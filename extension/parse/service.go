// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// A Service is the part of a Kubernetes Service that the extension needs.
type Service struct {
	External bool

	// Selects reports that Kubernetes writes the Service's EndpointSlices, by a selector of pods.
	Selects bool

	// PreferZone is the number of endpoints, of the Service and of a zone, from which requests stay in
	// Envoy's zone. Zero means that they need not.
	PreferZone uint32

	Family discoveryv1.AddressType
	Ports  []ServicePort
}

// Thresholds of Envoy Gateway for its Services (processPreferLocalZone in its
// internal/gatewayapi/route.go). The second is that of Kubernetes for topology aware routing.
const (
	distributedFrom = 1
	topologyFrom    = 3
)

// preferZone returns the PreferZone of a Service. Each traffic distribution prefers endpoints that are
// near the client; a node is no place that Envoy knows.
func preferZone(o *corev1.Service) uint32 {
	if o.Spec.TrafficDistribution != nil {
		return distributedFrom
	}
	if mode := o.Annotations[corev1.AnnotationTopologyMode]; mode == "Auto" || mode == "auto" {
		return topologyFrom
	}
	return 0
}

// A ServicePort is a port of a Service or EndpointSlice. A port of both has the same name.
type ServicePort struct {
	Name     string
	Port     int32
	Protocol corev1.Protocol
	H2c      bool
}

// appProtocolH2C is HTTP/2 without TLS (KEP-3726).
const appProtocolH2C = "kubernetes.io/h2c"

// ParseService parses a Service.
func ParseService(o *corev1.Service) *Service {
	s := &Service{External: o.Spec.Type == corev1.ServiceTypeExternalName, Family: discoveryv1.AddressTypeIPv4}
	s.PreferZone = preferZone(o)
	s.Selects = len(o.Spec.Selector) > 0 && !s.External
	if len(o.Spec.IPFamilies) > 0 {
		s.Family = discoveryv1.AddressType(o.Spec.IPFamilies[0])
	}
	for _, p := range o.Spec.Ports {
		s.Ports = append(s.Ports, ServicePort{
			Name:     p.Name,
			Port:     p.Port,
			Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP),
			H2c:      ptr.Deref(p.AppProtocol, "") == appProtocolH2C,
		})
	}
	return s
}

// An EndpointSlice is the part of an EndpointSlice object that the extension needs.
type EndpointSlice struct {
	Family discoveryv1.AddressType
	Ports  []ServicePort

	// Endpoints are sorted by address.
	Endpoints []Endpoint
}

// An Endpoint is an endpoint of an EndpointSlice.
type Endpoint struct {
	Address, Zone               string
	Ready, Serving, Terminating bool
}

// ParseEndpointSlice parses an EndpointSlice, puts addresses into canonical form, sorts them, and drops those
// that are refused or that no program but the API server can parse: it stores IPv4 addresses with
// leading zeros, such as 010.0.0.6, for compatibility (IsValidIPForLegacyField in
// k8s.io/apimachinery/pkg/util/validation).
func ParseEndpointSlice(o *discoveryv1.EndpointSlice, refused func(netip.Addr) bool) *EndpointSlice {
	s := &EndpointSlice{Family: o.AddressType, Endpoints: make([]Endpoint, 0, len(o.Endpoints))}
	for _, p := range o.Ports {
		if p.Port != nil {
			s.Ports = append(s.Ports, ServicePort{Name: ptr.Deref(p.Name, ""), Port: *p.Port, Protocol: ptr.Deref(p.Protocol, corev1.ProtocolTCP)})
		}
	}
	for _, e := range o.Endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		// Only the first is used (discovery/v1 Endpoint).
		a, err := netip.ParseAddr(e.Addresses[0])
		if err != nil || refused(a) {
			continue
		}
		// A canonical address shares the object's text.
		address := e.Addresses[0]
		if text := a.String(); text != address {
			address = text
		}
		ready := ptr.Deref(e.Conditions.Ready, true)
		s.Endpoints = append(s.Endpoints, Endpoint{
			Address:     address,
			Zone:        ptr.Deref(e.Zone, ""),
			Ready:       ready,
			Serving:     ptr.Deref(e.Conditions.Serving, ready),
			Terminating: ptr.Deref(e.Conditions.Terminating, false),
		})
	}
	slices.SortStableFunc(s.Endpoints, func(a, b Endpoint) int { return cmp.Compare(a.Address, b.Address) })
	return s
}
