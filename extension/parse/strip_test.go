// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// TestStripServices checks which fields of the status of a TailscaleServices remain.
func TestStripServices(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   gatewayv1alpha1.BackendKind
		want   gatewayv1alpha1.TailscaleServicesStatus
	}{
		"Gateway": {
			reason: "The DNS name of a service that leads to a Gateway should remain, to detect loops.", kind: gatewayv1alpha1.BackendKindGateway,
			want: gatewayv1alpha1.TailscaleServicesStatus{VIPServiceStatus: &gatewayv1alpha1.ServiceVIPStatus{DNSName: "a.x.ts.net"}},
		},
		"Service": {reason: "The DNS name of other services should be removed: the extension does not read it.", kind: gatewayv1alpha1.BackendKindService},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &gatewayv1alpha1.TailscaleServices{}
			o.Spec.Backends = []gatewayv1alpha1.Backend{{Kind: tc.kind, Name: "a"}}
			o.Status.VIPServiceStatus = &gatewayv1alpha1.ServiceVIPStatus{Created: true, DNSName: "a.x.ts.net", BackendCount: 1}
			for range 2 {
				if _, err := Strip(o); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, o.Status); diff != "" {
				t.Errorf("\n%s\nstrip(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStripStatus checks which fields of the statuses remain.
func TestStripStatus(t *testing.T) {
	at := metav1.Now()
	route := &gwapiv1.HTTPRoute{Status: gwapiv1.HTTPRouteStatus{RouteStatus: gwapiv1.RouteStatus{Parents: []gwapiv1.RouteParentStatus{{
		ParentRef: gwapiv1.ParentReference{Name: "gw"},
		Conditions: []metav1.Condition{
			{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", Message: "Route is accepted", LastTransitionTime: at, ObservedGeneration: 3},
			{Type: "ResolvedRefs", Status: metav1.ConditionFalse, Reason: "BackendNotFound", Message: "No Service", LastTransitionTime: at},
			{Type: "Other", Status: metav1.ConditionTrue},
		},
	}}}}}
	endpoints := &gatewayv1alpha1.TailscaleEndpoints{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{meta.LabelGateway: "gw"}},
		Status: gatewayv1alpha1.TailscaleEndpointsStatus{
			Devices:             []gatewayv1alpha1.DeviceStatus{{Hostname: "a", TailscaleFQDN: "a.x.ts.net"}, {Hostname: "b", TailscaleFQDN: "b.x.ts.net"}},
			DiscoveredEndpoints: []gatewayv1alpha1.DiscoveredEndpoint{{Name: "nas", Source: "Devices", TailscaleFQDN: "nas.x.ts.net", TailscaleIP: "100.64.0.1", Health: "Online"}},
			EgressTargets:       []gatewayv1alpha1.EgressTargetStatus{{Name: "nas/80", Address: "100.64.0.1:80", Service: "gw-nas:80", ReadyProxies: 2}},
		},
	}
	endpoints.Status.SetConditions(
		xpv2.Condition{Type: meta.TypeDiscoverySuccessful, Status: corev1.ConditionFalse, Message: "no", LastTransitionTime: at},
		xpv2.Condition{Type: meta.TypeEgressReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
	)
	bare := endpoints.DeepCopy()
	bare.Labels = nil
	searched := endpoints.DeepCopy()
	searched.Status.SetConditions(xpv2.Condition{Type: meta.TypeDiscoverySuccessful, Status: corev1.ConditionTrue, Message: "yes", LastTransitionTime: at})
	for range 2 {
		// An informer may strip an object again.
		for _, o := range []client.Object{route, endpoints, bare, searched} {
			if _, err := Strip(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantRoute := []metav1.Condition{
		{Type: "Accepted", Status: metav1.ConditionTrue},
		{Type: "ResolvedRefs", Status: metav1.ConditionFalse, Reason: "BackendNotFound", Message: "No Service"},
	}
	if diff := cmp.Diff(wantRoute, route.Status.Parents[0].Conditions); diff != "" {
		t.Errorf("conditions of a route's parents: -want, +got\n%s", diff)
	}
	want := gatewayv1alpha1.TailscaleEndpointsStatus{
		Devices:             []gatewayv1alpha1.DeviceStatus{{TailscaleFQDN: "a.x.ts.net"}},
		DiscoveredEndpoints: []gatewayv1alpha1.DiscoveredEndpoint{{Name: "nas", Source: "Devices", TailscaleFQDN: "nas.x.ts.net", Health: "Online"}},
		EgressTargets:       []gatewayv1alpha1.EgressTargetStatus{{Name: "nas/80", Service: "gw-nas:80"}},
	}
	want.SetConditions(xpv2.Condition{Type: meta.TypeDiscoverySuccessful, Status: corev1.ConditionFalse})
	if diff := cmp.Diff(want, endpoints.Status); diff != "" {
		t.Errorf("status of a Gateway's endpoints: -want, +got\n%s", diff)
	}
	if got := searched.Status.GetCondition(meta.TypeDiscoverySuccessful); got.Status != corev1.ConditionTrue || got.Message != "" {
		t.Errorf("discovery of a Gateway's endpoints: want condition True, got %v", got)
	}
	if diff := cmp.Diff(gatewayv1alpha1.TailscaleEndpointsStatus{}, bare.Status); diff != "" {
		t.Errorf("status of other endpoints: -want, +got\n%s", diff)
	}
}

// TestStripAncestors checks that the cache keeps what the extension wrote into the status of a
// BackendTLSPolicy, and how many entries others have.
func TestStripAncestors(t *testing.T) {
	conditions := []metav1.Condition{{Type: "Accepted"}}
	ref := gwapiv1.ParentReference{Name: "gw"}
	p := &gwapiv1.BackendTLSPolicy{Status: gwapiv1.PolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{
		{ControllerName: "gateway.envoyproxy.io/x", AncestorRef: ref, Conditions: conditions},
		{ControllerName: ExtensionController, AncestorRef: ref, Conditions: conditions},
		{ControllerName: ExtensionController + "-team", AncestorRef: ref, Conditions: conditions},
		{ControllerName: ExtensionController + "s.example", AncestorRef: ref, Conditions: conditions},
	}}}
	if _, err := Strip(p); err != nil {
		t.Fatal(err)
	}
	want := []gwapiv1.PolicyAncestorStatus{
		{ControllerName: "gateway.envoyproxy.io/x"},
		{ControllerName: ExtensionController, AncestorRef: ref, Conditions: conditions},
		{ControllerName: ExtensionController + "-team", AncestorRef: ref, Conditions: conditions},
		{ControllerName: ExtensionController + "s.example"},
	}
	if diff := cmp.Diff(want, p.Status.Ancestors); diff != "" {
		t.Errorf("Strip(...): -want, +got:\n%s", diff)
	}
}
