// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"cmp"
	"fmt"
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
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
)

// maxTargets is the maximum number of targets of a ProxySet.
const maxTargets = 2048

// Prefixes of targets' keys.
const (
	keyEndpoint   = "endpoint/"
	keyAttachment = "attachment/"
)

// A target is a host and port that routes and Services use.
type target struct {
	egress.Target

	// name is the target's name in statuses and in the ProxySet.
	name string

	// endpoint is the target's endpoint. It is empty for a ServiceAttachment's target.
	endpoint string

	// portName and clientPort are those of the endpoint's Service.
	portName   string
	clientPort int32

	// speaks is the protocol of the target.
	speaks gatewayv1alpha1.EndpointProtocol

	weight int32

	// direct means that the target is outside the tailnet: it has no proxy.
	direct bool

	// unplaced means that the function does not know yet whether the target is in the tailnet.
	unplaced bool

	// clients are the clients that may use the port. Empty means those of the network policy.
	clients []networkingv1.NetworkPolicyPeer
}

// targets returns the targets of the spec, of discovery and of attachments, by name. If several
// have the same name, the first is used: endpoints of the spec come before discovered ones, and
// those before attachments. The others are refused, as are targets beyond maxTargets. Those of the
// observed ProxySet stay.
func (e *endpoints) targets() (all []target, refused []string) {
	requests := map[string]quota.Request{}
	add := func(ts []target, request quota.Request) {
		for _, t := range ts {
			if _, ok := requests[t.name]; ok {
				refused = append(refused, t.name)
				continue
			}
			requests[t.name] = request
			all = append(all, t)
		}
	}
	for _, ep := range e.spec.Endpoints {
		add(e.endpointTargets(ep, e.spec.Ports), quota.Request{})
	}
	for _, ep := range e.discoveredEndpoints() {
		add(e.endpointTargets(ep.Endpoint, ep.ports), quota.Request{Rank: 1})
	}
	attachments := slices.Clone(e.attachments)
	slices.SortFunc(attachments, func(a, b tailnetv1alpha1.ServiceAttachment) int { return cmp.Compare(a.Name, b.Name) })
	for _, a := range attachments {
		add(attachmentTargets(a), quota.Request{Rank: 2, Created: a.CreationTimestamp.Time, UID: string(a.UID)})
	}
	if e.proxySet != nil {
		for _, t := range e.proxySet.Spec.Targets {
			if request, ok := requests[t.Name]; ok {
				request.Allocated = 1
				requests[t.Name] = request
			}
		}
	}
	wanted := all
	all, _ = quota.Admit(maxTargets, wanted, func(t target) quota.Request { return requests[t.name] })
	if len(all) < len(wanted) {
		admitted := map[string]bool{}
		for _, t := range all {
			admitted[t.name] = true
		}
		for _, t := range wanted {
			if !admitted[t.name] {
				refused = append(refused, t.name)
			}
		}
	}
	slices.SortFunc(all, func(a, b target) int { return cmp.Compare(a.name, b.name) })
	return all, refused
}

// endpointTargets returns the targets of an endpoint: one for its own port, or one for each of the
// common ports.
func (e *endpoints) endpointTargets(ep gatewayv1alpha1.Endpoint, ports []gatewayv1alpha1.EndpointsPort) []target {
	host := hostOf(ep)
	if ep.ExternalTarget != "" {
		h, p, err := net.SplitHostPort(ep.ExternalTarget)
		n, perr := strconv.ParseUint(p, 10, 16)
		if err != nil || perr != nil {
			return nil // The schema rejects it.
		}
		t := e.endpointTarget(ep, h, gatewayv1alpha1.EndpointsPort{Port: int32(n), Protocol: ep.Protocol})
		e.place(&t)
		return []target{t}
	}
	if ep.Port != nil {
		return []target{e.endpointTarget(ep, host, gatewayv1alpha1.EndpointsPort{Port: *ep.Port, Protocol: ep.Protocol})}
	}
	var out []target
	for _, p := range withNames(ports) {
		out = append(out, e.endpointTarget(ep, host, p))
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
		if ep.ExternalTarget == "" && ep.Port == nil && len(spec.Ports) == 0 {
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
func (e *endpoints) endpointTarget(ep gatewayv1alpha1.Endpoint, host string, p gatewayv1alpha1.EndpointsPort) target {
	t := target{
		Target: egress.Target{
			Host:        canonical(host),
			Port:        ptr.Deref(p.TargetPort, p.Port),
			Protocol:    corev1.ProtocolTCP,
			HealthCheck: healthCheck(ep.HealthCheck),
		},
		endpoint:   ep.Name,
		portName:   p.Name,
		clientPort: p.Port,
		speaks:     p.Protocol,
		weight:     ptr.Deref(ep.Weight, 1),
		clients:    ep.Clients,
	}
	if ep.TailscaleIP != "" && ep.TailscaleFQDN != "" {
		t.Name = canonical(ep.TailscaleFQDN)
	}
	for _, tag := range ep.Tags {
		t.Tags = append(t.Tags, string(tag))
	}
	slices.Sort(t.Tags)
	if t.speaks == "" {
		t.speaks = gatewayv1alpha1.EndpointProtocolTCP
	}
	if t.portName == "" {
		t.portName = strings.ToLower(string(t.speaks))
	}
	t.name = fmt.Sprintf("%s/%d", ep.Name, p.Port)
	if t.speaks == gatewayv1alpha1.EndpointProtocolUDP {
		// A port with both protocols, as for DNS, is two targets.
		t.Protocol, t.name = corev1.ProtocolUDP, t.name+"/udp"
	}
	t.Key = keyEndpoint + t.name
	// A host behind a subnet router has an address of one family, and the kernel translates only
	// within a family. Devices and services have both.
	t.SingleStack = e.kernel() && t.routed()
	return t
}

// attachmentTargets returns the targets of a ServiceAttachment of direction Egress: a service of
// another cluster. A pod that cannot use the family of its first address uses another one.
func attachmentTargets(a tailnetv1alpha1.ServiceAttachment) []target {
	if a.Spec.Direction != tailnetv1alpha1.DirectionEgress || len(a.Spec.Addresses) == 0 {
		return nil
	}
	var alternatives []string
	for _, s := range a.Spec.Addresses[1:] {
		alternatives = append(alternatives, canonical(s))
	}
	var out []target
	for _, p := range a.Spec.Ports {
		if p.Port == 0 {
			continue // Targets cannot use all ports.
		}
		name := fmt.Sprintf("%s/%d", a.Name, p.Port)
		out = append(out, target{
			Target: egress.Target{
				Key:      keyAttachment + name,
				Host:     canonical(a.Spec.Addresses[0]),
				Service:  string(a.Spec.ServiceName),
				Port:     p.Port,
				Protocol: corev1.ProtocolTCP,

				Alternatives: alternatives,
			},
			name:       name,
			clientPort: p.Port,
			speaks:     gatewayv1alpha1.EndpointProtocolTCP,
			weight:     1,
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
func (t target) proxied() bool { return !t.direct && !t.unplaced }

// place sets whether an external target is in the tailnet: by its address, or by its name, which
// ends in ts.net or in the domain of these proxies. A tailnet may have a custom domain, which is
// known once a machine has joined. Until then the place of a name is unknown, unless it is a name
// of the cluster, or its place was known before.
func (e *endpoints) place(t *target) {
	suffix := e.magicDNSSuffix()
	a, err := netip.ParseAddr(t.Host)
	switch {
	case err == nil:
		t.direct = !tailnetAddress(a)
	case strings.HasSuffix(t.Host, ".ts.net"):
	case suffix != "":
		t.direct = !strings.HasSuffix(t.Host, "."+suffix)
	case clusterName(t.Host):
		t.direct = true
	default:
		previous := e.targetBefore(t.name)
		t.direct = previous != nil && previous.Address == t.Address()
		t.unplaced = previous == nil || previous.Address != "" && !t.direct
	}
}

// clusterName reports whether only the cluster's DNS resolves a name.
func clusterName(host string) bool {
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
}

// targetBefore returns the target with the name in the observed ProxySet, or nil if there is none.
func (e *endpoints) targetBefore(name string) *tailnetv1alpha1.ProxySetTarget {
	if e.proxySet == nil {
		return nil
	}
	for i := range e.proxySet.Spec.Targets {
		if t := &e.proxySet.Spec.Targets[i]; t.Name == name {
			return t
		}
	}
	return nil
}

// tailnetAddress reports whether an address is in Tailscale's ranges.
func tailnetAddress(a netip.Addr) bool {
	return tsaddr.CGNATRange().Contains(a) || tsaddr.TailscaleULARange().Contains(a)
}

// routed reports whether only a subnet router reaches the target.
func (t target) routed() bool {
	if a, ok := address.Via(t.Host); ok {
		return address.Routed(a)
	}
	a, err := netip.ParseAddr(t.Host)
	return err == nil && address.Routed(a)
}

// magicDNSSuffix returns the domain of the proxies' machines once one has joined.
func (e *endpoints) magicDNSSuffix() string {
	for _, g := range []*group{e.ingress, e.egress} {
		for _, i := range sortedKeys(g.machines) {
			if _, suffix, ok := strings.Cut(g.machines[i].DNSName, "."); ok {
				return strings.ToLower(suffix)
			}
		}
	}
	return ""
}

// sortedKeys returns the keys of a map, sorted.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// proxiedEndpoints returns the names of the endpoints that may get a Service.
func (e *endpoints) proxiedEndpoints() []string {
	seen := map[string]bool{}
	for _, ep := range e.spec.Endpoints {
		for _, t := range e.endpointTargets(ep, e.spec.Ports) {
			seen[ep.Name] = seen[ep.Name] || t.proxied()
		}
	}
	for _, ep := range e.discoveredEndpoints() {
		seen[ep.Name] = true
	}
	var out []string
	for _, name := range sortedKeys(seen) {
		if seen[name] {
			out = append(out, name)
		}
	}
	return out
}
