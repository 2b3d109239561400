// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestParseService checks which parts of a Service count, and that the informers' cache keeps them.
func TestParseService(t *testing.T) {
	cases := map[string]struct {
		reason  string
		service corev1.Service
		want    Service
	}{
		"Plain":       {reason: "A Service without a selector has EndpointSlices that people write."},
		"Selector":    {reason: "Kubernetes writes the EndpointSlices of a Service with a selector.", service: corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "a"}}}, want: Service{Selects: true}},
		"Distributed": {reason: "Each traffic distribution should prefer near endpoints, as with Envoy Gateway.", service: corev1.Service{Spec: corev1.ServiceSpec{TrafficDistribution: ptr.To(corev1.ServiceTrafficDistributionPreferSameNode)}}, want: Service{PreferZone: 1}},
		"Topology":    {reason: "Topology aware routing should need three endpoints, as with Envoy Gateway.", service: corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.AnnotationTopologyMode: "Auto", "other": "x"}}}, want: Service{PreferZone: 3}},
		"Both": {
			reason: "A traffic distribution should take precedence.", want: Service{PreferZone: 1},
			service: corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.AnnotationTopologyMode: "auto"}}, Spec: corev1.ServiceSpec{TrafficDistribution: ptr.To(corev1.ServiceTrafficDistributionPreferClose)}},
		},
		"Disabled": {reason: "Another mode should change nothing.", service: corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.AnnotationTopologyMode: "Disabled"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Family = discoveryv1.AddressTypeIPv4
			for _, source := range []string{"API server", "cache"} {
				if diff := cmp.Diff(&tc.want, ParseService(&tc.service)); diff != "" {
					t.Errorf("%s\nfrom the %s: -want, +got:\n%s", tc.reason, source, diff)
				}
				if _, err := Strip(&tc.service); err != nil {
					t.Fatal(err)
				}
			}
			if len(tc.service.Annotations) > 1 {
				t.Errorf("the cache keeps %v", tc.service.Annotations)
			}
		})
	}
}
