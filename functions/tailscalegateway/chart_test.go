// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// rendered is what the chart makes of values that ask for what an extension of a Gateway's
// own is: the variant dedicated of the extension's tests, which hold it against the chart.
var rendered = filepath.Join("..", "..", "extension", "testdata", "chart", "dedicated.yaml")

// TestExtensionIsTheChart holds an extension of a Gateway's own against the chart: what
// changes there has to change here, too.
func TestExtensionIsTheChart(t *testing.T) {
	namespace := "envoy-gateway-system"
	xr := &gatewayv1alpha1.TailscaleGateway{Spec: gatewayv1alpha1.TailscaleGatewaySpec{ExtensionServer: &gatewayv1alpha1.ExtensionServer{
		Image: "ghcr.io/tailscale-gateway/extension:v1.2.3",
		TLS:   &gatewayv1alpha1.ExtensionServerTLS{CertificateRef: gatewayv1alpha1.CertificateRef{Name: "web-extension-tls"}},
	}}}
	e := &extension{
		name: "web-extension",
		eds:  &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.6"}},
		share: &share{
			owner: compose.Owner{Namespace: namespace, Name: "web"}, xr: xr,
			gateway: &gateway{ref: gatewayv1alpha1.GatewayRef{Namespace: namespace, Name: "eg"}},
		},
	}

	// What differs, and is to: Envoy Gateway may run in any namespace.
	policy, d := e.networkPolicy(), e.composeDeployment()
	policy.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels = map[string]string{corev1.LabelMetadataName: namespace}
	beside := &d.Spec.Template.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
	beside.NamespaceSelector, beside.Namespaces = nil, []string{namespace}
	// And the chart has one Lease for all Gateways, granted by a role of its only name.
	lease, leading := e.leaseRole(), e.roleBinding(suffixLease, rbacv1.RoleRef{Kind: "Role", Name: e.name + suffixLease})
	if diff := cmp.Diff([]string{"tailscale-gateway-extension-eg"}, lease.Rules[1].ResourceNames); diff != "" {
		t.Errorf("names of Leases: -want, +got:\n%s", diff)
	}
	lease.Name, lease.Rules[1].ResourceNames = e.name, []string{"tailscale-gateway-extension-health"}
	leading.Name, leading.RoleRef.Name = e.name, e.name

	b, err := os.ReadFile(rendered)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for _, doc := range strings.Split(string(b), "\n---\n") {
		m := metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
			t.Fatal(err)
		}
		of[m.Kind+"/"+m.Name] = doc
	}
	for name, pair := range map[string]struct{ got, want client.Object }{
		"Deployment/web-extension":          {d, &appsv1.Deployment{}},
		"Service/web-extension":             {e.service(suffixHooks), &corev1.Service{}},
		"Service/web-extension-eds":         {e.service(suffixEDS), &corev1.Service{}},
		"Service/web-extension-metrics":     {e.service(suffixMetrics), &corev1.Service{}},
		"PodDisruptionBudget/web-extension": {e.budget(), &policyv1.PodDisruptionBudget{}},
		"NetworkPolicy/web-extension":       {policy, &networkingv1.NetworkPolicy{}},
		"ServiceAccount/web-extension":      {e.serviceAccount(), &corev1.ServiceAccount{}},
		"Role/web-extension":                {lease, &rbacv1.Role{}},
		"RoleBinding/web-extension":         {leading, &rbacv1.RoleBinding{}},
	} {
		t.Run(name, func(t *testing.T) {
			// The chart's pods are known by its release.
			doc := strings.ReplaceAll(of[name], "app.kubernetes.io/instance: tailscale-gateway-extension", "app.kubernetes.io/instance: web-extension")
			if err := yaml.UnmarshalStrict([]byte(doc), pair.want); err != nil {
				t.Fatal(err)
			}
			for _, o := range []client.Object{pair.want, pair.got} {
				o.GetObjectKind().SetGroupVersionKind(pair.want.GetObjectKind().GroupVersionKind())
				o.SetLabels(nil)
				if d, ok := o.(*appsv1.Deployment); ok {
					d.Spec.Template.Labels = nil
				}
			}
			if diff := cmp.Diff(pair.want, pair.got); diff != "" {
				t.Errorf("-the chart's, +composed:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(ptr.To(int32(defaultReplicas)), d.Spec.Replicas); diff != "" {
		t.Errorf("replicas: -want, +got:\n%s", diff)
	}
}
