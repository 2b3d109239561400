// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extensionpods

import (
	"os"
	"path/filepath"
	"slices"
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
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// rendered is the chart's output for values that match a Gateway's separate extension: the variant
// dedicated of the extension's tests, which compare it with the chart.
var rendered = filepath.Join("..", "..", "..", "extension", "testdata", "chart", "dedicated.yaml")

// TestExtensionIsTheChart compares a Gateway's separate extension with the chart, so that both
// change together.
func TestExtensionIsTheChart(t *testing.T) {
	namespace := "envoy-gateway-system"
	e := New(Facts{
		Owner: compose.Owner{Namespace: namespace, Name: "web"},
		Spec: &gatewayv1alpha1.ExtensionServer{
			Image: "ghcr.io/tailscale-gateway/extension:v1.2.3",
			TLS:   &gatewayv1alpha1.ExtensionServerTLS{CertificateRef: gatewayv1alpha1.CertificateRef{Name: "web-extension-tls"}},
		},
		Gateway:        front.New(gatewayv1alpha1.GatewayRef{Namespace: namespace, Name: "eg"}, &gwapiv1.Gateway{}, nil, nil, []string{namespace}),
		InstalledImage: "ghcr.io/tailscale-gateway/extension:v1.2.3",
		EDS:            &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.6"}},
	}).Extension

	// One difference is intended: Envoy Gateway may run in several namespaces.
	policy, d := e.networkPolicy(), e.composeDeployment()
	term := &d.Spec.Template.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
	term.NamespaceSelector, term.Namespaces = nil, []string{namespace}
	// Another difference: the chart has one Lease for all Gateways, and its role grants only that
	// name.
	lease, leading := e.leaseRole(), e.roleBinding(suffixLease, rbacv1.RoleRef{Kind: "Role", Name: e.Name + suffixLease})
	if diff := cmp.Diff([]string{"tailscale-gateway-extension-eg"}, lease.Rules[1].ResourceNames); diff != "" {
		t.Errorf("names of Leases: -want, +got:\n%s", diff)
	}
	// The extension creates its certificates itself, in Secrets of the provider, while a Job creates
	// those of the chart.
	if diff := cmp.Diff([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "update"}, ResourceNames: []string{"web-extension-certificates", "web-extension-client"}},
	}, lease.Rules[2:]); diff != "" {
		t.Errorf("rights to certificates: -want, +got:\n%s", diff)
	}
	lease.Rules = lease.Rules[:2]
	lease.Name, lease.Rules[1].ResourceNames = e.Name, []string{"tailscale-gateway-extension-health"}
	leading.Name, leading.RoleRef.Name = e.Name, e.Name

	b, err := os.ReadFile(rendered)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	for _, doc := range strings.Split(string(b), "\n---\n") {
		m := metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
			t.Fatal(err)
		}
		docs[m.Kind+"/"+m.Name] = doc
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
			// The labels of the chart's pods contain its release.
			doc := strings.ReplaceAll(docs[name], "app.kubernetes.io/instance: tailscale-gateway-extension", "app.kubernetes.io/instance: web-extension")
			if err := yaml.UnmarshalStrict([]byte(doc), pair.want); err != nil {
				t.Fatal(err)
			}
			if deployment, ok := pair.want.(*appsv1.Deployment); ok {
				makesCertificates(t, deployment)
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

// makesCertificates changes the chart's Deployment to one that creates its clients' certificates
// itself.
func makesCertificates(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	pod := &d.Spec.Template.Spec
	c := &pod.Containers[0]
	var args []string
	for _, a := range c.Args {
		switch {
		case strings.HasPrefix(a, "--eds-client-tls="):
			args = append(args, "--make-certificates="+d.GetName())
		case strings.Contains(a, "-client-ca=") || strings.Contains(a, "-client-name="):
		default:
			args = append(args, a)
		}
	}
	if len(args) != len(c.Args)-4 {
		t.Fatalf("the chart's extension has other flags for its clients: %v", c.Args)
	}
	c.Args = args
	clients := []string{"client", "envoy"}
	for i := range pod.Volumes {
		if s := pod.Volumes[i].Secret; s != nil {
			s.Items = certificateKeys()
		}
	}
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return slices.Contains(clients, v.Name) })
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(v corev1.VolumeMount) bool { return slices.Contains(clients, v.Name) })
}
