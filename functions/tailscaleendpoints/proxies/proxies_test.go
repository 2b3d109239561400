// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

func TestWantedGroups(t *testing.T) {
	endpoints := []gatewayv1alpha1.Endpoint{{Name: "db", TailscaleIP: "100.64.0.9"}}
	cases := map[string]struct {
		reason string
		spec   gatewayv1alpha1.TailscaleEndpointsSpec
		hosts  bool
		want   []string
	}{
		"None": {
			reason: "Without targets, the proxies are for services.",
			want:   []string{proxy.DirectionIngress},
		},
		"Targets": {
			reason: "Targets need egress proxies.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: endpoints},
			want:   []string{proxy.DirectionEgress},
		},
		"Discovery": {
			reason: "So do targets that are found.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{AutoDiscovery: &gatewayv1alpha1.AutoDiscovery{}},
			want:   []string{proxy.DirectionEgress},
		},
		"Service": {
			reason: "A service to host adds ingress proxies.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: endpoints},
			hosts:  true,
			want:   []string{proxy.DirectionIngress, proxy.DirectionEgress},
		},
		"DNS": {
			reason: "Clients of the tailnet send queries to ingress proxies.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: endpoints, DNS: &gatewayv1alpha1.EndpointsDNS{}},
			want:   []string{proxy.DirectionIngress, proxy.DirectionEgress},
		},
		"Listed": {
			reason: "A direction that the spec lists is the only one.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Endpoints: endpoints, Proxy: gatewayv1alpha1.Proxy{ConnectionType: gatewayv1alpha1.ConnectionTypeIngress}},
			hosts:  true,
			want:   []string{proxy.DirectionIngress},
		},
		"Bidirectional": {
			reason: "The spec may list both.",
			spec:   gatewayv1alpha1.TailscaleEndpointsSpec{Proxy: gatewayv1alpha1.Proxy{ConnectionType: gatewayv1alpha1.ConnectionTypeBidirectional}},
			want:   []string{proxy.DirectionIngress, proxy.DirectionEgress},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range New(Facts{Owner: compose.Owner{Name: "web"}, Spec: tc.spec, Hosts: tc.hosts}).WantedGroups() {
				got = append(got, g.Direction)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nWantedGroups(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPodsReady(t *testing.T) {
	set := func(generation, observed int64, pods tailnetv1alpha1.StatefulSetSummary) *tailnetv1alpha1.MachineSet {
		out := &tailnetv1alpha1.MachineSet{}
		out.Generation, out.Status.ObservedGeneration = generation, observed
		pods.Observed = true
		out.Status.StatefulSet = &pods
		return out
	}
	cases := map[string]struct {
		reason string
		set    *tailnetv1alpha1.MachineSet
		want   bool
	}{
		"None":    {reason: "There are no pods yet."},
		"Ready":   {reason: "All pods are ready and have the latest template.", set: set(1, 1, tailnetv1alpha1.StatefulSetSummary{Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2}), want: true},
		"Waiting": {reason: "A pod is not ready.", set: set(1, 1, tailnetv1alpha1.StatefulSetSummary{Replicas: 2, ReadyReplicas: 1, UpdatedReplicas: 2})},
		"Rolling": {reason: "A pod has an older template.", set: set(1, 1, tailnetv1alpha1.StatefulSetSummary{Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 1})},
		"Failed":  {reason: "The StatefulSet differs from the spec.", set: set(1, 1, tailnetv1alpha1.StatefulSetSummary{Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, Message: "No rights"})},
		"Older":   {reason: "The status is that of an older set.", set: set(2, 1, tailnetv1alpha1.StatefulSetSummary{Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2})},
		"Shrinks": {reason: "The pods that stay are ready while others are to be removed.", set: set(2, 1, tailnetv1alpha1.StatefulSetSummary{Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: 3}), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := New(Facts{
				Owner:       compose.Owner{Name: "web"},
				Spec:        gatewayv1alpha1.TailscaleEndpointsSpec{Proxy: gatewayv1alpha1.Proxy{Replicas: ptr.To[int32](2)}},
				MachineSets: map[string]*tailnetv1alpha1.MachineSet{proxy.DirectionIngress: tc.set},
			})
			if got := p.Ingress.PodsReady(); got != tc.want {
				t.Errorf("\n%s\nPodsReady(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
