// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// DNSService is the Service at the address that pods ask, without a selector.
func (c Cluster) DNSService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-dns", Labels: map[string]string{"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: c.DNS.String(),
			Ports: []corev1.ServicePort{
				{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
				{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP},
			},
		},
	}
}

// DNSEndpoints returns the endpoints of DNSService: the process on the node.
func (c Cluster) DNSEndpoints() *discoveryv1.EndpointSlice {
	port := func(name string, p corev1.Protocol) discoveryv1.EndpointPort {
		n := int32(53)
		return discoveryv1.EndpointPort{Name: &name, Port: &n, Protocol: &p}
	}
	ready := true
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-dns", Labels: map[string]string{
			discoveryv1.LabelServiceName: "kube-dns",
			discoveryv1.LabelManagedBy:   "lab.gateway.tailscale.com",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{c.Node.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{port("dns", corev1.ProtocolUDP), port("dns-tcp", corev1.ProtocolTCP)},
	}
}

// ApplyDNS creates the objects of the cluster's DNS. Existing objects are not changed.
func (c Cluster) ApplyDNS(ctx context.Context, k kubernetes.Interface) error {
	create := metav1.CreateOptions{}
	steps := []struct {
		kind string
		do   func() error
	}{
		{"Service", func() error {
			_, err := k.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, c.DNSService(), create)
			return err
		}},
		{"EndpointSlice", func() error {
			_, err := k.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Create(ctx, c.DNSEndpoints(), create)
			return err
		}},
	}
	for _, s := range steps {
		if err := s.do(); err != nil && !kerrors.IsAlreadyExists(err) {
			return errors.Wrapf(err, "cannot create %s of the cluster's DNS", s.kind)
		}
	}
	return nil
}
