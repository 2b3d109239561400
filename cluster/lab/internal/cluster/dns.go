// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

// DNSService returns the Service, without a selector, that pods use for DNS.
func (c Cluster) DNSService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-dns", Labels: map[string]string{"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}},
		Spec: corev1.ServiceSpec{
			ClusterIP:      c.DNS.String(),
			ClusterIPs:     strings.Split(c.each(func(n plan.Network) string { return n.DNS.String() }), ","),
			IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Ports: []corev1.ServicePort{
				{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
				{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP},
			},
		},
	}
}

// DNSEndpoints returns the endpoints of DNSService: the process on the node, for each family.
func (c Cluster) DNSEndpoints() []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for _, n := range c.Networks() {
		out = append(out, dnsEndpoints(n))
	}
	return out
}

func dnsEndpoints(n plan.Network) *discoveryv1.EndpointSlice {
	port := func(name string, p corev1.Protocol) discoveryv1.EndpointPort {
		n := int32(53)
		return discoveryv1.EndpointPort{Name: &name, Port: &n, Protocol: &p}
	}
	ready := true
	name, family := "kube-dns", discoveryv1.AddressTypeIPv4
	if n.Node.Is6() {
		name, family = "kube-dns-ipv6", discoveryv1.AddressTypeIPv6
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: "kube-dns",
			discoveryv1.LabelManagedBy:   "lab.gateway.tailscale.com",
		}},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{n.Node.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{port("dns", corev1.ProtocolUDP), port("dns-tcp", corev1.ProtocolTCP)},
	}
}

// ApplyDNS creates the objects of the cluster's DNS. Existing objects are not changed.
func (c Cluster) ApplyDNS(ctx context.Context, k kubernetes.Interface) error {
	create := metav1.CreateOptions{}
	if _, err := k.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, c.DNSService(), create); err != nil && !kerrors.IsAlreadyExists(err) {
		return errors.Wrap(err, "cannot create Service of the cluster's DNS")
	}
	for _, s := range c.DNSEndpoints() {
		if _, err := k.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Create(ctx, s, create); err != nil && !kerrors.IsAlreadyExists(err) {
			return errors.Wrap(err, "cannot create EndpointSlice of the cluster's DNS")
		}
	}
	return nil
}
