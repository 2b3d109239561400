// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

func TestNetworkPolicy(t *testing.T) {
	ports := func(ns ...int32) []networkingv1.NetworkPolicyPort {
		var out []networkingv1.NetworkPolicyPort
		for _, n := range ns {
			out = append(out, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromInt32(n)), Protocol: ptr.To(corev1.ProtocolTCP)})
		}
		return out
	}
	shop := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}}}
	cases := map[string]struct {
		reason string
		policy NetworkPolicyOptions
		want   []networkingv1.NetworkPolicyIngressRule
	}{
		"Nothing": {
			reason: "By default, only the metrics ports are open to all",
			want:   []networkingv1.NetworkPolicyIngressRule{{Ports: ports(sidecar.PortAgent, sidecar.PortContainerboot)}},
		},
		"NoPorts": {
			reason: "A rule without ports would open all of them",
			policy: NetworkPolicyOptions{Metrics: shop, Targets: []PolicyTarget{{Clients: shop}}},
			want:   []networkingv1.NetworkPolicyIngressRule{{From: shop, Ports: ports(sidecar.PortAgent, sidecar.PortContainerboot)}},
		},
		"NoClients": {
			reason: "A rule without clients would let in all",
			policy: NetworkPolicyOptions{Targets: []PolicyTarget{
				{Ports: []PolicyPort{{Port: 10000, Protocol: corev1.ProtocolTCP}}},
				{Ports: []PolicyPort{{Port: 10001, Protocol: corev1.ProtocolTCP}}, Clients: shop},
			}},
			want: []networkingv1.NetworkPolicyIngressRule{
				{Ports: ports(sidecar.PortAgent, sidecar.PortContainerboot)},
				{From: shop, Ports: ports(10001)},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.NetworkPolicy = tc.policy
			got := NetworkPolicy(o).Spec
			if diff := cmp.Diff(tc.want, got.Ingress); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			// An allowance would undo another policy's denial.
			if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, got.PolicyTypes); diff != "" || len(got.Egress) > 0 {
				t.Errorf("the policy must say nothing about outgoing traffic, got %v: -want, +got:\n%s", got.Egress, diff)
			}
		})
	}
}
