// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// service returns a Service of type LoadBalancer with these addresses. The order of names
// is the order of age.
func service(name string, addresses ...string) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(int64(name[0]), 0)},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	}
	for _, a := range addresses {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
	}
	return s
}

func TestAssign(t *testing.T) {
	clusterIP := service("a", "10.201.0.1")
	clusterIP.Spec.Type = corev1.ServiceTypeClusterIP
	foreign := service("a", "192.0.2.1")
	foreign.Spec.Type = corev1.ServiceTypeClusterIP
	class := "tailscale"
	classed := service("a")
	classed.Spec.LoadBalancerClass = &class
	at := metav1.NewTime(time.Unix(1, 0))
	deleted := service("a", "10.201.0.1")
	deleted.DeletionTimestamp = &at

	cases := map[string]struct {
		reason string
		all    []*corev1.Service
		want   map[string][]string
	}{
		"New": {
			reason: "New Services should get the lowest addresses, the oldest first.",
			all:    []*corev1.Service{service("b"), service("a")},
			want:   map[string][]string{"a": {"10.201.0.1"}, "b": {"10.201.0.2"}},
		},
		"Keep": {
			reason: "A Service should keep its address, and others should get other addresses.",
			all:    []*corev1.Service{service("a"), service("b", "10.201.0.1"), service("c")},
			want:   map[string][]string{"a": {"10.201.0.2"}, "c": {"10.201.0.3"}},
		},
		"Twice": {
			reason: "Of two Services with one address the younger should get another.",
			all:    []*corev1.Service{service("a", "10.201.0.2"), service("b", "10.201.0.2")},
			want:   map[string][]string{"b": {"10.201.0.1"}},
		},
		"OtherRange": {
			reason: "An address of another range should be replaced, because it has no route.",
			all:    []*corev1.Service{service("a", "192.0.2.1")},
			want:   map[string][]string{"a": {"10.201.0.1"}},
		},
		"NoLongerBalanced": {
			reason: "A Service that is of another type now should lose its address.",
			all:    []*corev1.Service{clusterIP},
			want:   map[string][]string{"a": nil},
		},
		"Foreign": {
			reason: "A status that others wrote should stay.",
			all:    []*corev1.Service{foreign},
			want:   map[string][]string{},
		},
		"Class": {
			reason: "A Service with a class should belong to that class's controller.",
			all:    []*corev1.Service{classed},
			want:   map[string][]string{},
		},
		"Deleted": {
			reason: "A Service under deletion should lose its address to others.",
			all:    []*corev1.Service{deleted, service("b")},
			want:   map[string][]string{"a": nil, "b": {"10.201.0.1"}},
		},
		"UsedUp": {
			reason: "When all addresses are taken the youngest should get none.",
			all:    []*corev1.Service{service("a"), service("b"), service("c"), service("d")},
			want:   map[string][]string{"a": {"10.201.0.1"}, "b": {"10.201.0.2"}, "c": {"10.201.0.3"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got := map[string][]string{}
				for _, s := range Assign(netip.MustParsePrefix("10.201.0.0/30"), tc.all) {
					got[s.Name] = nil
					for _, i := range s.Status.LoadBalancer.Ingress {
						got[s.Name] = append(got[s.Name], i.IP)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\nAssign(...): -want, +got:\n%s", tc.reason, diff)
				}
				// The order in which Services are listed should not matter.
				slices.Reverse(tc.all)
			}
		})
	}
}
