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
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

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

	digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

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
				"tailnet.name=example", "tailnet.oauthSecretName=tailscale-oauth", "tailnet.spec.allowedNamespaces.from=List", "tailnet.spec.allowedNamespaces.names={shop}",
				"provider.replicas=2", "provider.workloadIdentity=true", "provider.staticEndpoints=true", "provider.multiclusterServices=true", "provider.publishServices=true", "provider.operatorServices=true", "provider.extraArgs[0]=--debug", "provider.agentImage=registry.example/agent:v1", "provider.tailscaleImage=registry.example/tailscale:v1", "provider.proxyImagePullSecrets[0].name=registry", "provider.proxyImagePullSecrets[1].name=hub",
				"provider.env[0].name=HTTPS_PROXY", "provider.env[0].value=http://proxy.example:3128", "provider.env[1].name=NO_PROXY", "provider.env[1].value=$(KUBERNETES_SERVICE_HOST)", "provider.caBundle.configMap=authorities", "provider.caBundle.key=bundle.pem",
				"provider.podSecurityContext.runAsUser=3000", "provider.securityContext.seLinuxOptions.level=s0", "provider.podAnnotations.team=edge", "provider.podLabels.team=edge",
				"provider.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key=metadata.name", "provider.topologySpreadConstraints[0].maxSkew=1", "provider.topologySpreadConstraints[0].topologyKey=zone", "provider.topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
				"provider.nodeSelector.zone=a", "provider.tolerations[0].operator=Exists", "provider.priorityClassName=system-cluster-critical", "provider.resources.limits.memory=1Gi",
				"monitoring.podMonitors.enabled=true", "monitoring.podMonitors.labels.release=prometheus",
				"function.replicas=2", "function.extraArgs[0]=--debug", "function.envoyGatewayNamespaces={eg-one,eg-two}", "function.extensionImage=registry.example/extension:v1",
				"function.env[0].name=GOMEMLIMIT", "function.env[0].value=400MiB", "function.podSecurityContext.runAsUser=3000", "function.securityContext.seLinuxOptions.level=s0", "function.podAnnotations.team=edge", "function.podLabels.team=edge",
				"function.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key=metadata.name", "function.topologySpreadConstraints[0].maxSkew=1", "function.topologySpreadConstraints[0].topologyKey=zone", "function.topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
				"function.nodeSelector.zone=b", "function.tolerations[0].operator=Exists", "function.priorityClassName=system-cluster-critical", "function.resources.limits.memory=1Gi",
			},
		},
		"openshift": {
			reason: "The platform assigns user and group IDs.",
			values: []string{"fixedUserIDs=false"},
		},
		"tailnet": {
			reason: "The provider creates a TailscaleTailnet, with an OAuth client from values.",
			values: []string{"tailnet.name=example", "tailnet.oauth.clientID=abc", "tailnet.oauth.clientSecret=notasecret", "tailnet.spec.tags={tag:k8s}"},
		},
		"pinned": {
			reason: "Packages are named by digest.",
			values: []string{"packages.digests.provider=" + digest, "packages.digests.function=" + digest, "packages.digests.configuration=" + digest},
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
		"UnknownAuthority": {reason: "Authorities are in a ConfigMap.", values: []string{"provider.caBundle.secret=authorities"}},
		"FunctionCA":       {reason: "The function verifies no certificate.", values: []string{"function.caBundle.configMap=authorities"}},
		"UnknownVariable":  {reason: "A variable has a name and a value.", values: []string{"provider.env[0].name=HTTPS_PROXY", "provider.env[0].val=http://proxy.example"}},
		"VariableMap":      {reason: "Variables are a list, as in a container.", values: []string{"function.env.GOMEMLIMIT=400MiB"}},
		"UnknownContext":   {reason: "A misspelt context must not leave that of Crossplane.", values: []string{"function.podSecurityContexts.runAsUser=1"}},
		"UnknownPackage":   {reason: "The agent is no package.", values: []string{"packages.digests.agent=" + digest}},
		"ShortDigest":      {reason: "A truncated digest identifies nothing.", values: []string{"packages.digests.configuration=sha256:0123"}},
		"UnknownSecret":    {reason: "A pull secret has only a name.", values: []string{"provider.proxyImagePullSecrets[0].name=registry", "provider.proxyImagePullSecrets[0].namespace=shop"}},
		"NoProvider":       {reason: "No managed resource would be reconciled.", values: []string{"provider.replicas=0"}},
		"Labels":           {reason: "Labels are texts.", values: []string{"provider.podLabels.team.name=edge"}},
		"Affinity":         {reason: "An affinity is an object.", values: []string{"provider.affinity=zone"}},
		"Spread":           {reason: "Constraints are a list.", values: []string{"function.topologySpreadConstraints.maxSkew=1"}},
		"UserIDs":          {reason: "A text would count as true.", values: []string{"fixedUserIDs=no"}},
		"NoTailnetName":    {reason: "A credential alone has no effect.", values: []string{"tailnet.oauthSecretName=oauth"}},
		"NoTailnetSpec":    {reason: "Neither have further fields.", values: []string{"tailnet.spec.tags={tag:k8s}"}},
		"NoCredential":     {reason: "A tailnet needs a credential.", values: []string{"tailnet.name=example"}},
		"TwoCredentials":   {reason: "The API server would refuse two.", values: []string{"tailnet.name=example", "tailnet.oauthSecretName=oauth", "tailnet.spec.apiKeySecret.name=key"}},
		"TwoClients":       {reason: "It would be unclear which client counts.", values: []string{"tailnet.name=example", "tailnet.oauthSecretName=oauth", "tailnet.oauth.clientID=abc", "tailnet.oauth.clientSecret=notasecret"}},
		"HalfClient":       {reason: "An OAuth client has an ID and a secret.", values: []string{"tailnet.name=example", "tailnet.oauth.clientID=abc"}},
		"TailnetName":      {reason: "The name is that of an object.", values: []string{"tailnet.name=example.com/x", "tailnet.oauthSecretName=oauth"}},
		"UnknownTailnet":   {reason: "Fields of the spec are below tailnet.spec.", values: []string{"tailnet.name=example", "tailnet.oauthSecretName=oauth", "tailnet.tags={tag:k8s}"}},
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

// TestFlags checks that each value of the chart that names an image reaches the pods of packages.
func TestFlags(t *testing.T) {
	got := map[string][]string{}
	for name, template := range podTemplates(t, "registry=registry.example/mirror", "packages.version=v0.1.3") {
		for _, c := range template.Spec.Containers {
			got[name] = append(got[name], c.Args...)
		}
	}
	want := map[string][]string{
		"tailscale-gateway-provider": {"--leader-election", "--image-registry=registry.example/mirror"},
		"tailscale-gateway-function": {"--envoy-gateway-namespaces=envoy-gateway-system", "--image-registry=registry.example/mirror"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags of the pods: -want, +got:\n%s", diff)
	}
}

// TestPodSecurity checks that the pods of packages pass the level restricted, and that they name no
// user or group on request.
func TestPodSecurity(t *testing.T) {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	cases := map[string]struct {
		reason string
		values []string
		user   *int64
	}{
		"Default":   {reason: "Pods run as Crossplane's user.", user: ptr.To[int64](2000)},
		"Assigned":  {reason: "The platform assigns the user.", values: []string{"fixedUserIDs=false"}},
		"Container": {reason: "Also that of the container.", values: []string{"fixedUserIDs=false", "provider.securityContext.runAsUser=3000", "function.securityContext.runAsGroup=3000", "function.podSecurityContext.fsGroup=3000"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			for name, template := range podTemplates(t, tc.values...) {
				for _, r := range e.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
					if !r.Allowed {
						t.Errorf("%s: %s: %s", name, r.ForbiddenReason, r.ForbiddenDetail)
					}
				}
				pod, container := template.Spec.SecurityContext, template.Spec.Containers[0].SecurityContext
				// Crossplane sets user and group where there is no context.
				if pod == nil || container == nil {
					t.Fatalf("%s lacks a security context: pod %v, container %v", name, pod, container)
				}
				if diff := cmp.Diff([]*int64{tc.user, tc.user, nil, nil, nil}, []*int64{pod.RunAsUser, pod.RunAsGroup, pod.FSGroup, container.RunAsUser, container.RunAsGroup}); diff != "" {
					t.Errorf("%s: -want IDs, +got:\n%s", name, diff)
				}
			}
		})
	}
	// A context that is absent or empty stays empty, rather than Crossplane's.
	for name, template := range podTemplates(t, "fixedUserIDs=false", "provider.podSecurityContext=null", "provider.securityContext=null") {
		if template.Spec.SecurityContext == nil || template.Spec.Containers[0].SecurityContext == nil {
			t.Errorf("Crossplane would set the user of %s", name)
		}
	}
}

// TestBudgets checks that drains never wait for the only pod, and that budgets select the pods of
// packages.
func TestBudgets(t *testing.T) {
	for id := range objects(t, render(t)) {
		if strings.HasPrefix(id, "PodDisruptionBudget ") {
			t.Errorf("one replica has a %s", id)
		}
	}
	got := map[string]map[string]string{}
	for id, doc := range objects(t, render(t, "provider.replicas=2", "function.replicas=3", "crossplane.namespace=upbound-system")) {
		if !strings.HasPrefix(id, "PodDisruptionBudget ") {
			continue
		}
		var b policyv1.PodDisruptionBudget
		if err := yaml.UnmarshalStrict([]byte(doc), &b); err != nil {
			t.Fatal(err)
		}
		if most := b.Spec.MaxUnavailable; most == nil || most.IntValue() != 1 || b.Spec.MinAvailable != nil {
			t.Errorf("%s permits %v", id, b.Spec)
		}
		got[b.GetNamespace()+"/"+b.GetName()] = b.Spec.Selector.MatchLabels
	}
	want := map[string]map[string]string{
		"upbound-system/tailscale-gateway-provider": {pkgv1.LabelProvider: products.Object(products.Provider)},
		"upbound-system/tailscale-gateway-function": {pkgv1.LabelFunction: products.Object(products.Function)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("selectors: -want, +got:\n%s", diff)
	}
}

// podTemplates returns the pod templates of the runtime configurations, by their names.
func podTemplates(t *testing.T, values ...string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	for _, doc := range objects(t, render(t, values...)) {
		o := parse(t, doc)
		if o.GetKind() != "DeploymentRuntimeConfig" {
			continue
		}
		template, ok, err := unstructured.NestedMap(o.Object, "spec", "deploymentTemplate", "spec", "template")
		if err != nil || !ok {
			t.Fatalf("%s has no pod template: %v", o.GetName(), err)
		}
		var p corev1.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, &p, true); err != nil {
			t.Errorf("the API server would refuse the pods of %s: %v", o.GetName(), err)
		}
		out[o.GetName()] = p
	}
	return out
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
