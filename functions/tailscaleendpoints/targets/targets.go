// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package targets finds the targets of a TailscaleEndpoints: the hosts and ports of its spec, of discovered
// endpoints and of ServiceAttachments.
package targets

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
	"tailscale.com/net/tsaddr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/proxies"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
)

// Max is the maximum number of targets of a ProxySet.
const Max = 2048

// Prefixes of targets' keys.
const (
	keyEndpoint   = "endpoint/"
	keyAttachment = "attachment/"
)

// Facts are what targets follow from.
type Facts struct {
	Spec gatewayv1alpha1.TailscaleEndpointsSpec

	// Discovered are the discovered endpoints, with their ports.
	Discovered []gatewayv1alpha1.Endpoint

	// Attachments are the ServiceAttachments that need a port of the endpoints.
	Attachments []tailnetv1alpha1.ServiceAttachment

	// ProxySet is the observed one. It is nil if there is none.
	ProxySet *tailnetv1alpha1.ProxySet

	// MagicDNSSuffix is the domain of the proxies' machines. It is empty until one has joined.
	MagicDNSSuffix string
}

// Targets are the targets of a TailscaleEndpoints.
type Targets struct {
	// All are those that are served or wait for a proxy, by name.
	All []Target

	// Refused are the names of targets that are not served.
	Refused []string

	// Portless are the endpoints of the spec without a port in the endpoint or in spec.ports. They
	// have no target.
	Portless []string
}

// Unplaced returns the endpoints for which it is not known yet whether they are in the tailnet.
func (t Targets) Unplaced() []string {
	var out []string
	for _, o := range t.All {
		if o.unplaced {
			out = append(out, o.Endpoint)
		}
	}
	return out
}

// Proxied returns the targets that need a proxy.
func (t Targets) Proxied() []Target {
	return slices.DeleteFunc(slices.Clone(t.All), func(t Target) bool { return !t.proxied() })
}

// A Target is a host and port that routes and Services use.
type Target struct {
	egress.Target

	// Label is the target's name in statuses and in the ProxySet.
	Label string

	// Endpoint is the target's endpoint. It is empty for a ServiceAttachment's target.
	Endpoint string

	// PortName and ClientPort are those of the endpoint's Service.
	PortName   string
	ClientPort int32

	// Speaks is the protocol of the target.
	Speaks gatewayv1alpha1.EndpointProtocol

	Weight int32

	// Direct means that the target is outside the tailnet: it has no proxy.
	Direct bool

	// unplaced means that the function does not know yet whether the target is in the tailnet.
	unplaced bool

	// Clients are the clients that may use the port. Empty means those of the network policy.
	Clients []networkingv1.NetworkPolicyPeer
}

// New returns the targets of the spec, of discovery and of attachments, by name. If several
// have the same name, the first is used: endpoints of the spec come before discovered ones, and
// those before attachments. The others are refused, as are targets beyond Max. Those of the
// observed ProxySet stay.
func New(f Facts) Targets {
	out := Targets{Portless: portless(f.Spec)}
	var all []Target
	requests := map[string]quota.Request{}
	add := func(ts []Target, request quota.Request) {
		for _, t := range ts {
			if _, ok := requests[t.Label]; ok {
				out.Refused = append(out.Refused, t.Label)
				continue
			}
			requests[t.Label] = request
			all = append(all, t)
		}
	}
	for _, ep := range f.Spec.Endpoints {
		add(f.endpointTargets(ep), quota.Request{})
	}
	for _, ep := range f.Discovered {
		add(f.endpointTargets(ep), quota.Request{Rank: 1})
	}
	attachments := slices.Clone(f.Attachments)
	slices.SortFunc(attachments, func(a, b tailnetv1alpha1.ServiceAttachment) int { return cmp.Compare(a.Name, b.Name) })
	for _, a := range attachments {
		add(attachmentTargets(a), quota.Request{Rank: 2, Created: a.CreationTimestamp.Time, UID: string(a.UID)})
	}
	if f.ProxySet != nil {
		for _, t := range f.ProxySet.Spec.Targets {
			if request, ok := requests[t.Name]; ok {
				request.Allocated = 1
				requests[t.Name] = request
			}
		}
	}
	wanted := all
	all, _ = quota.Admit(Max, wanted, func(t Target) quota.Request { return requests[t.Label] })
	if len(all) < len(wanted) {
		admitted := map[string]bool{}
		for _, t := range all {
			admitted[t.Label] = true
		}
		for _, t := range wanted {
			if !admitted[t.Label] {
				out.Refused = append(out.Refused, t.Label)
			}
		}
	}
	slices.SortFunc(all, func(a, b Target) int { return cmp.Compare(a.Label, b.Label) })
	out.All = all
	return out
}

// endpointTargets returns the targets of an endpoint: one for each of its separate ports, or of
// the common ports.
func (f Facts) endpointTargets(ep gatewayv1alpha1.Endpoint) []Target {
	host := hostOf(ep)
	if ep.ExternalTarget != "" {
		h, p, err := net.SplitHostPort(ep.ExternalTarget)
		n, perr := strconv.ParseUint(p, 10, 16)
		if err != nil || perr != nil {
			return nil // The schema rejects it.
		}
		t := f.endpointTarget(ep, h, gatewayv1alpha1.EndpointsPort{Port: int32(n), Protocol: ep.Protocol})
		f.place(&t)
		return []Target{t}
	}
	if ep.Port != nil {
		return []Target{f.endpointTarget(ep, host, gatewayv1alpha1.EndpointsPort{Port: *ep.Port, Protocol: ep.Protocol})}
	}
	ports := ep.Ports
	if len(ports) == 0 {
		ports = f.Spec.Ports
	}
	var out []Target
	for _, p := range withNames(ports) {
		out = append(out, f.endpointTarget(ep, host, p))
	}
	return out
}

// withNames gives each port a name: its own, or a unique one of its protocol and number.
func withNames(ports []gatewayv1alpha1.EndpointsPort) []gatewayv1alpha1.EndpointsPort {
	usedNames := map[string]bool{}
	for _, p := range ports {
		usedNames[p.Name] = true
	}
	out := slices.Clone(ports)
	for i, p := range out {
		if p.Name != "" {
			continue
		}
		suffix := fmt.Sprintf("-%d", p.Port)
		name := strings.ToLower(string(cmp.Or(p.Protocol, gatewayv1alpha1.EndpointProtocolTCP))) + suffix
		for usedNames[name] {
			name += suffix
		}
		out[i].Name, usedNames[name] = name, true
	}
	return out
}

// portless returns the endpoints of a spec without a port in the endpoint or in spec.ports.
func portless(spec gatewayv1alpha1.TailscaleEndpointsSpec) []string {
	var out []string
	for _, ep := range spec.Endpoints {
		if ep.ExternalTarget == "" && ep.Port == nil && len(ep.Ports) == 0 && len(spec.Ports) == 0 {
			out = append(out, ep.Name)
		}
	}
	return out
}

// hostOf returns the address of an endpoint, or its name.
func hostOf(ep gatewayv1alpha1.Endpoint) string {
	if ep.TailscaleIP != "" {
		return ep.TailscaleIP
	}
	return ep.TailscaleFQDN
}

// endpointTarget returns the target of an endpoint's port.
func (f Facts) endpointTarget(ep gatewayv1alpha1.Endpoint, host string, p gatewayv1alpha1.EndpointsPort) Target {
	t := Target{
		Target: egress.Target{
			Host:        canonical(host),
			Port:        ptr.Deref(p.TargetPort, p.Port),
			Protocol:    corev1.ProtocolTCP,
			HealthCheck: healthCheck(ep.HealthCheck),
		},
		Endpoint:   ep.Name,
		PortName:   p.Name,
		ClientPort: p.Port,
		Speaks:     p.Protocol,
		Weight:     ptr.Deref(ep.Weight, 1),
		Clients:    ep.Clients,
	}
	if ep.TailscaleIP != "" && ep.TailscaleFQDN != "" {
		t.Name = canonical(ep.TailscaleFQDN)
	}
	for _, tag := range ep.Tags {
		t.Tags = append(t.Tags, string(tag))
	}
	slices.Sort(t.Tags)
	if t.Speaks == "" {
		t.Speaks = gatewayv1alpha1.EndpointProtocolTCP
	}
	if t.PortName == "" {
		t.PortName = strings.ToLower(string(t.Speaks))
	}
	t.Label = fmt.Sprintf("%s/%d", ep.Name, p.Port)
	if t.Speaks == gatewayv1alpha1.EndpointProtocolUDP {
		// A port with both protocols, as for DNS, is two targets.
		t.Protocol, t.Label = corev1.ProtocolUDP, t.Label+"/udp"
	}
	t.Key = keyEndpoint + t.Label
	// A host behind a subnet router has an address of one family, and the kernel translates only
	// within a family. Devices and services have both.
	t.SingleStack = proxies.Kernel(f.Spec) && t.Routed()
	return t
}

// attachmentTargets returns the targets of a ServiceAttachment of direction Egress: a service of
// another cluster. A pod that cannot use the family of its first address uses another one.
func attachmentTargets(a tailnetv1alpha1.ServiceAttachment) []Target {
	if a.Spec.Direction != tailnetv1alpha1.DirectionEgress || len(a.Spec.Addresses) == 0 {
		return nil
	}
	var alternatives []string
	for _, s := range a.Spec.Addresses[1:] {
		alternatives = append(alternatives, canonical(s))
	}
	var out []Target
	for _, p := range a.Spec.Ports {
		if p.Port == 0 {
			continue // Targets cannot use all ports.
		}
		name := fmt.Sprintf("%s/%d", a.Name, p.Port)
		out = append(out, Target{
			Target: egress.Target{
				Key:      keyAttachment + name,
				Host:     canonical(a.Spec.Addresses[0]),
				Service:  string(a.Spec.ServiceName),
				Port:     p.Port,
				Protocol: corev1.ProtocolTCP,

				Alternatives: alternatives,
			},
			Label:      name,
			ClientPort: p.Port,
			Speaks:     gatewayv1alpha1.EndpointProtocolTCP,
			Weight:     1,
		})
	}
	return out
}

// healthCheck returns a health check in the form that agents use. It is nil if the target is not
// checked.
func healthCheck(h *gatewayv1alpha1.HealthCheck) *egress.HealthCheck {
	if h == nil || !ptr.Deref(h.Enabled, true) {
		return nil
	}
	c := &egress.HealthCheck{
		Interval:           h.Interval,
		Timeout:            h.Timeout,
		HealthyThreshold:   h.HealthyThreshold,
		UnhealthyThreshold: h.UnhealthyThreshold,
	}
	if h.Enabled != nil {
		c.Path = h.Path
	}
	return c
}

// canonical returns the canonical form of an address or a DNS name.
func canonical(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// proxied reports whether proxies forward to the target.
func (t Target) proxied() bool { return !t.Direct && !t.unplaced }

// place sets whether an external target is in the tailnet: by its address, or by its name, which
// ends in ts.net or in the domain of these proxies. A tailnet may have a custom domain, which is
// known once a machine has joined. Until then the place of a name is unknown, unless it is a name
// of the cluster, or its place was known before.
func (f Facts) place(t *Target) {
	suffix := f.MagicDNSSuffix
	a, err := netip.ParseAddr(t.Host)
	switch {
	case err == nil:
		t.Direct = !tailnetAddress(a)
	case strings.HasSuffix(t.Host, ".ts.net"):
	case suffix != "":
		t.Direct = !strings.HasSuffix(t.Host, "."+suffix)
	case clusterName(t.Host):
		t.Direct = true
	default:
		previous := f.targetBefore(t.Label)
		t.Direct = previous != nil && previous.Address == t.Address()
		t.unplaced = previous == nil || previous.Address != "" && !t.Direct
	}
}

// clusterName reports whether only the cluster's DNS resolves a name.
func clusterName(host string) bool {
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
}

// targetBefore returns the target with the name in the observed ProxySet, or nil if there is none.
func (f Facts) targetBefore(name string) *tailnetv1alpha1.ProxySetTarget {
	if f.ProxySet == nil {
		return nil
	}
	for i := range f.ProxySet.Spec.Targets {
		if t := &f.ProxySet.Spec.Targets[i]; t.Name == name {
			return t
		}
	}
	return nil
}

// tailnetAddress reports whether an address is in Tailscale's ranges.
func tailnetAddress(a netip.Addr) bool {
	return tsaddr.CGNATRange().Contains(a) || tsaddr.TailscaleULARange().Contains(a)
}

// Routed reports whether only a subnet router reaches the target.
func (t Target) Routed() bool {
	if a, ok := address.Via(t.Host); ok {
		return address.Routed(a)
	}
	a, err := netip.ParseAddr(t.Host)
	return err == nil && address.Routed(a)
}

// ProxiedEndpoints returns the names of the endpoints that may get a Service.
func (f Facts) ProxiedEndpoints() []string {
	seen := map[string]bool{}
	for _, ep := range f.Spec.Endpoints {
		for _, t := range f.endpointTargets(ep) {
			seen[ep.Name] = seen[ep.Name] || t.proxied()
		}
	}
	for _, ep := range f.Discovered {
		seen[ep.Name] = true
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if seen[name] {
			out = append(out, name)
		}
	}
	return out
}
