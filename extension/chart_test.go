// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

const (
	chartDir  = "../package/charts/tailscale-gateway-extension"
	chartName = "tailscale-gateway-extension"
	// chartNamespace is the namespace in our documentation.
	chartNamespace = "envoy-gateway-system"
)

// helm runs the lab's Helm, which the Makefile names, without any cluster that this machine may
// know.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return helmOn(t, os.DevNull, args...)
}

func helmOn(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	bin := os.Getenv("TEST_ASSET_HELM")
	if bin == "" {
		t.Fatal("TEST_ASSET_HELM must name Helm's binary: make test-controllers sets it")
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, complaint := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, complaint
	err := cmd.Run()
	return out.String() + complaint.String(), err
}

func render(t *testing.T, values ...string) string {
	t.Helper()
	out, err := tryRender(t, values...)
	if err != nil {
		t.Fatalf("cannot render the chart with %v: %v: %s", values, err, out)
	}
	return out
}

func tryRender(t *testing.T, values ...string) (string, error) {
	t.Helper()
	args := []string{"template", chartName, chartDir, "--namespace=" + chartNamespace, "--kube-version=1.35.4"}
	for _, v := range values {
		args = append(args, "--set="+v)
	}
	return helm(t, args...)
}

// objects returns the objects of a kind, by name.
func objects[T any](t *testing.T, rendered, kind string) map[string]T {
	t.Helper()
	out := map[string]T{}
	for doc := range strings.SplitSeq(rendered, "\n---\n") {
		m := metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
			t.Fatal(err)
		}
		if m.Kind != kind {
			continue
		}
		var o T
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Fatalf("the API server would refuse %s %s: %v", kind, m.Name, err)
		}
		out[m.Name] = o
	}
	if len(out) == 0 {
		t.Fatalf("the chart has no %s", kind)
	}
	return out
}

// variants of the chart, all of which are valid.
var variants = map[string][]string{
	"default":      {},
	"cert-manager": {"certificates.mode=CertManager"},
	"everything": {
		"certificates.mode=Existing", "eds.mode=XDSTP", "networkPolicy.envoyNamespaces.matchLabels.gateways=yes",
		"hooks.trafficPolicy=Cluster", "hooks.maxMessageMiB=512", "replicas=3", "debug=true", "pprof=true", "drainSeconds=20", "directTargets=true", "image.digest=" + digest, "extraArgs[0]=--drain=7s",
		"envoyGateway.namespace=gateways", "networkPolicy.extraEnvoys[0].ipBlock.cidr=10.0.0.0/8", "podAnnotations.team=edge",
		"podLabels.team=edge", "priorityClassName=system-cluster-critical", "imagePullSecrets[0].name=registry", "nodeSelector.zone=a",
		"tolerations[0].operator=Exists", "fullnameOverride=ts", "metrics.podMonitor.enabled=true", "metrics.podMonitor.labels.release=prometheus",
		"env[0].name=HTTPS_PROXY", "env[0].value=http://proxy.example:3128", "env[1].name=NO_PROXY", "env[1].value=$(KUBERNETES_SERVICE_HOST)", "caBundle.configMap=authorities", "caBundle.key=bundle.pem",
		"podSecurityContext.runAsUser=3000", "securityContext.seLinuxOptions.level=s0", "topologySpreadConstraints[0].maxSkew=1", "topologySpreadConstraints[0].topologyKey=zone", "topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
		"affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=kubernetes.io/hostname",
		"clientCertificates[0].namespace=shop", "clientCertificates[0].name=client", "clientCertificates[1].namespace=shop", "clientCertificates[1].name=bank",
	},
	// Where the Job creates certificates, its pods have the same settings.
	"job": {
		"certificates.mode=Job", "podAnnotations.team=edge", "podLabels.team=edge", "priorityClassName=system-cluster-critical", "imagePullSecrets[0].name=registry", "nodeSelector.zone=a", "tolerations[0].operator=Exists",
		"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key=metadata.name", "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=kubernetes.io/hostname",
	},
	// The platform assigns user and group IDs.
	"openshift": {"certificates.mode=Job", "fixedUserIDs=false"},
	// A TailscaleGateway's own extension: the test of the function that composes it compares with
	// this.
	"dedicated": {
		"certificates.mode=Existing", "fullnameOverride=web-extension", "image.tag=v1.2.3", "hooks.trafficPolicy=Cluster",
		"eds.target=10.96.0.6:5006", "eds.mode=GoogleGRPC", "extraArgs[0]=--only-gateway=envoy-gateway-system/eg",
	},
	"bare": {"certificates.mode=Existing", "placeholders=false", "failover=false", "gateways=false", "discoveries=false", "networkPolicy.enabled=false", "replicas=1", "eds.target=dns:///eds.example:5006"},
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestChartGolden compares the rendered chart, without its CRDs, with its goldens.
func TestChartGolden(t *testing.T) {
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			values := append(slices.Clone(values), "crds.enabled=false")
			got := render(t, values...)
			if second := render(t, values...); second != got {
				t.Errorf("the same values render differently: -first, +second:\n%s", cmp.Diff(got, second))
			}
			file := filepath.Join("testdata", "chart", name+".yaml")
			golden.Compare(t, file, []byte(got), nil)
		})
	}
}

func TestChartLint(t *testing.T) {
	if out, err := helm(t, "lint", "--strict", "--kube-version=1.35.4", chartDir); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestChartRefuses checks that the chart refuses values that cannot work, before it installs
// anything.
func TestChartRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		values []string
	}{
		"UnknownValue":      {reason: "A misspelt value must not be ignored.", values: []string{"replica=3"}},
		"NoReplicas":        {reason: "Envoy Gateway would wait for ever.", values: []string{"replicas=0"}},
		"LongName":          {reason: "Names of Services need room for a suffix.", values: []string{"fullnameOverride=" + strings.Repeat("a", 60)}},
		"OpenFlag":          {reason: "A removed value must not be ignored.", values: []string{"hooks.clientCertificates=false"}},
		"ShortDigest":       {reason: "A truncated digest identifies nothing.", values: []string{"image.digest=sha256:0123"}},
		"ConflictingPolicy": {reason: "Kubernetes supports two address families.", values: []string{"hooks.trafficPolicy=local"}},
		"AllSecrets":        {reason: "The extension reads Secrets by name only.", values: []string{"clientCertificates[0].namespace=shop"}},
		"LongJob":           {reason: "Names of CronJobs have 52 characters at most.", values: []string{"fullnameOverride=" + strings.Repeat("a", 40)}},
		"RemovedMode":       {reason: "Helm creates no certificates.", values: []string{"certificates.mode=Helm"}},
		"UnknownAuthority":  {reason: "Authorities are in a ConfigMap.", values: []string{"caBundle.secret=authorities"}},
		"UnknownVariable":   {reason: "A variable has a name and a value.", values: []string{"env[0].name=HTTPS_PROXY", "env[0].val=http://proxy.example"}},
		"UnknownContext":    {reason: "A misspelt context must not leave the default.", values: []string{"podSecurityContexts.runAsUser=1"}},
		"UnknownSecret":     {reason: "A pull secret has only a name.", values: []string{"imagePullSecrets[0].name=registry", "imagePullSecrets[0].namespace=shop"}},
		"Spread":            {reason: "Constraints are a list.", values: []string{"topologySpreadConstraints.maxSkew=1"}},
		"UserIDs":           {reason: "A text would count as true.", values: []string{"fixedUserIDs=no"}},
		"NoPodLabels":       {reason: "All pods could call hooks.", values: []string{"envoyGateway.podLabels.control-plane=null"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if out, err := tryRender(t, tc.values...); err == nil {
				t.Errorf("%s\nthe chart renders with %v:\n%s", tc.reason, tc.values, out)
			}
		})
	}
}

// podTemplates returns the pod templates of the chart, by kind.
func podTemplates(t *testing.T, rendered string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	for _, d := range objects[appsv1.Deployment](t, rendered, "Deployment") {
		out["Deployment"] = d.Spec.Template
	}
	for _, j := range objects[batchv1.Job](t, rendered, "Job") {
		out["Job"] = j.Spec.Template
	}
	for _, j := range objects[batchv1.CronJob](t, rendered, "CronJob") {
		out["CronJob"] = j.Spec.JobTemplate.Spec.Template
	}
	return out
}

// TestChartPodSecurity checks that all pods pass the level restricted, and that they name no user or
// group on request.
func TestChartPodSecurity(t *testing.T) {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	cases := map[string]struct {
		reason string
		values []string
		id     *int64
	}{
		"Default":  {reason: "Pods run as the user of the image, and their group reads the keys of certificates.", id: ptr.To[int64](2000)},
		"Assigned": {reason: "The platform assigns user and groups.", values: []string{"fixedUserIDs=false", "securityContext.runAsUser=3000"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			for kind, template := range podTemplates(t, render(t, append(tc.values, "certificates.mode=Job")...)) {
				for _, r := range e.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
					if !r.Allowed {
						t.Errorf("%s: %s: %s", kind, r.ForbiddenReason, r.ForbiddenDetail)
					}
				}
				pod, container := template.Spec.SecurityContext, template.Spec.Containers[0].SecurityContext
				if diff := cmp.Diff([]*int64{tc.id, tc.id, tc.id, nil}, []*int64{pod.RunAsUser, pod.RunAsGroup, pod.FSGroup, container.RunAsUser}); diff != "" {
					t.Errorf("%s: -want IDs, +got:\n%s", kind, diff)
				}
			}
		})
	}
}

// TestChartImage checks by what the chart of a release names the image.
func TestChartImage(t *testing.T) {
	released := filepath.Join(t.TempDir(), chartName)
	if err := os.CopyFS(released, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(released, "Chart.yaml")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stamped := bytes.Replace(b, []byte(`extension-digest: ""`), []byte("extension-digest: "+digest), 1)
	if bytes.Equal(b, stamped) {
		t.Fatal("the chart has no annotation for the digest")
	}
	if err := os.WriteFile(file, stamped, 0o600); err != nil {
		t.Fatal(err)
	}
	const repository = "ghcr.io/tailscale-gateway/extension"
	other := "sha256:" + strings.Repeat("a", 64)
	cases := map[string]struct {
		reason string
		chart  string
		values []string
		want   string
	}{
		"Development": {reason: "The chart of the tree names a tag.", chart: chartDir, want: repository + ":v0.1.0-dev"},
		"Release":     {reason: "That of a release names the digest.", chart: released, want: repository + "@" + digest},
		"Mirror":      {reason: "A copy has the same digest.", chart: released, values: []string{"image.repository=registry.example/mirror/extension"}, want: "registry.example/mirror/extension@" + digest},
		"Tag":         {reason: "A tag is of another image.", chart: released, values: []string{"image.tag=v9"}, want: repository + ":v9"},
		"Digest":      {reason: "So is a digest.", chart: released, values: []string{"image.tag=v9", "image.digest=" + other}, want: repository + "@" + other},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := []string{"template", chartName, tc.chart, "--namespace=" + chartNamespace, "--kube-version=1.35.4", "--set=certificates.mode=Job"}
			for _, v := range tc.values {
				args = append(args, "--set="+v)
			}
			out, err := helm(t, args...)
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for kind, template := range podTemplates(t, out) {
				if diff := cmp.Diff(tc.want, template.Spec.Containers[0].Image); diff != "" {
					t.Errorf("%s %s: -want, +got:\n%s", tc.reason, kind, diff)
				}
			}
		})
	}
}

// TestChartFlags checks that the binary accepts the flags of the chart.
func TestChartFlags(t *testing.T) {
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			for _, d := range objects[appsv1.Deployment](t, render(t, values...), "Deployment") {
				c := d.Spec.Template.Spec.Containers[0]
				// The values that kubelet puts in for the Service.
				replacer := strings.NewReplacer(
					"$("+variable(d.GetName())+"_SERVICE_HOST)", "10.96.0.7", "$("+variable(d.GetName())+"_SERVICE_PORT)", "5006")
				args := make([]string, len(c.Args))
				for i, a := range c.Args {
					args[i] = replacer.Replace(a)
				}
				cli := parseFlags(t, args)
				if target, err := xds.DialTarget(cli.EDSTarget); err != nil || !strings.Contains(target, ":") {
					t.Errorf("Envoys would dial %q: %v", target, err)
				}
			}
		})
	}
}

// variable returns the variable that Kubernetes makes from the name of the Service for endpoints.
func variable(name string) string {
	return strings.ReplaceAll(strings.ToUpper(name+"-eds"), "-", "_")
}

// TestChartRoles compares the roles with the watched kinds: a missing permission keeps the
// extension from becoming ready, and no other may be granted.
func TestChartRoles(t *testing.T) {
	s, err := parse.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		// Kinds that the extension writes.
		"tailscalerevisions.gateway.tailscale.com":            {"create", "delete", "get", "list", "patch", "watch"},
		"healthreports.tailnet.gateway.tailscale.com":         {"create", "delete", "list", "patch"},
		"tailscaleroutepolicies/status.gateway.tailscale.com": {"patch"},
		"backendtlspolicies/status.gateway.networking.k8s.io": {"patch"},
		"events.": {"create", "patch"},
		// The ConfigMaps that others name (package references).
		"configmaps.": {"list", "watch"},
		// Permissions that the admission policies require for writing these kinds.
		"tailscalerevisions/write.gateway.tailscale.com":    {"create", "delete", "update"},
		"healthreports/write.tailnet.gateway.tailscale.com": {"create", "delete", "update"},
		// Kinds that reports describe beside backends (package gateways).
		"clienttrafficpolicies.gateway.envoyproxy.io":  {"get", "list", "watch"},
		"envoyextensionpolicies.gateway.envoyproxy.io": {"get", "list", "watch"},
		"envoypatchpolicies.gateway.envoyproxy.io":     {"get", "list", "watch"},
		"securitypolicies.gateway.envoyproxy.io":       {"get", "list", "watch"},
	}
	for _, o := range parse.Kinds() {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			t.Fatal(err)
		}
		want[resource(gvk)] = []string{"get", "list", "watch"}
	}
	if diff := cmp.Diff(want, allowed(t, "placeholders=false", "failover=false", "gateways=false", "discoveries=false", "eds.mode=GoogleGRPC")); diff != "" {
		t.Errorf("what the extension does without placeholders, failover, TailscaleGateways, Discoveries and EnvoyProxies: -want allowed, +allowed:\n%s", diff)
	}
	for _, o := range parse.BootstrapKinds() {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			t.Fatal(err)
		}
		want[resource(gvk)] = []string{"get", "list", "watch"}
	}
	if diff := cmp.Diff(want, allowed(t, "placeholders=false", "failover=false", "gateways=false", "discoveries=false")); diff != "" {
		t.Errorf("what the extension does without placeholders, failover, TailscaleGateways and Discoveries: -want allowed, +allowed:\n%s", diff)
	}
	written := []string{"create", "delete", "get", "list", "patch", "watch"}
	want["discoveries.tailnet.gateway.tailscale.com"] = written
	if diff := cmp.Diff(want, allowed(t, "placeholders=false", "failover=false", "gateways=false")); diff != "" {
		t.Errorf("what the extension does without placeholders, failover and TailscaleGateways: -want allowed, +allowed:\n%s", diff)
	}
	want["endpointslices.discovery.k8s.io"] = written
	if diff := cmp.Diff(want, allowed(t, "placeholders=false", "gateways=false")); diff != "" {
		t.Errorf("what the extension does without placeholders and TailscaleGateways: -want allowed, +allowed:\n%s", diff)
	}
	want["httproutes.gateway.networking.k8s.io"] = written
	if diff := cmp.Diff(want, allowed(t, "gateways=false")); diff != "" {
		t.Errorf("what the extension does without TailscaleGateways: -want allowed, +allowed:\n%s", diff)
	}
	want["backendtlspolicies.gateway.networking.k8s.io"] = written
	want["grpcroutes.gateway.networking.k8s.io"] = written
	want["gatewayreports.tailnet.gateway.tailscale.com"] = written
	want["gatewayreports/write.tailnet.gateway.tailscale.com"] = []string{"create", "delete", "update"}
	if diff := cmp.Diff(want, allowed(t)); diff != "" {
		t.Errorf("what the extension does: -want allowed, +allowed:\n%s", diff)
	}

	roles := objects[rbacv1.ClusterRole](t, render(t, "certificates.mode=Existing"), "ClusterRole")
	for name, role := range roles {
		for _, r := range role.Rules {
			for _, s := range slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.NonResourceURLs) {
				if strings.Contains(s, "*") {
					t.Errorf("ClusterRole %s grants more than it names: %v", name, r)
				}
			}
		}
	}
}

// allowed returns the extension's permissions, as sorted verbs by resource.
func allowed(t *testing.T, values ...string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, r := range objects[rbacv1.ClusterRole](t, render(t, values...), "ClusterRole")[chartName].Rules {
		for _, g := range r.APIGroups {
			for _, res := range r.Resources {
				verbs := slices.Concat(out[res+"."+g], r.Verbs)
				slices.Sort(verbs)
				out[res+"."+g] = slices.Compact(verbs)
			}
		}
	}
	return out
}

// resource returns the plural of a kind in its CRD. Most of our kinds have plural names.
func resource(k schema.GroupVersionKind) string {
	if strings.HasPrefix(k.Kind, "Tailscale") && strings.HasSuffix(k.Kind, "s") {
		return strings.ToLower(k.Kind) + "." + k.Group
	}
	if strings.HasSuffix(k.Kind, "Gateway") {
		// The guess would be wrong.
		return strings.ToLower(k.Kind) + "s." + k.Group
	}
	r, _ := meta.UnsafeGuessKindToResource(k)
	return r.Resource + "." + r.Group
}

func arg(t *testing.T, rendered, prefix string) string {
	t.Helper()
	for _, d := range objects[appsv1.Deployment](t, rendered, "Deployment") {
		for _, a := range d.Spec.Template.Spec.Containers[0].Args {
			if strings.HasPrefix(a, prefix) {
				return a
			}
		}
	}
	t.Fatalf("the Deployment has no %s", prefix)
	return ""
}

// TestChartPorts checks that Services and the NetworkPolicy name ports of the pod.
func TestChartPorts(t *testing.T) {
	rendered := render(t)
	ports := map[string]bool{}
	for _, d := range objects[appsv1.Deployment](t, rendered, "Deployment") {
		for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
			ports[p.Name] = true
		}
	}
	named := map[string]bool{}
	for _, s := range objects[corev1.Service](t, rendered, "Service") {
		for _, p := range s.Spec.Ports {
			named[p.TargetPort.String()] = true
		}
	}
	allowed := map[string]bool{}
	for _, n := range objects[networkingv1.NetworkPolicy](t, rendered, "NetworkPolicy") {
		for _, r := range n.Spec.Ingress {
			if len(r.From) == 0 {
				t.Errorf("the NetworkPolicy permits any client to reach %v", r.Ports)
			}
			for _, p := range r.Ports {
				allowed[p.Port.String()] = true
			}
		}
	}
	if diff := cmp.Diff(ports, named); diff != "" {
		t.Errorf("Services: -ports of the pod, +named:\n%s", diff)
	}
	if diff := cmp.Diff(ports, allowed); diff != "" {
		t.Errorf("NetworkPolicy: -ports of the pod, +named:\n%s", diff)
	}
}
