// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// slice returns an EndpointSlice of a Service that leads to the imported Service web.
func slice(service string) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: service + "-x",
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
				mcsv1beta1.LabelServiceName: "web", mcsv1beta1.LabelSourceCluster: "two",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.64.0.9"}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("tcp"), Port: ptr.To[int32](30193)}},
	}
}

func TestSlices(t *testing.T) {
	facts := func(change func(*Facts)) Facts {
		f := export("web", nil)
		f.Exports, f.Records = nil, map[string][]Exporter{"web": {exporter("two", 5)}}
		f.Imports = map[string]*mcsv1beta1.ServiceImport{"web": {ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "i", Labels: labels("web")}}}
		f.Slices = []discoveryv1.EndpointSlice{slice("clusterset-web")}
		f.Reached = map[string]*corev1.Service{"web": {Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.9"}}}}
		change(&f)
		return f
	}
	copied := func() *discoveryv1.EndpointSlice {
		s := slice("clusterset-web")
		s.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
		s.Name = "clusterset-web-x-import"
		s.Labels = map[string]string{
			discoveryv1.LabelManagedBy:  "tailscale-gateway-multicluster",
			labelProxyName:              "tailscale-gateway-multicluster",
			mcsv1beta1.LabelServiceName: "web", mcsv1beta1.LabelSourceCluster: "two",
		}
		s.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceImport", Name: "web", UID: "i",
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}
		return &s
	}
	cases := map[string]struct {
		reason string
		facts  Facts
		want   []*discoveryv1.EndpointSlice
	}{
		"Copy": {
			reason: "A slice of the Service that leads to an imported one is copied without that Service's name.",
			facts:  facts(func(*Facts) {}), want: []*discoveryv1.EndpointSlice{copied()},
		},
		"Copies": {
			reason: "A copy is not copied.",
			facts:  facts(func(f *Facts) { f.Slices = append(f.Slices, *copied()) }), want: []*discoveryv1.EndpointSlice{copied()},
		},
		"PortName": {
			reason: "A port has the name of the ServiceImport, not that of the Service that leads there.",
			facts: facts(func(f *Facts) {
				f.Records = map[string][]Exporter{"web": {exporter("two", 5, ports(tailnetv1alpha1.ExportedPort{Port: 80}))}}
				f.Slices[0].Ports[0].Name = ptr.To("tcp-80")
				f.Reached["web"].Spec.Ports = []corev1.ServicePort{{Name: "tcp-80", Port: 80}}
			}),
			want: func() []*discoveryv1.EndpointSlice {
				s := copied()
				s.Ports[0].Name = ptr.To("")
				return []*discoveryv1.EndpointSlice{s}
			}(),
		},
		"OtherService": {
			reason: "Another Service with the label does not lead to the imported one.",
			facts:  facts(func(f *Facts) { f.Slices = []discoveryv1.EndpointSlice{slice("web")} }),
		},
		"NotThereYet": {
			reason: "A copy belongs to a ServiceImport that exists.",
			facts:  facts(func(f *Facts) { f.Imports = nil }),
		},
		"Unexported": {
			reason: "Without an exporter there is no copy.",
			facts:  facts(func(f *Facts) { f.Records = nil }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := New(tc.facts).Slices
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
			}
			for i := range got {
				if !SameSlice(got[i], tc.want[i]) {
					t.Errorf("\n%s\nSameSlice(...): want true", tc.reason)
				}
			}
		})
	}
}
