// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extensionpods

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestNew(t *testing.T) {
	grant, err := allow.Of(&tailnetv1alpha1.AllowedNamespaces{From: tailnetv1alpha1.NamespacesFromGrants, Grants: []tailnetv1alpha1.NamespaceGrant{
		{Names: []string{"edge"}, ExtensionImages: []tailnetv1alpha1.ImageRepository{"example.org/ours"}},
	}}, nil, "edge", nil)
	if err != nil {
		t.Fatal(err)
	}
	granted := []compose.TailnetVerdict{{Accepted: true, Grant: grant}}
	refused := []compose.TailnetVerdict{{Reason: meta.ReasonNamespaceNotAllowed, Message: "It is refused"}}
	gateway := func(namespace string) *front.Gateway {
		return front.New(gatewayv1alpha1.GatewayRef{Kind: front.KindGateway, Namespace: namespace, Name: "eg"}, &gwapiv1.Gateway{}, nil, nil, nil)
	}
	cases := map[string]struct {
		reason  string
		facts   Facts
		runs    bool
		refused xpv2.ConditionReason
	}{
		"NotRequested": {reason: "Without a spec none is wanted.", facts: Facts{Gateway: gateway("edge"), Verdicts: granted}},
		"Installed":    {reason: "It runs the installed image.", facts: Facts{Spec: &gatewayv1alpha1.ExtensionServer{}, Gateway: gateway("edge"), Verdicts: granted}, runs: true},
		"Granted": {reason: "It runs an image that a grant names.", runs: true,
			facts: Facts{Spec: &gatewayv1alpha1.ExtensionServer{Image: "example.org/ours:v1"}, Gateway: gateway("edge"), Verdicts: granted}},
		"OtherImage": {reason: "It runs no other image.", refused: meta.ReasonNotGranted,
			facts: Facts{Spec: &gatewayv1alpha1.ExtensionServer{Image: "example.org/theirs:v1"}, Gateway: gateway("edge"), Verdicts: granted}},
		"OtherNamespace": {reason: "It reads only its namespace.", refused: meta.ReasonOtherNamespace,
			facts: Facts{Spec: &gatewayv1alpha1.ExtensionServer{}, Gateway: gateway("other"), Verdicts: granted}},
		"NoGateway": {reason: "It does not run without a Gateway.", refused: meta.ReasonGatewayNotFound,
			facts: Facts{Spec: &gatewayv1alpha1.ExtensionServer{}, Gateway: front.New(gatewayv1alpha1.GatewayRef{Namespace: "edge", Name: "eg"}, nil, nil, nil, nil), Verdicts: granted}},
		"NoTailnet": {reason: "It does not start before a tailnet may be used.", refused: meta.ReasonNamespaceNotAllowed,
			facts: Facts{Spec: &gatewayv1alpha1.ExtensionServer{}, Gateway: gateway("edge"), Verdicts: refused}},
		"Running": {reason: "One that runs stays, like proxies.", runs: true,
			facts: Facts{Spec: &gatewayv1alpha1.ExtensionServer{}, Gateway: gateway("edge"), Verdicts: refused, Deployment: &appsv1.Deployment{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := tc.facts
			f.Owner, f.InstalledImage = compose.Owner{Namespace: "edge", Name: "web"}, "example.org/extension:v1"
			p := New(f)
			if got := p.Extension != nil; got != tc.runs {
				t.Errorf("\n%s\nNew(...): want an extension %t, got %t", tc.reason, tc.runs, got)
			}
			var got xpv2.ConditionReason
			if p.Refused != nil {
				got = p.Refused.Reason
			}
			if diff := cmp.Diff(tc.refused, got); diff != "" {
				t.Errorf("\n%s\nNew(...) refused: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChildren verifies when there are pods: once the address for Envoys is known.
func TestChildren(t *testing.T) {
	running := &appsv1.Deployment{}
	running.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{flagEDSTarget + "10.96.0.6:5006"}}}
	running.Status.ReadyReplicas = defaultReplicas
	cases := map[string]struct {
		reason     string
		deployment *appsv1.Deployment
		eds        *corev1.Service
		target     string
		incomplete bool
	}{
		"First":   {reason: "There are none before the Service for endpoints has an address.", eds: &corev1.Service{}, incomplete: true},
		"Address": {reason: "They name the address.", eds: &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7"}}, target: "10.96.0.7:5006"},
		"Lost":    {reason: "Running ones stay while there is no Service.", deployment: running, target: "10.96.0.6:5006", incomplete: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := New(Facts{
				Owner: compose.Owner{Namespace: "edge", Name: "web"}, Spec: &gatewayv1alpha1.ExtensionServer{},
				Gateway:    front.New(gatewayv1alpha1.GatewayRef{Namespace: "edge", Name: "eg"}, &gwapiv1.Gateway{}, nil, nil, nil),
				Deployment: tc.deployment, EDS: tc.eds,
			})
			children := p.Children()
			if diff := cmp.Diff(tc.incomplete, children.Incomplete); diff != "" {
				t.Errorf("\n%s\nChildren() incomplete: -want, +got:\n%s", tc.reason, diff)
			}
			pods := false
			for _, c := range children.Wanted {
				pods = pods || c.Name == KeyDeployment
			}
			if diff := cmp.Diff(tc.target != "", pods); diff != "" {
				t.Errorf("\n%s\nChildren() pods: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.target, p.Extension.edsTarget()); diff != "" {
				t.Errorf("\n%s\nedsTarget(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
