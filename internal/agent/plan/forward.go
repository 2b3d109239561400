// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"tailscale.com/ipn"
	"tailscale.com/kube/ingressservices"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Messages of services that need the kernel to forward packets.
const (
	messageAllPorts      = "All ports need proxies with Kernel networking"
	messageAllPortsAddrs = "All ports need a backend with one address of a family in which this pod forwards, which is %s; %s has %s"
	messageOneFamily     = "Clients that use %s do not reach the service: the kernel forwards within one address family, and %s. Set ipFamilyPolicy: PreferDualStack on the backend's Service, or list the service's ports instead of do-not-validate"
	messageDropped       = "Clients do not reach the service: the cluster's network drops forwarded packets to addresses of Services. With Cilium set socketLB.hostNamespaceOnly=true, or list the service's ports instead of do-not-validate"
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

	// Families are those in which the kernel forwards packets of this pod.
	Families address.Families

	// Dropped reports that the cluster drops packets to addresses of Services that the pod
	// forwards, and not those of the connections that it opens.
	Dropped bool

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
func Forward(services []Service, input ForwardInput) ([]Service, Forwards) {
	specs := make(map[string]v1alpha1.ServiceAttachmentSpec, len(input.Attachments))
	for _, a := range hosted(input.Attachments) {
		specs[string(a.Spec.ServiceName)] = a.Spec
	}
	services = slices.Clone(services)
	out := make(Forwards)
	for i := range services {
		s := &services[i]
		spec := specs[s.Name]
		c, msg := forward(spec, s.Name, input)
		switch {
		case c != nil:
			out[s.Name] = *c
			if input.AppliedKnown && !sameForward(input.Applied[s.Name], *c) || !input.AppliedKnown && !slices.Contains(input.Advertised, s.Name) {
				msg = messageForwarding
				break
			}
			if s.Advertise && s.Message == "" {
				s.Message = msg
			}
			msg = ""
		case msg == messageResolving && slices.Contains(input.Advertised, s.Name):
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
// that has no alternative, it returns the reason. With a config, it returns which part of the
// service is not served.
//
// The kernel translates within one family, and tailscaled does not serve the addresses of a
// service that the kernel forwards (tailscale.com ipn, ServiceConfig.Tun). So tailscaled serves a
// service with port numbers unless the kernel can forward all of the service's addresses
// (tailscale/tailscale#12156).
func forward(spec v1alpha1.ServiceAttachmentSpec, name string, input ForwardInput) (*ingressservices.Config, string) {
	if !input.Kernel {
		return nil, messageAllPorts
	}
	host, ok := forwardable(spec)
	if !ok {
		return nil, ""
	}
	addrs, resolved := input.Addresses[host]
	if !resolved {
		if c, ok := input.Previous[name]; ok {
			return &c, ""
		}
		return nil, messageResolving
	}
	c := ingressservices.Config{}
	if input.Families.IPv4 {
		c.IPv4Mapping = mapping(spec.Addresses, addrs, netip.Addr.Is4)
	}
	if input.Families.IPv6 {
		c.IPv6Mapping = mapping(spec.Addresses, addrs, netip.Addr.Is6)
	}
	hostAddrs := make([]string, 0, len(addrs))
	for _, a := range addrs {
		hostAddrs = append(hostAddrs, a.String())
	}
	unserved := unserved(spec.Addresses, c)
	switch {
	case c.IPv4Mapping == nil && c.IPv6Mapping == nil:
		return nil, fmt.Sprintf(messageAllPortsAddrs, input.Families, host, list(hostAddrs))
	case !allPorts(spec) && (len(unserved) > 0 || input.Dropped):
		return nil, ""
	case input.Dropped:
		return &c, messageDropped
	case len(unserved) > 0:
		cause := fmt.Sprintf("%s has %s", host, list(hostAddrs))
		if !input.Families.IPv4 || !input.Families.IPv6 {
			cause = fmt.Sprintf("this pod forwards %s", input.Families)
		}
		return &c, fmt.Sprintf(messageOneFamily, list(unserved), cause)
	}
	return &c, ""
}

// unserved returns the service's addresses for which the config has no mapping, in order.
func unserved(service []string, c ingressservices.Config) []string {
	var out []string
	for _, s := range service {
		a, err := netip.ParseAddr(s)
		if err != nil {
			continue
		}
		m := c.IPv6Mapping
		if a.Is4() {
			m = c.IPv4Mapping
		}
		if m == nil || m.TailscaleServiceIP != a {
			out = append(out, s)
		}
	}
	return out
}

// forwardable returns the single host that gets all ports of a service unchanged.
func forwardable(spec v1alpha1.ServiceAttachmentSpec) (string, bool) {
	host := ""
	for _, p := range spec.Ports {
		switch {
		case p.Backend == nil, len(p.Backends) > 0, p.TLS != nil, p.ProxyProtocol != 0,
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
