// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// TestDiscover checks that Discoveries are written only if enabled, and that the status has a
// message otherwise.
func TestDiscover(t *testing.T) {
	cases := map[string]struct {
		reason   string
		discover bool
		written  int
		message  string
	}{
		"Discover": {reason: "A Discovery for the devices is written.", discover: true, written: 1},
		"Not":      {reason: "No Discovery is written, and the status has a message.", message: "Devices are not discovered: the extension is installed without discoveries. A Deny rule denies every client that meets its other conditions"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := parse.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			object := &gatewayv1alpha1.TailscaleRoutePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "a"}}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(object).WithStatusSubresource(object).Build()
			p := policy("a", "web", denies("x", ir.PolicyMatch{Devices: &ir.DeviceQuery{Tailnet: "corp", Tags: []string{"tag:ci"}}}))
			p.Devices = map[string]int32{"x": 0}
			w := NewWriter(nil, kube, kube, Options{Discover: tc.discover, Log: logging.NewNopLogger()})
			if wait := w.write(t.Context(), ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{p}})); wait != 0 {
				t.Errorf("\n%s\nwrite(...): want no retry", tc.reason)
			}
			l := &tailnetv1alpha1.DiscoveryList{}
			if err := kube.List(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if len(object.Status.Rules) != 1 || len(l.Items) != tc.written {
				t.Fatalf("\n%s\nwant a rule and %d Discoveries, got %v and %v", tc.reason, tc.written, object.Status.Rules, l.Items)
			}
			if diff := cmp.Diff(tc.message, object.Status.Rules[0].Message); diff != "" {
				t.Errorf("\n%s\nmessage of the rule: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOnly checks which policies a dedicated extension writes.
func TestOnly(t *testing.T) {
	team, other := types.NamespacedName{Namespace: "default", Name: "team"}, types.NamespacedName{Namespace: "default", Name: "other"}
	ancestorOf := func(controller gwapiv1.GatewayController) gwapiv1.PolicyAncestorStatus {
		return gwapiv1.PolicyAncestorStatus{AncestorRef: targetRef(ir.PolicyTarget{NamespacedName: team}), ControllerName: controller}
	}
	const own = ControllerName + "-team"
	cases := map[string]struct {
		reason   string
		served   []types.NamespacedName
		previous gatewayv1alpha1.TailscaleRoutePolicyStatus

		// controllers are those of the ancestors afterwards, and rules is the number of rules.
		controllers []gwapiv1.GatewayController
		rules       int
	}{
		"Alone":     {reason: "It writes a policy that no other extension writes.", served: []types.NamespacedName{team}, controllers: []gwapiv1.GatewayController{own}, rules: 1},
		"Elsewhere": {reason: "It does not write a policy that is not attached to its Gateway.", served: nil},
		"Installed": {
			reason: "It removes its ancestors if the installed extension writes the policy, and keeps the rules of that extension.", served: []types.NamespacedName{team},
			previous:    gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{ancestorOf(ControllerName), ancestorOf(own)}, Rules: []gatewayv1alpha1.RoutePolicyRuleStatus{{Name: "y"}, {Name: "z"}}},
			controllers: []gwapiv1.GatewayController{ControllerName}, rules: 2,
		},
		"First":  {reason: "Of two dedicated extensions the first by name writes the policy.", served: []types.NamespacedName{team}, previous: gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{ancestorOf(ControllerName + "-a")}}, controllers: []gwapiv1.GatewayController{ControllerName + "-a"}},
		"Second": {reason: "The ancestors of the second extension do not prevent it.", served: []types.NamespacedName{team}, previous: gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{ancestorOf(ControllerName + "-z")}}, controllers: []gwapiv1.GatewayController{own, ControllerName + "-z"}, rules: 1},
		"Moved": {
			reason: "It removes its ancestors of a policy that is no longer attached to its Gateway.", served: nil,
			previous:    gatewayv1alpha1.TailscaleRoutePolicyStatus{Ancestors: []gwapiv1.PolicyAncestorStatus{ancestorOf(own), ancestorOf("other.example.com/x")}, Rules: []gatewayv1alpha1.RoutePolicyRuleStatus{{Name: "x"}}},
			controllers: []gwapiv1.GatewayController{"other.example.com/x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := parse.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			object := &gatewayv1alpha1.TailscaleRoutePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "a"}, Status: tc.previous}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(object).WithStatusSubresource(object).Build()
			p := policy("a", "web", denies("x"))
			p.Served = tc.served
			p.Targets[0].Gateways = []types.NamespacedName{other, team}
			w := NewWriter(nil, kube, kube, Options{Gateway: &team, Log: logging.NewNopLogger()})
			w.write(t.Context(), ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{p}}))
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			var controllers []gwapiv1.GatewayController
			for _, a := range object.Status.Ancestors {
				controllers = append(controllers, a.ControllerName)
				if a.AncestorRef.Name == "other" {
					t.Error("the status has a Gateway of another extension")
				}
			}
			if diff := cmp.Diff(tc.controllers, controllers); diff != "" {
				t.Errorf("\n%s\ncontrollers: -want, +got:\n%s", tc.reason, diff)
			}
			if n := len(object.Status.Rules); n != tc.rules {
				t.Errorf("\n%s\n%d rules, want %d", tc.reason, n, tc.rules)
			}
		})
	}
}
