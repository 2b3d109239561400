// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"tailscale.com/ipn"
	"tailscale.com/kube/egressservices"
	"tailscale.com/kube/ingressservices"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
)

// Messages of services that need the kernel to forward packets.
const (
	messageAllPorts      = "All ports need proxies with Kernel networking"
	messageAllPortsAddrs = "All ports need a backend with one address of the family of the service's, %s has %s"
	messageForwarding    = messageEgressApplying
	messageResolving     = "Waiting for the address of the backend"
)

// Forwards are services whose packets the kernel forwards to one address, by name.
// Containerboot creates rules from them (tailscale.com kube/ingressservices).
type Forwards map[string]ingressservices.Config

// A ForwardInput is the input for deciding which services the kernel forwards.
type ForwardInput struct {
	// Kernel reports whether the pod has Kernel networking.
	Kernel bool

	Attachments []v1alpha1.ServiceAttachment

	// Addresses are the addresses of backends, by host. A host without an entry is not known yet.
	Addresses map[string][]netip.Addr

	// Previous are the services that are currently forwarded. They stay until the addresses of
	// their backends are known.
	Previous Forwards

	// Applied are the services that containerboot has set up, if this is known.
	Applied      Forwards
	AppliedKnown bool

	// Advertised are the services that the pod currently advertises.
	Advertised []string
}

// Forward returns the services, and those that the kernel forwards: all that need only
// forwarding. A service that is not set up yet is not advertised.
func Forward(services []Service, in ForwardInput) ([]Service, Forwards) {
	specs := make(map[string]v1alpha1.ServiceAttachmentSpec, len(in.Attachments))
	for _, a := range hosted(in.Attachments) {
		specs[string(a.Spec.ServiceName)] = a.Spec
	}
	services = slices.Clone(services)
	out := make(Forwards)
	for i := range services {
		s := &services[i]
		spec := specs[s.Name]
		c, msg := forward(spec, s.Name, in)
		switch {
		case c != nil:
			out[s.Name] = *c
			msg = ""
			if in.AppliedKnown && !sameForward(in.Applied[s.Name], *c) || !in.AppliedKnown && !slices.Contains(in.Advertised, s.Name) {
				msg = messageForwarding
			}
		case msg == messageResolving && slices.Contains(in.Advertised, s.Name):
			// The service stays as it is.
			msg = ""
		case !allPorts(spec) && msg != messageResolving:
			// If the kernel cannot forward, tailscaled can forward the connections instead.
			msg = ""
		}
		if msg != "" && (s.Advertise || s.Message == "") {
			s.Advertise, s.Message = false, msg
		}
	}
	return services, out
}

// forward returns the kernel's config for a service. If the kernel cannot forward a service
// that has no alternative, it returns the reason.
func forward(spec v1alpha1.ServiceAttachmentSpec, name string, in ForwardInput) (*ingressservices.Config, string) {
	if !in.Kernel {
		return nil, messageAllPorts
	}
	host, ok := forwardable(spec)
	if !ok {
		return nil, ""
	}
	addrs, known := in.Addresses[host]
	if !known {
		if c, ok := in.Previous[name]; ok {
			return &c, ""
		}
		return nil, messageResolving
	}
	c := ingressservices.Config{
		IPv4Mapping: mapping(spec.Addresses, addrs, netip.Addr.Is4),
		IPv6Mapping: mapping(spec.Addresses, addrs, netip.Addr.Is6),
	}
	if c.IPv4Mapping == nil && c.IPv6Mapping == nil {
		var have []string
		for _, a := range addrs {
			have = append(have, a.String())
		}
		return nil, fmt.Sprintf(messageAllPortsAddrs, host, list(have))
	}
	return &c, ""
}

// forwardable returns the single host that gets all ports of a service unchanged.
func forwardable(spec v1alpha1.ServiceAttachmentSpec) (string, bool) {
	host := ""
	for _, p := range spec.Ports {
		switch {
		case p.Backend == nil, p.TLS != nil, p.ProxyProtocol != 0,
			p.Protocol != "" && p.Protocol != v1alpha1.AttachmentProtocolTCP,
			p.Port != 0 && p.Port != p.Backend.Port,
			host != "" && host != p.Backend.Host:
			return "", false
		}
		host = p.Backend.Host
	}
	return host, host != ""
}

func allPorts(spec v1alpha1.ServiceAttachmentSpec) bool {
	return slices.ContainsFunc(spec.Ports, func(p v1alpha1.AttachmentPort) bool { return p.Port == 0 })
}

// ForwardHosts returns the hosts whose addresses Forward needs, sorted.
func ForwardHosts(attachments []v1alpha1.ServiceAttachment) []string {
	hosts := make(map[string]bool)
	for _, a := range attachments {
		if h, ok := forwardable(a.Spec); ok && a.Spec.Direction == v1alpha1.DirectionIngress {
			hosts[h] = true
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

// mapping maps the service's address of a family to the backend's address, if there is exactly
// one: the kernel forwards to one address, and would not notice that a backend is gone. An
// address that leads back to the pod or to its node gives no mapping.
func mapping(service []string, backend []netip.Addr, family func(netip.Addr) bool) *ingressservices.Mapping {
	var m ingressservices.Mapping
	for _, s := range service {
		if a, err := netip.ParseAddr(s); err == nil && family(a) {
			m.TailscaleServiceIP = a
		}
	}
	for _, a := range backend {
		if !family(a) || address.Refused(a) != "" {
			continue
		}
		if m.ClusterIP.IsValid() {
			return nil
		}
		m.ClusterIP = a
	}
	if !m.TailscaleServiceIP.IsValid() || !m.ClusterIP.IsValid() {
		return nil
	}
	return &m
}

// Equal reports whether both forward the same services in the same way.
func (f Forwards) Equal(o Forwards) bool { return maps.EqualFunc(f, o, sameForward) }

func sameForward(a, b ingressservices.Config) bool {
	same := func(a, b *ingressservices.Mapping) bool {
		if a == nil || b == nil {
			return a == b
		}
		return *a == *b
	}
	return same(a.IPv4Mapping, b.IPv4Mapping) && same(a.IPv6Mapping, b.IPv6Mapping)
}

// IngressConfig returns containerboot's config for the services that the kernel forwards.
func IngressConfig(f Forwards) ([]byte, error) {
	b, err := json.Marshal(ingressservices.Configs(f))
	return b, errors.Wrap(err, "cannot encode ingress config")
}

// ForwardsIn returns the services in a config that IngressConfig made.
func ForwardsIn(config []byte) (Forwards, error) {
	var c ingressservices.Configs
	err := json.Unmarshal(config, &c)
	return Forwards(c), errors.Wrap(err, "cannot decode ingress config")
}

// IngressApplied returns the services that containerboot has set up in the pod with the given
// address, according to its status in the state Secret.
func IngressApplied(status []byte, podIP string) (Forwards, error) {
	if len(status) == 0 {
		return nil, nil
	}
	var st ingressservices.Status
	if err := json.Unmarshal(status, &st); err != nil {
		return nil, errors.Wrap(err, "cannot decode ingress status")
	}
	if st.PodIPv4 != podIP && st.PodIPv6 != podIP {
		return nil, nil
	}
	return Forwards(st.Configs), nil
}

// WithTun returns a serve config that marks the services that the kernel forwards: tailscaled
// passes their packets on, and reports to control that all their ports are served.
func WithTun(config []byte, f Forwards) ([]byte, error) {
	if len(f) == 0 {
		return config, nil
	}
	var sc ipn.ServeConfig
	if err := json.Unmarshal(config, &sc); err != nil {
		return nil, errors.Wrap(err, "cannot decode serve config")
	}
	for name := range f {
		if sc.Services == nil {
			sc.Services = make(map[tailcfg.ServiceName]*ipn.ServiceConfig, len(f))
		}
		sc.Services[tailcfg.ServiceName(name)] = &ipn.ServiceConfig{Tun: true}
	}
	b, err := json.Marshal(sc)
	return b, errors.Wrap(err, "cannot encode serve config")
}

// EgressServices returns containerboot's config for the egress ports that have an address. It
// has one service for each port, so that the order of a service's ports does not matter
// (tailscale.com kube/egressservices, PortMaps).
func EgressServices(ports []EgressPort) ([]byte, error) {
	out := make(egressservices.Configs, len(ports))
	for _, p := range ports {
		if !p.Addr.IsValid() {
			continue
		}
		protocol := strings.ToLower(string(p.Target.Protocol))
		out[fmt.Sprintf("%s-%d", protocol, p.Target.ProxyPort)] = egressservices.Config{
			TailnetTarget: egressservices.TailnetTarget{IP: p.Addr.Addr().String()},
			Ports: egressservices.PortMaps{{
				Protocol:   protocol,
				MatchPort:  uint16(p.Target.ProxyPort),
				TargetPort: p.Addr.Port(),
			}: {}},
		}
	}
	// Map keys are encoded in sorted order.
	b, err := json.Marshal(out)
	return b, errors.Wrap(err, "cannot encode egress services")
}

// EgressApplied returns the targets of ports in the pod with the given address, according to
// containerboot's status in the state Secret.
func EgressApplied(status []byte, podIP string) (map[EgressKey]netip.AddrPort, error) {
	if len(status) == 0 {
		return nil, nil
	}
	var st egressservices.Status
	if err := json.Unmarshal(status, &st); err != nil {
		return nil, errors.Wrap(err, "cannot decode egress status")
	}
	if st.PodIPv4 != podIP && st.PodIPv6 != podIP {
		return nil, nil
	}
	out := make(map[EgressKey]netip.AddrPort)
	for _, s := range st.Services {
		if s == nil || len(s.TailnetTargetIPs) == 0 {
			continue
		}
		for p := range s.Ports {
			key := EgressKey{Port: int32(p.MatchPort), Protocol: corev1.Protocol(strings.ToUpper(p.Protocol))}
			out[key] = netip.AddrPortFrom(s.TailnetTargetIPs[0], p.TargetPort)
		}
	}
	return out, nil
}
