// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package reach decides whether NetworkPolicies let a pod connect to a port of another pod or of an address. It is pure.
// Where networks of Kubernetes may decide either way, it says so.
package reach

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// An Answer says whether a connection is allowed. The greater of two is what one of two rules allows, and the lesser
// what both sides of a connection allow.
type Answer int

// Answers.
const (
	// Denied means that no network that enforces NetworkPolicies lets the connection through.
	Denied Answer = iota

	// Unclear means that it depends on the network, or on facts that are not known.
	Unclear

	// Allowed means that no NetworkPolicy keeps the connection from working.
	Allowed
)

// A Pod is a pod as NetworkPolicies see it.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string

	// NamespaceLabels are nil if they are not known.
	NamespaceLabels map[string]string

	Addresses []netip.Addr
	Ports     []corev1.ContainerPort

	// HostNetwork reports that the pod has the addresses of its node.
	HostNetwork bool
}

// A Peer is the other side of a connection.
type Peer struct {
	// Pod is nil for an address outside of the cluster's pods.
	Pod *Pod

	// Address is not valid for an address of the Internet that nobody knows.
	Address netip.Addr
}

// A Port is the port that a connection is to.
type Port struct {
	Protocol corev1.Protocol
	Number   int32
}

// A Verdict is an answer. If it is not Allowed, the policies that it is from are there, as NAMESPACE/NAME and sorted.
type Verdict struct {
	Answer   Answer
	Policies []string
}

// Both returns whether both sides of a connection allow it.
func Both(a, b Verdict) Verdict {
	if a.Answer <= b.Answer {
		return a
	}
	return b
}

// Connection returns whether a pod can connect to a port of another pod.
func Connection(policies []networkingv1.NetworkPolicy, from, to Pod, port Port) Verdict {
	return Both(Egress(policies, from, Peer{Pod: &to}, port), Ingress(policies, to, Peer{Pod: &from}, port))
}

// A rule is a rule of either direction.
type rule struct {
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer
}

// Ingress returns whether policies of a pod allow connections from a peer.
func Ingress(policies []networkingv1.NetworkPolicy, pod Pod, peer Peer, port Port) Verdict {
	return decide(policies, networkingv1.PolicyTypeIngress, pod, peer, port, pod.Ports, func(p networkingv1.NetworkPolicySpec) []rule {
		var out []rule
		for _, r := range p.Ingress {
			out = append(out, rule{ports: r.Ports, peers: r.From})
		}
		return out
	})
}

// Egress returns whether policies of a pod allow connections to a peer.
func Egress(policies []networkingv1.NetworkPolicy, pod Pod, peer Peer, port Port) Verdict {
	var named []corev1.ContainerPort
	if peer.Pod != nil {
		named = peer.Pod.Ports
	}
	return decide(policies, networkingv1.PolicyTypeEgress, pod, peer, port, named, func(p networkingv1.NetworkPolicySpec) []rule {
		var out []rule
		for _, r := range p.Egress {
			out = append(out, rule{ports: r.Ports, peers: r.To})
		}
		return out
	})
}

// decide returns the verdict of the policies of one direction that select a pod: what one of them allows is allowed.
// named are the ports of the pod that a connection is to.
func decide(policies []networkingv1.NetworkPolicy, direction networkingv1.PolicyType, pod Pod, peer Peer, port Port, named []corev1.ContainerPort, rules func(networkingv1.NetworkPolicySpec) []rule) Verdict {
	out := Verdict{}
	for _, p := range policies {
		if p.GetNamespace() != pod.Namespace || !applies(p.Spec, direction) {
			continue
		}
		selected := matches(&p.Spec.PodSelector, pod.Labels)
		if selected == Denied {
			continue
		}
		out.Policies = append(out.Policies, p.GetNamespace()+"/"+p.GetName())
		if selected == Unclear {
			out.Answer = max(out.Answer, Unclear)
		}
		for _, r := range rules(p.Spec) {
			out.Answer = max(out.Answer, min(r.allows(port, named), r.admits(p.GetNamespace(), peer)))
		}
	}
	if len(out.Policies) == 0 {
		return Verdict{Answer: Allowed}
	}
	if pod.HostNetwork {
		// Most networks do not apply policies to such pods.
		out.Answer = max(out.Answer, Unclear)
	}
	if out.Answer == Allowed {
		return Verdict{Answer: Allowed}
	}
	slices.Sort(out.Policies)
	return out
}

// applies reports whether a policy has a direction. The API server sets the types; their default is here for others.
func applies(s networkingv1.NetworkPolicySpec, direction networkingv1.PolicyType) bool {
	if len(s.PolicyTypes) == 0 {
		return direction == networkingv1.PolicyTypeIngress || len(s.Egress) > 0
	}
	return slices.Contains(s.PolicyTypes, direction)
}

// matches returns Allowed if a selector matches labels, and Unclear if it is not valid.
func matches(s *metav1.LabelSelector, l map[string]string) Answer {
	selector, err := metav1.LabelSelectorAsSelector(s)
	switch {
	case err != nil:
		return Unclear
	case selector.Matches(labels.Set(l)):
		return Allowed
	}
	return Denied
}

// allows returns whether a rule is for a port. Without ports it is for all.
func (r rule) allows(port Port, named []corev1.ContainerPort) Answer {
	if len(r.ports) == 0 {
		return Allowed
	}
	for _, p := range r.ports {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if protocol == port.Protocol && contains(p, port, named) {
			return Allowed
		}
	}
	return Denied
}

// contains reports whether a port of a policy is a port, or a range with it.
func contains(p networkingv1.NetworkPolicyPort, port Port, named []corev1.ContainerPort) bool {
	switch {
	case p.Port == nil:
		return true
	case p.Port.Type == intstr.String:
		return slices.ContainsFunc(named, func(c corev1.ContainerPort) bool {
			return c.Name == p.Port.StrVal && c.ContainerPort == port.Number && (c.Protocol == port.Protocol || c.Protocol == "" && port.Protocol == corev1.ProtocolTCP)
		})
	case p.EndPort != nil:
		return p.Port.IntVal <= port.Number && port.Number <= *p.EndPort
	}
	return p.Port.IntVal == port.Number
}

// admits returns whether a rule of a policy in a namespace is for a peer. Without peers it is for all.
func (r rule) admits(namespace string, peer Peer) Answer {
	if len(r.peers) == 0 {
		return Allowed
	}
	out := Denied
	for _, p := range r.peers {
		if p.IPBlock != nil {
			out = max(out, inBlock(*p.IPBlock, peer))
			continue
		}
		out = max(out, selects(p, namespace, peer.Pod))
	}
	return out
}

// selects returns whether selectors of a policy in a namespace match a pod.
func selects(p networkingv1.NetworkPolicyPeer, namespace string, pod *Pod) Answer {
	if pod == nil {
		return Denied
	}
	out := Allowed
	switch {
	case p.NamespaceSelector == nil && pod.Namespace != namespace:
		return Denied
	case p.NamespaceSelector != nil && pod.NamespaceLabels == nil:
		out = Unclear
	case p.NamespaceSelector != nil:
		out = matches(p.NamespaceSelector, pod.NamespaceLabels)
	}
	if p.PodSelector != nil {
		out = min(out, matches(p.PodSelector, pod.Labels))
	}
	if pod.HostNetwork {
		// The connection is from the node, which no selector matches in most networks.
		out = min(out, Unclear)
	}
	return out
}

// inBlock returns whether a block has the address of a peer. Networks differ in whether blocks are for pods.
func inBlock(b networkingv1.IPBlock, peer Peer) Answer {
	prefix, err := netip.ParsePrefix(b.CIDR)
	if err != nil {
		return Unclear
	}
	var except []netip.Prefix
	for _, e := range b.Except {
		p, err := netip.ParsePrefix(e)
		if err != nil {
			return Unclear
		}
		except = append(except, p)
	}
	inside := func(a netip.Addr) bool {
		return prefix.Contains(a) && !slices.ContainsFunc(except, func(e netip.Prefix) bool { return e.Contains(a) })
	}
	switch {
	case peer.Pod != nil && !slices.ContainsFunc(peer.Pod.Addresses, inside):
		return Denied
	case peer.Pod != nil && !peer.Pod.HostNetwork:
		return Unclear
	case peer.Pod != nil:
		return Allowed
	case !peer.Address.IsValid():
		return internet(prefix, except)
	case inside(peer.Address):
		return Allowed
	}
	return Denied
}

// internet returns whether a block has the addresses of the Internet. One that has only some of them may have the right
// ones.
func internet(prefix netip.Prefix, except []netip.Prefix) Answer {
	private := func(p netip.Prefix) bool {
		a := p.Addr()
		return p.Bits() > 0 && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast())
	}
	switch {
	case private(prefix):
		return Denied
	case prefix.Bits() > 0 || slices.ContainsFunc(except, func(e netip.Prefix) bool { return !private(e) }):
		return Unclear
	}
	return Allowed
}
