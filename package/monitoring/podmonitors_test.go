// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

// A podMonitor is the part of a monitoring.coreos.com/v1 PodMonitor that the manifests use.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port string `json:"port"`
			Path string `json:"path"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// decode reads all objects of a YAML file. Unknown fields are errors.
func decode[T any](t *testing.T, b []byte) []T {
	t.Helper()
	d := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
	var out []T
	for {
		doc, err := d.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		var o T
		if err := yaml.UnmarshalStrict(doc, &o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
}

// pods returns the pods of packages as Crossplane creates them, by the product.
//
// testdata/pods.yaml contains the pod templates that Crossplane v2.4.0 builds
// (internal/controller/pkg/runtime, DeploymentRuntimeBuilder.Deployment with the overrides of
// ProviderHooks and FunctionHooks) for our packages and our DeploymentRuntimeConfig.
func pods(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	b, err := os.ReadFile("testdata/pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]corev1.PodTemplateSpec{}
	for _, p := range decode[corev1.PodTemplateSpec](t, b) {
		for _, product := range []string{products.Provider, products.Function} {
			if p.Labels[pkgv1.LabelProvider] == products.Object(product) || p.Labels[pkgv1.LabelFunction] == products.Object(product) {
				out[product] = p
			}
		}
	}
	return out
}

// TestPodMonitors checks that the PodMonitors select the pods that Crossplane creates, at the port
// that serves metrics, and that our NetworkPolicies admit every client to that port.
func TestPodMonitors(t *testing.T) {
	var policies []networkingv1.NetworkPolicy
	for _, o := range decode[unstructured.Unstructured](t, kustomization.Install) {
		if o.GetKind() != "NetworkPolicy" {
			continue
		}
		p := networkingv1.NetworkPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &p, true); err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	monitors := decode[podMonitor](t, charts.PodMonitors)

	got := map[string]int32{}
	for product, pod := range pods(t) {
		for _, m := range monitors {
			if m.APIVersion != "monitoring.coreos.com/v1" || m.Kind != "PodMonitor" || m.Namespace != "crossplane-system" {
				t.Errorf("%s %s is in namespace %s", m.APIVersion, m.Kind, m.Namespace)
			}
			if !selects(t, m.Spec.Selector, pod.Labels) {
				continue
			}
			for _, e := range m.Spec.Endpoints {
				port := containerPort(pod, e.Port)
				got[product+e.Path] = port
				if port != 0 && !open(t, policies, pod.Labels, port) {
					t.Errorf("no NetworkPolicy admits scrapers to port %d of %s", port, product)
				}
			}
		}
	}
	// 8080 is the default of --metrics-address in both commands.
	want := map[string]int32{products.Provider + "/metrics": 8080, products.Function + "/metrics": 8080}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want ports to scrape, +got:\n%s", diff)
	}
	if len(monitors) != len(want) {
		t.Errorf("there are %d PodMonitors for %d packages", len(monitors), len(want))
	}
}

func selects(t *testing.T, s metav1.LabelSelector, l map[string]string) bool {
	t.Helper()
	sel, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		t.Fatal(err)
	}
	return sel.Matches(labels.Set(l))
}

// containerPort returns a named port of a pod, or zero.
func containerPort(pod corev1.PodTemplateSpec, name string) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == name {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// open reports whether a policy that selects the pod admits every client to a port.
func open(t *testing.T, policies []networkingv1.NetworkPolicy, l map[string]string, port int32) bool {
	t.Helper()
	for _, p := range policies {
		if !selects(t, p.Spec.PodSelector, l) {
			continue
		}
		for _, ingress := range p.Spec.Ingress {
			for _, policyPort := range ingress.Ports {
				if len(ingress.From) == 0 && policyPort.Port.IntVal == port {
					return true
				}
			}
		}
	}
	return false
}
