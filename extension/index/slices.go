// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// A kubeService is what is kept of a Service.
type kubeService struct {
	external bool
	family   discoveryv1.AddressType
	ports    []kubePort
}

// A kubePort is a port of a Service. Its name is that of the ports in its slices.
type kubePort struct {
	name     string
	port     int32
	protocol corev1.Protocol
	h2c      bool
}

// appProtocolH2C is HTTP/2 without TLS (KEP-3726).
const appProtocolH2C = "kubernetes.io/h2c"

func parseService(o *corev1.Service) *kubeService {
	s := &kubeService{external: o.Spec.Type == corev1.ServiceTypeExternalName, family: discoveryv1.AddressTypeIPv4}
	if len(o.Spec.IPFamilies) > 0 {
		s.family = discoveryv1.AddressType(o.Spec.IPFamilies[0])
	}
	for _, p := range o.Spec.Ports {
		s.ports = append(s.ports, kubePort{
			name:     p.Name,
			port:     p.Port,
			protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP),
			h2c:      ptr.Deref(p.AppProtocol, "") == appProtocolH2C,
		})
	}
	return s
}

// A slice is what is kept of an EndpointSlice.
type slice struct {
	family discoveryv1.AddressType
	ports  []kubePort
	pods   []pod
}

// A pod is one endpoint of a slice.
type pod struct {
	address, zone               string
	ready, serving, terminating bool
}

// parseSlice without addresses that nobody may connect to. The API server refuses most of
// them itself.
func parseSlice(o *discoveryv1.EndpointSlice, refused func(netip.Addr) bool) *slice {
	s := &slice{family: o.AddressType}
	for _, p := range o.Ports {
		if p.Port != nil {
			s.ports = append(s.ports, kubePort{name: ptr.Deref(p.Name, ""), port: *p.Port, protocol: ptr.Deref(p.Protocol, corev1.ProtocolTCP)})
		}
	}
	for _, e := range o.Endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		if a, err := netip.ParseAddr(e.Addresses[0]); err == nil && refused(a) {
			continue
		}
		ready := ptr.Deref(e.Conditions.Ready, true)
		s.pods = append(s.pods, pod{
			// The others are no more: they were never used (discovery/v1 Endpoint).
			address:     e.Addresses[0],
			zone:        ptr.Deref(e.Zone, ""),
			ready:       ready,
			serving:     ptr.Deref(e.Conditions.Serving, ready),
			terminating: ptr.Deref(e.Conditions.Terminating, false),
		})
	}
	return s
}

// A zoned is an endpoint and where it is.
type zoned struct {
	zone string
	Endpoint
}

// serviceEndpoints are the endpoints of a Service's port, or what is wrong.
func (v *view) serviceEndpoints(n types.NamespacedName, port int32, protocol corev1.Protocol) (out []zoned, h2c bool, problem string) {
	s := v.kube[v.saw(refService, n)]
	if s == nil {
		return nil, false, fmt.Sprintf("Service %s does not exist; make it, or name another", n)
	}
	if s.external {
		return nil, false, fmt.Sprintf("Service %s is of type ExternalName, which has no endpoints; name the host itself, as a backend of kind External", n)
	}
	i := slices.IndexFunc(s.ports, func(p kubePort) bool { return p.port == port && p.protocol == protocol })
	if i < 0 {
		return nil, false, fmt.Sprintf("Service %s has no port %d of %s; add it, or name another", n, port, protocol)
	}
	wanted := s.ports[i]
	out = v.podsOf(n, s.family, func(sl *slice) int32 {
		if i := slices.IndexFunc(sl.ports, func(p kubePort) bool { return p.name == wanted.name && p.protocol == protocol }); i >= 0 {
			return sl.ports[i].port
		}
		return 0
	}, func(p pod) bool { return p.ready })
	if len(out) == 0 {
		problem = fmt.Sprintf("Service %s has no pod that is ready; look at its pods", n)
	}
	return out, wanted.h2c, problem
}

// proxies are the pods of a set of proxies, at one of their ports. The Service that
// governs them publishes those that are not ready too.
func (v *view) proxies(service types.NamespacedName, port int32) []zoned {
	family := discoveryv1.AddressTypeIPv4
	if s := v.kube[v.saw(refService, service)]; s != nil {
		family = s.family
	}
	return v.podsOf(service, family, func(*slice) int32 { return port }, func(p pod) bool { return p.serving && !p.terminating })
}

// podsOf a Service, by address: those that are ready, and those that finish what
// they have. Slices of its other family of addresses are for when it has no pod in
// the first.
func (v *view) podsOf(n types.NamespacedName, family discoveryv1.AddressType, port func(*slice) int32, ready func(pod) bool) []zoned {
	all := v.slices.sorted(v.saw(refSlices, n))
	second := discoveryv1.AddressTypeIPv6
	if family == second {
		second = discoveryv1.AddressTypeIPv4
	}
	for _, f := range []discoveryv1.AddressType{family, second} {
		by := map[string]zoned{}
		for _, s := range all {
			p := port(s)
			if s.family != f || p == 0 {
				continue
			}
			for _, of := range s.pods {
				e := zoned{zone: of.zone, Endpoint: Endpoint{Address: of.address, Port: p, Weight: 1}}
				switch {
				case ready(of):
				case of.terminating && of.serving:
					e.Health = Draining
				default:
					continue
				}
				// A pod may be in two slices while one replaces the other.
				if old, ok := by[of.address]; !ok || old.Health == Draining {
					by[of.address] = e
				}
			}
		}
		if len(by) > 0 {
			return sortedZoned(by)
		}
	}
	return nil
}

func sortedZoned(by map[string]zoned) []zoned {
	out := make([]zoned, 0, len(by))
	for _, e := range by {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b zoned) int { return cmp.Compare(a.Address, b.Address) })
	return out
}
