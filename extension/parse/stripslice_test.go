// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// TestStripEndpointSlice checks that an EndpointSlice means the same without what is removed, and that
// names of pods and nodes do not remain in memory.
func TestStripEndpointSlice(t *testing.T) {
	pod := func(address string, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{address, "192.0.2.99"}, Zone: ptr.To("z1"), NodeName: ptr.To("node"), Hostname: ptr.To("host"),
			Conditions:         discoveryv1.EndpointConditions{Ready: ready, Serving: ptr.To(true), Terminating: ptr.To(false)},
			TargetRef:          &corev1.ObjectReference{Kind: "Pod", Namespace: "team-a", Name: "web-0", UID: "b2f1"},
			DeprecatedTopology: map[string]string{"a": "b"},
			Hints:              &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z1"}}},
		}
	}
	full := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Namespace: "team-a", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{pod("192.0.2.1", ptr.To(true)), pod("192.0.2.2", ptr.To(false)), pod("010.0.0.6", nil), {}},
	}
	allowed := func(netip.Addr) bool { return false }
	want := ParseEndpointSlice(full, allowed)
	if len(want.Endpoints) != 2 {
		t.Fatalf("want 2 endpoints, got %v", want.Endpoints)
	}
	stripped := full.DeepCopy()
	for range 2 {
		// An informer may strip an object again.
		if _, err := Strip(stripped); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, ParseEndpointSlice(stripped, allowed)); diff != "" {
		t.Errorf("A stripped EndpointSlice should mean the same: -want, +got:\n%s", diff)
	}
	truePtr, falsePtr := ptr.To(true), ptr.To(false)
	first := discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}, Zone: ptr.To("z1"), Conditions: discoveryv1.EndpointConditions{Ready: truePtr, Serving: truePtr, Terminating: falsePtr}}
	if diff := cmp.Diff(first, stripped.Endpoints[0]); diff != "" {
		t.Errorf("Only what is read should remain: -want, +got:\n%s", diff)
	}
	if a, b := stripped.Endpoints[0], stripped.Endpoints[1]; a.Zone != b.Zone || a.Conditions.Serving != b.Conditions.Serving {
		t.Error("Endpoints should share equal zones and conditions")
	}
}

// TestStripService checks that a Service means the same without what is removed.
func TestStripService(t *testing.T) {
	full := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "team-a", Annotations: map[string]string{corev1.AnnotationTopologyMode: "Auto", "other": "x"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "192.0.2.10", ClusterIPs: []string{"192.0.2.10"},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, SessionAffinity: corev1.ServiceAffinityClientIP, ExternalIPs: []string{"198.51.100.1"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web"), NodePort: 30080, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To(appProtocolH2C)}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "198.51.100.2"}}}},
	}
	want := ParseService(full)
	stripped := full.DeepCopy()
	if _, err := Strip(stripped); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, ParseService(stripped)); diff != "" {
		t.Errorf("A stripped Service should mean the same: -want, +got:\n%s", diff)
	}
	spec := corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "192.0.2.10", ClusterIPs: []string{"192.0.2.10"},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Ports:      []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To(appProtocolH2C)}},
	}
	if diff := cmp.Diff(spec, stripped.Spec); diff != "" {
		t.Errorf("Only what is read should remain: -want, +got:\n%s", diff)
	}
}
