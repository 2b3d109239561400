// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestCandidates(t *testing.T) {
	newService := func(namespace string, kind corev1.ServiceType, clusterIP string, external ...string) corev1.Service {
		s := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}
		s.Spec.Type, s.Spec.ClusterIP, s.Spec.ClusterIPs = kind, clusterIP, []string{clusterIP}
		for _, ip := range external {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
		return s
	}
	deleted := newService("eg", corev1.ServiceTypeClusterIP, "10.96.0.7")
	deleted.DeletionTimestamp = &metav1.Time{}
	requested := newService("eg", corev1.ServiceTypeLoadBalancer, "10.96.0.7", "192.0.2.7")
	requested.Spec.ExternalIPs = []string{"198.51.100.1"}
	cases := map[string]struct {
		reason    string
		addresses []string
		services  []corev1.Service
		want      []string // Namespaces.
		refused   []string
	}{
		"EnvoyGateways": {
			reason:   "A Service in Envoy Gateway's namespace is used while the Gateway has no address.",
			services: []corev1.Service{newService("eg", corev1.ServiceTypeLoadBalancer, "10.96.0.7")}, want: []string{"eg"},
		},
		"Own": {
			reason:   "A Service in the Gateway's namespace is used, because Envoy Gateway may run its proxies there.",
			services: []corev1.Service{newService("infra", corev1.ServiceTypeClusterIP, "10.96.0.7")}, want: []string{"infra"},
		},
		"Elsewhere": {
			reason:    "A Service in another namespace is refused, even with the Gateway's address.",
			addresses: []string{"10.96.0.7"},
			services:  []corev1.Service{newService("team", corev1.ServiceTypeClusterIP, "10.96.0.7")}, refused: []string{"team"},
		},
		"ElsewhereBeside": {
			reason:   "A Service in another namespace does not affect the others.",
			services: []corev1.Service{newService("team", corev1.ServiceTypeClusterIP, "10.96.0.7"), newService("eg", corev1.ServiceTypeClusterIP, "10.96.0.8")},
			want:     []string{"eg"}, refused: []string{"team"},
		},
		"LoadBalancer": {
			reason:    "A load balancer's address is the Gateway's.",
			addresses: []string{"192.0.2.7"},
			services:  []corev1.Service{newService("eg", corev1.ServiceTypeLoadBalancer, "10.96.0.7", "192.0.2.7"), newService("infra", corev1.ServiceTypeClusterIP, "10.96.0.9")},
			want:      []string{"eg"}, refused: []string{"infra"},
		},
		"AskedFor": {
			reason:    "An address in the Gateway's spec is the Gateway's.",
			addresses: []string{"198.51.100.1"},
			services:  []corev1.Service{requested}, want: []string{"eg"},
		},
		"AskedForInCluster": {
			reason:    "A cluster IP is the Gateway's if its spec has host names.",
			addresses: []string{"10.96.0.7"},
			services:  []corev1.Service{newService("eg", corev1.ServiceTypeLoadBalancer, "10.96.0.7", "192.0.2.7")}, want: []string{"eg"},
		},
		"OtherAddress": {
			reason:    "A Service whose address the Gateway does not have is refused.",
			addresses: []string{"192.0.2.7"},
			services:  []corev1.Service{newService("infra", corev1.ServiceTypeLoadBalancer, "10.96.0.7", "192.0.2.99")}, refused: []string{"infra"},
		},
		"Nodes": {
			reason:    "Addresses of nodes are not the Service's.",
			addresses: []string{"203.0.113.1"},
			services:  []corev1.Service{newService("eg", corev1.ServiceTypeNodePort, "10.96.0.7")}, want: []string{"eg"},
		},
		"NodesBeside": {
			reason:    "A Service whose address the Gateway has takes precedence.",
			addresses: []string{"192.0.2.7"},
			services:  []corev1.Service{newService("infra", corev1.ServiceTypeNodePort, "10.96.0.9"), newService("eg", corev1.ServiceTypeLoadBalancer, "10.96.0.7", "192.0.2.7")},
			want:      []string{"eg"}, refused: []string{"infra"},
		},
		"Pending": {
			reason:    "A load balancer that has no address yet may be the Gateway's.",
			addresses: []string{"192.0.2.7"},
			services:  []corev1.Service{newService("eg", corev1.ServiceTypeLoadBalancer, "10.96.0.7")}, want: []string{"eg"},
		},
		"Headless": {
			reason:    "A Service without any address may be the Gateway's.",
			addresses: []string{"192.0.2.7"},
			services:  []corev1.Service{newService("eg", corev1.ServiceTypeClusterIP, corev1.ClusterIPNone)}, want: []string{"eg"},
		},
		"Deleted": {
			reason:   "A Service that is being deleted is omitted.",
			services: []corev1.Service{deleted},
		},
	}
	namespaces := func(services []corev1.Service) []string {
		var out []string
		for _, s := range services {
			out = append(out, s.GetNamespace())
		}
		return out
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := &gwapiv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "eg"}}
			for _, a := range tc.addresses {
				g.Status.Addresses = append(g.Status.Addresses, gwapiv1.GatewayStatusAddress{Value: a})
			}
			got, refused := candidates(g, tc.services, []string{"eg"})
			if diff := cmp.Diff(tc.want, namespaces(got)); diff != "" {
				t.Errorf("\n%s\ncandidates(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.refused, namespaces(refused)); diff != "" {
				t.Errorf("\n%s\ncandidates(...) refused: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
