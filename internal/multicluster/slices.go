// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// labelProxyName keeps kube-proxy from EndpointSlices that belong to no Service (pkg/proxy/config of Kubernetes).
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// slices returns the EndpointSlices of the ServiceImports: a copy of each slice of the Services that lead to them.
// Those of Services are not enough, because Envoy Gateway takes a slice that has the name of a Service for none of a
// ServiceImport (internal/gatewayapi/contexts.go of Envoy Gateway, SetEndpointSlicesForBackend).
func (f Facts) slices(imports []*mcsv1beta1.ServiceImport) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for i := range f.Slices {
		s := &f.Slices[i]
		name := s.Labels[mcsv1beta1.LabelServiceName]
		if Copied(s) || s.Labels[discoveryv1.LabelServiceName] != names.EndpointService(Proxies, name) {
			continue
		}
		owner := slices.IndexFunc(imports, func(i *mcsv1beta1.ServiceImport) bool {
			return i.GetName() == name && i.Spec.Type == mcsv1beta1.ClusterSetIP
		})
		existing := f.Imports[name]
		if owner < 0 || existing == nil || f.Reached[name] == nil {
			continue
		}
		copied := &discoveryv1.EndpointSlice{
			TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: f.Namespace, Name: names.Child(s.GetName(), "import"),
				Labels: map[string]string{
					discoveryv1.LabelManagedBy:  meta.ManagedByMulticluster,
					labelProxyName:              meta.ManagedByMulticluster,
					mcsv1beta1.LabelServiceName: name,
				},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceImportKindName, Name: name, UID: existing.GetUID(),
					Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
				}},
			},
			AddressType: s.AddressType, Endpoints: s.Endpoints, Ports: f.portsOf(imports[owner], s),
		}
		if cluster := s.Labels[mcsv1beta1.LabelSourceCluster]; cluster != "" {
			copied.Labels[mcsv1beta1.LabelSourceCluster] = cluster
		}
		out = append(out, copied)
	}
	slices.SortFunc(out, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// portsOf returns the ports of a slice with the names that they have in the ServiceImport, by which Envoy Gateway
// finds them. In the Service that leads there, ports without a name, or with a long one, have another.
func (f Facts) portsOf(i *mcsv1beta1.ServiceImport, s *discoveryv1.EndpointSlice) []discoveryv1.EndpointPort {
	out := slices.Clone(s.Ports)
	for n := range out {
		service := slices.IndexFunc(f.Reached[i.GetName()].Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == ptr.Deref(out[n].Name, "") })
		if service < 0 {
			continue
		}
		number := f.Reached[i.GetName()].Spec.Ports[service].Port
		imported := slices.IndexFunc(i.Spec.Ports, func(p mcsv1beta1.ServicePort) bool {
			return p.Port == number && p.Protocol == corev1.ProtocolTCP
		})
		if imported >= 0 {
			out[n].Name = ptr.To(i.Spec.Ports[imported].Name)
		}
	}
	return out
}

// Copied reports whether an EndpointSlice is a copy that follows from a plan.
func Copied(s *discoveryv1.EndpointSlice) bool {
	return s.Labels[discoveryv1.LabelManagedBy] == meta.ManagedByMulticluster
}

// SameSlice reports whether an EndpointSlice is as it should be. Other clients may add labels.
func SameSlice(existing, want *discoveryv1.EndpointSlice) bool {
	labels := maps.Clone(existing.Labels)
	maps.Copy(labels, want.Labels)
	return maps.Equal(existing.Labels, labels) && equality.Semantic.DeepEqual(existing.OwnerReferences, want.OwnerReferences) &&
		existing.AddressType == want.AddressType && equality.Semantic.DeepEqual(existing.Endpoints, want.Endpoints) && equality.Semantic.DeepEqual(existing.Ports, want.Ports)
}

// hasSlice reports whether a ServiceImport has an EndpointSlice.
func (f Facts) hasSlice(name string) bool {
	return slices.ContainsFunc(f.Slices, func(s discoveryv1.EndpointSlice) bool {
		return Copied(&s) && s.Labels[mcsv1beta1.LabelServiceName] == name
	})
}
