// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// NetworkPolicyOptions are the sources that may connect to a group's pods.
type NetworkPolicyOptions struct {
	// Metrics are the sources that may connect to the metrics ports. Empty means all.
	Metrics []networkingv1.NetworkPolicyPeer

	// Targets are the sources that may connect to ports that lead into the tailnet.
	Targets []PolicyTarget
}

// A PolicyTarget is a set of ports that lead into the tailnet, and their clients.
type PolicyTarget struct {
	Ports []PolicyPort

	// Clients that may connect. Empty means none.
	Clients []networkingv1.NetworkPolicyPeer
}

// A PolicyPort is a port of the pods.
type PolicyPort struct {
	Port     int32
	Protocol corev1.Protocol
}

// DefaultClients returns the default clients of a target: the pods of its namespace, and in the
// namespaces of Envoy Gateway the proxies of Gateways, whose routes may lead to the target, and
// the extension, which probes targets.
func DefaultClients(envoyGateway []string) []networkingv1.NetworkPolicyPeer {
	out := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}
	if len(envoyGateway) == 0 {
		return out
	}
	for _, pods := range []map[string]string{
		{"app.kubernetes.io/managed-by": "envoy-gateway", "app.kubernetes.io/component": "proxy"},
		{"app.kubernetes.io/name": "tailscale-gateway-extension"},
	} {
		out = append(out, networkingv1.NetworkPolicyPeer{
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: envoyGateway,
			}}},
			PodSelector: &metav1.LabelSelector{MatchLabels: pods},
		})
	}
	return out
}

// NetworkPolicy builds the policy that lets only metrics clients and clients of targets connect
// to the group's pods. Traffic from the tailnet arrives on connections that the pods open
// themselves, or at static endpoints, and kubelet's probes and hooks are not subject to policies. It
// says nothing about what the pods connect to: policies add up, so an allowance here would undo the
// platform team's denial.
func NetworkPolicy(o Options) *networkingv1.NetworkPolicy {
	metrics := networkingv1.NetworkPolicyIngressRule{From: o.NetworkPolicy.Metrics}
	for _, p := range Ports() {
		metrics.Ports = append(metrics.Ports, policyPort(PolicyPort{Port: p.ContainerPort, Protocol: p.Protocol}))
	}
	rules := []networkingv1.NetworkPolicyIngressRule{metrics}
	if o.Pods.StaticEndpoints != nil {
		// Peers connect from anywhere, and a node may hide who they are. WireGuard drops what
		// is not of a peer.
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{
			Ports: []networkingv1.NetworkPolicyPort{policyPort(PolicyPort{Port: o.wireGuardPort(), Protocol: corev1.ProtocolUDP})},
		})
	}
	for _, t := range o.NetworkPolicy.Targets {
		// An empty list of ports would mean all ports, and of clients all clients.
		if len(t.Ports) == 0 || len(t.Clients) == 0 {
			continue
		}
		r := networkingv1.NetworkPolicyIngressRule{From: t.Clients}
		for _, p := range t.Ports {
			r.Ports = append(r.Ports, policyPort(p))
		}
		rules = append(rules, r)
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: o.objectMeta(),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: o.PodLabels()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     rules,
		},
	}
}

func policyPort(p PolicyPort) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromInt32(p.Port)), Protocol: ptr.To(p.Protocol)}
}
