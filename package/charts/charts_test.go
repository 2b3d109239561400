// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/config"
	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

const (
	chart     = "tailscale-gateway"
	namespace = "crossplane-system"

	// kubeVersion is the version of the cluster for which the chart renders.
	kubeVersion = "1.35.4"

	header = `# Copyright 2026 The Tailscale Gateway Authors
# SPDX-License-Identifier: Apache-2.0
# The chart tailscale-gateway with its default values. Written by:
# go test -tags=integration ./package/charts/ -run TestInstall -update
`
)

// helm runs the lab's Helm, which the Makefile names, without any cluster. It returns the standard
// output and the standard error.
func helm(t *testing.T, args ...string) (string, string, error) {
	t.Helper()
	bin := os.Getenv("TEST_ASSET_HELM")
	if bin == "" {
		t.Fatal("TEST_ASSET_HELM must name Helm's binary: make test-controllers sets it")
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	out, complaint := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, complaint
	err := cmd.Run()
	return out.String(), complaint.String(), err
}

func tryRender(t *testing.T, values ...string) (string, string, error) {
	t.Helper()
	args := []string{"template", chart, chart, "--namespace=" + namespace, "--kube-version=" + kubeVersion}
	for _, v := range values {
		args = append(args, "--set="+v)
	}
	return helm(t, args...)
}

func render(t *testing.T, values ...string) string {
	t.Helper()
	out, complaint, err := tryRender(t, values...)
	if err != nil {
		t.Fatalf("cannot render the chart with %v: %v: %s", values, err, complaint)
	}
	return out
}

// TestInstall compares the manifests for users without Helm with the rendered chart. They lack the
// hook that runs before an uninstallation.
func TestInstall(t *testing.T) {
	var docs []string
	for _, doc := range strings.Split(render(t), "---\n") {
		if !strings.Contains(doc, "helm.sh/hook: pre-delete\n") {
			docs = append(docs, doc)
		}
	}
	golden.Compare(t, filepath.Join("..", "kustomization", "install.yaml"), []byte(header+strings.Join(docs, "---\n")), nil)
}

// TestUninstallHook compares the chart's hook with what the provider protects.
func TestUninstallHook(t *testing.T) {
	hook, ok := objects(t, render(t, "crossplane.namespace=upbound-system"))["ConfigMap upbound-system/"+config.HookName]
	if !ok {
		t.Fatalf("the chart has no ConfigMap %s in Crossplane's namespace", config.HookName)
	}
	got := parse(t, hook).GetAnnotations()
	want := map[string]string{"helm.sh/hook": "pre-delete", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations by which Helm deletes the ConfigMap first: -want, +got:\n%s", diff)
	}
}

// TestVariants compares the objects that values change with goldens.
func TestVariants(t *testing.T) {
	cases := map[string]struct {
		reason string
		values []string
	}{
		"mirror": {
			reason: "Crossplane and all pods pull from another registry with a Secret.",
			values: []string{"registry=registry.example/mirror", "imagePullSecrets[0].name=registry", "packages.version=v0.1.3"},
		},
		"by-hand": {
			reason: "Packages that crossplane xpkg installs run in the same way, and tenants get no roles by themselves.",
			values: []string{"packages.enabled=false", "tenantRoles.aggregate=false"},
		},
		"everything": {
			reason: "Every value has an effect.",
			values: []string{
				"crossplane.namespace=upbound-system", "packages.flavour=claims", "packages.activation=Manual", "packages.revisionHistoryLimit=3", "packages.pullPolicy=Always",
				"provider.workloadIdentity=true", "provider.staticEndpoints=true", "provider.extraArgs[0]=--debug", "provider.agentImage=registry.example/agent:v1", "provider.tailscaleImage=registry.example/tailscale:v1",
				"provider.nodeSelector.zone=a", "provider.tolerations[0].operator=Exists", "provider.priorityClassName=system-cluster-critical", "provider.resources.limits.memory=1Gi",
				"monitoring.podMonitors.enabled=true", "monitoring.podMonitors.labels.release=prometheus",
				"function.replicas=2", "function.extraArgs[0]=--debug", "function.envoyGatewayNamespaces={eg-one,eg-two}", "function.extensionImage=registry.example/extension:v1",
				"function.nodeSelector.zone=b", "function.tolerations[0].operator=Exists", "function.priorityClassName=system-cluster-critical", "function.resources.limits.memory=1Gi",
			},
		},
		"bare": {
			reason: "Another product guards the kinds and the network.",
			values: []string{"admission.enabled=false", "networkPolicies.enabled=false", "tenantRoles.enabled=false"},
		},
	}
	defaults := objects(t, render(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			got := &strings.Builder{}
			changed := objects(t, render(t, tc.values...))
			for _, id := range slices.Sorted(maps.Keys(defaults)) {
				if _, ok := changed[id]; !ok {
					fmt.Fprintf(got, "# without %s\n", id)
				}
			}
			for _, id := range slices.Sorted(maps.Keys(changed)) {
				if changed[id] != defaults[id] {
					fmt.Fprintf(got, "---\n%s", changed[id])
				}
			}
			golden.Compare(t, filepath.Join("testdata", name+".yaml"), []byte(got.String()), nil)
		})
	}
}

// TestLint checks that Helm's own lint accepts the chart.
func TestLint(t *testing.T) {
	if out, complaint, err := helm(t, "lint", "--strict", "--kube-version="+kubeVersion, chart); err != nil {
		t.Errorf("%v: %s%s", err, out, complaint)
	}
}

// TestRefuses checks that the chart refuses values that cannot work.
func TestRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		values []string
	}{
		"UnknownValue":     {reason: "A misspelt value must not be ignored.", values: []string{"provider.replica=3"}},
		"Scheme":           {reason: "Crossplane prefixes no scheme.", values: []string{"registry=oci://ghcr.io/tailscale-gateway"}},
		"FinalSlash":       {reason: "Names of images would have two slashes.", values: []string{"registry=registry.example/mirror/"}},
		"Flavour":          {reason: "No Configuration has this name.", values: []string{"packages.flavour=cluster"}},
		"Version":          {reason: "No package has a tag without v.", values: []string{"packages.version=0.1.0"}},
		"NoReplicas":       {reason: "No composite would be reconciled.", values: []string{"function.replicas=0"}},
		"ExtensionUnknown": {reason: "The extension's values are checked, too.", values: []string{"tailscale-gateway-extension.enabled=true", "tailscale-gateway-extension.replica=3"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if out, _, err := tryRender(t, tc.values...); err == nil {
				t.Errorf("%s\nthe chart renders with %v:\n%s", tc.reason, tc.values, out)
			}
		})
	}
}

// TestExtension checks that the chart contains the extension's chart on request, with the same
// objects as that chart has alone.
func TestExtension(t *testing.T) {
	const sub = "tailscale-gateway-extension"
	want, complaint, err := helm(t, "template", chart, sub, "--namespace="+namespace, "--kube-version="+kubeVersion)
	if err != nil {
		t.Fatalf("%v: %s", err, complaint)
	}
	got := map[string]string{}
	base := objects(t, render(t))
	for id, doc := range objects(t, render(t, sub+".enabled=true")) {
		if _, ok := base[id]; !ok {
			got[id] = doc
		}
	}
	if diff := cmp.Diff(objects(t, want), got); diff != "" {
		t.Errorf("-the extension's chart, +as a part of the chart:\n%s", diff)
	}
}

// TestStable checks that the chart with the extension renders to the same bytes each time: tools that
// compare manifests with the cluster, such as Argo CD, would find a difference at each sync.
func TestStable(t *testing.T) {
	values := []string{"tailscale-gateway-extension.enabled=true"}
	if diff := cmp.Diff(render(t, values...), render(t, values...)); diff != "" {
		t.Errorf("-first, +second:\n%s", diff)
	}
}

// TestPackages checks that the packages have the names and images of the products, which the
// demo, the install check and Crossplane's resolver of dependencies use.
func TestPackages(t *testing.T) {
	for flavour, kinds := range map[string][]string{
		products.FlavourNamespaced: {"Configuration", "Function", "Provider"},
		products.FlavourClaims:     {"Configuration", "Function", "Provider"},
	} {
		t.Run(flavour, func(t *testing.T) {
			want := map[string]string{}
			for _, p := range products.Packages(flavour) {
				want[products.Object(p.Name)] = products.Image(p.Name, "v0.1.0")
			}
			got := map[string]string{}
			for _, doc := range objects(t, render(t, "packages.version=v0.1.0", "packages.flavour="+flavour)) {
				o := parse(t, doc)
				if slices.Contains(kinds, o.GetKind()) && strings.HasPrefix(o.GetAPIVersion(), "pkg.crossplane.io/") {
					got[o.GetName()] = field(t, o, "spec", "package")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-products, +chart:\n%s", diff)
			}
		})
	}
}

// TestMonitoring checks that the chart's alerts and dashboard are the tested files.
func TestMonitoring(t *testing.T) {
	var rules struct{ Spec, Want any }
	if err := yaml.Unmarshal(charts.Rules, &rules.Want); err != nil {
		t.Fatal(err)
	}
	dashboard := ""
	for _, doc := range objects(t, render(t, "monitoring.prometheusRule.enabled=true", "monitoring.dashboard.enabled=true")) {
		switch o := parse(t, doc); o.GetKind() {
		case "PrometheusRule":
			rules.Spec = o.Object["spec"]
		case "ConfigMap":
			if o.GetName() == config.HookName {
				continue
			}
			dashboard = field(t, o, "data", "tailscale-gateway.json")
			if o.GetLabels()["grafana_dashboard"] != "1" {
				t.Errorf("Grafana's sidecar does not find the dashboard by the labels %v", o.GetLabels())
			}
		}
	}
	if diff := cmp.Diff(rules.Want, rules.Spec); diff != "" {
		t.Errorf("alerts: -file, +chart:\n%s", diff)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(charts.Dashboard)), strings.TrimSpace(dashboard)); diff != "" {
		t.Errorf("dashboard: -file, +chart:\n%s", diff)
	}
}

// TestFlags checks that the pods of packages get valid containers, and that each value of the
// chart that names an image reaches them.
func TestFlags(t *testing.T) {
	args := map[string][]string{}
	for _, doc := range objects(t, render(t, "registry=registry.example/mirror", "packages.version=v0.1.3")) {
		o := parse(t, doc)
		if o.GetKind() != "DeploymentRuntimeConfig" {
			continue
		}
		pod, ok, err := unstructured.NestedMap(o.Object, "spec", "deploymentTemplate", "spec", "template", "spec")
		if err != nil || !ok {
			t.Fatalf("%s has no pod template: %v", o.GetName(), err)
		}
		spec := corev1.PodSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(pod, &spec, true); err != nil {
			t.Errorf("the API server would refuse the pods of %s: %v", o.GetName(), err)
		}
		for _, c := range spec.Containers {
			args[o.GetName()] = append(args[o.GetName()], c.Args...)
		}
	}
	want := map[string][]string{
		"tailscale-gateway-provider": {"--leader-election", "--agent-image=registry.example/mirror/agent:v0.1.3"},
		"tailscale-gateway-function": {"--envoy-gateway-namespaces=envoy-gateway-system", "--extension-image=registry.example/mirror/extension:v0.1.3"},
	}
	if diff := cmp.Diff(want, args); diff != "" {
		t.Errorf("flags of the pods: -want, +got:\n%s", diff)
	}
}

var separator = regexp.MustCompile(`(?m)^---\n`)

// objects returns the documents of a manifest without comments, by kind, namespace and name.
func objects(t *testing.T, manifest string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, doc := range separator.Split(manifest, -1) {
		o := parse(t, doc)
		if o.GetKind() == "" {
			continue
		}
		b, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		id := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		if _, ok := out[id]; ok {
			t.Errorf("the manifest has two objects %s", id)
		}
		out[id] = string(b)
	}
	return out
}

// field returns a text in an object.
func field(t *testing.T, o *unstructured.Unstructured, path ...string) string {
	t.Helper()
	out, ok, err := unstructured.NestedString(o.Object, path...)
	if err != nil || !ok {
		t.Fatalf("%s %s has no %s: %v", o.GetKind(), o.GetName(), strings.Join(path, "."), err)
	}
	return out
}

func parse(t *testing.T, doc string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
	return o
}
