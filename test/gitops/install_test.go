// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// installation is the folder of examples that install everything. TestInstallSchemas, with the build tag
// integration, validates its objects.
const installation = "examples/gitops"

// An installed object is one of a file of installation.
type installed struct {
	// file is relative to the root of the repository.
	file string
	*unstructured.Unstructured
}

// installs returns the objects of a folder, in the order of their files. Files that are no objects, such as
// patches, are left out.
func installs(t *testing.T, dir string) []installed {
	t.Helper()
	var out []installed
	err := fs.WalkDir(os.DirFS(root), dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		for _, doc := range bytes.Split(b, []byte("\n---\n")) {
			o := &unstructured.Unstructured{}
			j, err := yaml.YAMLToJSONStrict(doc)
			if err != nil {
				return err
			}
			if !bytes.Contains(j, []byte(`"kind":`)) {
				continue
			}
			if err := o.UnmarshalJSON(j); err != nil {
				return err
			}
			out = append(out, installed{file, o})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatalf("%s has no objects", dir)
	}
	return out
}

// of returns the objects of a kind, by name.
func of(all []installed, kind string) map[string]installed {
	out := map[string]installed{}
	for _, o := range all {
		if o.GetKind() == kind {
			out[o.GetName()] = o
		}
	}
	return out
}

// names returns the names in a list of references.
func names(t *testing.T, o installed, fields ...string) []string {
	t.Helper()
	list, _, err := unstructured.NestedSlice(o.Object, fields...)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		out = append(out, fmt.Sprint(r.(map[string]any)["name"])) //nolint:forcetypeassert // A test may panic.
	}
	return out
}

// text returns a field of an object.
func text(t *testing.T, o installed, fields ...string) string {
	t.Helper()
	s, _, err := unstructured.NestedString(o.Object, fields...)
	if err != nil {
		t.Fatalf("%s: %v", o.file, err)
	}
	return s
}

// TestInstallWaves checks that each Application is in a later wave than what it needs, that waves wait, and
// that every Application has the settings that docs/gitops.md explains.
func TestInstallWaves(t *testing.T) {
	apps := of(installs(t, installation+"/argocd/apps"), "Application")
	wave := func(name string) int {
		n, err := strconv.Atoi(apps[name].GetAnnotations()["argocd.argoproj.io/sync-wave"])
		if err != nil {
			t.Fatalf("Application %q has no wave: %v", name, err)
		}
		return n
	}
	for name, needs := range map[string][]string{
		"crossplane":                  nil,
		"tailscale-gateway":           {"crossplane"},
		"tailscale-gateway-extension": {"tailscale-gateway"},
		"eg":                          {"tailscale-gateway-extension"},
		"web":                         {"tailscale-gateway"},
	} {
		for _, n := range needs {
			if wave(n) >= wave(name) {
				t.Errorf("Application %q in wave %d needs %q in wave %d", name, wave(name), n, wave(n))
			}
		}
	}
	if len(apps) != 5 {
		t.Errorf("want five Applications, got %d", len(apps))
	}
	for name, a := range of(installs(t, installation+"/argocd"), "Application") {
		if got := a.GetAnnotations()["argocd.argoproj.io/compare-options"]; got != "ServerSideDiff=true" {
			t.Errorf("Application %q compares with %q", name, got)
		}
		options, _, err := unstructured.NestedStringSlice(a.Object, "spec", "syncPolicy", "syncOptions")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ServerSideApply=true", "SkipDryRunOnMissingResource=true"} {
			if !slices.Contains(options, want) {
				t.Errorf("Application %q lacks the option %s", name, want)
			}
		}
		if _, ok, _ := unstructured.NestedMap(a.Object, "spec", "syncPolicy", "retry"); !ok {
			t.Errorf("Application %q is not retried", name)
		}
	}
}

// TestInstallSettings checks the settings of Argo CD: the health of an Application is its own.
func TestInstallSettings(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, installation, "argocd", "argocd-cm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	settings := corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(b, &settings); err != nil {
		t.Fatal(err)
	}
	if got := settings.Data["application.resourceTrackingMethod"]; got != "annotation" {
		t.Errorf("Argo CD tracks objects by %q", got)
	}
	cases := map[string]struct {
		reason string
		status map[string]any
		want   Health
	}{
		"New":      {reason: "A new Application is not complete.", want: Health{Status: Progressing, Message: "Waiting for the first comparison"}},
		"Unknown":  {reason: "Nor is one whose health is not known.", status: map[string]any{"health": map[string]any{}}, want: Health{Status: Progressing, Message: "Waiting for the first comparison"}},
		"Healthy":  {reason: "The next wave follows a healthy one.", status: map[string]any{"health": map[string]any{"status": Healthy}}, want: Health{Status: Healthy}},
		"Degraded": {reason: "A failure is shown.", status: map[string]any{"health": map[string]any{"status": Degraded, "message": "boom"}}, want: Health{Status: Degraded, Message: "boom"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}}
			if tc.status != nil {
				o.Object["status"] = tc.status
			}
			got, err := Run(settings.Data[keyPrefix+"argoproj.io_Application"], o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInstallDependencies checks that each Kustomization and HelmRelease depends on what it needs, and that
// a Kustomization waits for the health of its objects.
func TestInstallDependencies(t *testing.T) {
	all := installs(t, installation+"/flux")
	kustomizations := map[string][]string{}
	for name, k := range of(all, "Kustomization") {
		if k.GetAPIVersion() != "kustomize.toolkit.fluxcd.io/v1" {
			continue // One of Kustomize, without a name.
		}
		kustomizations[name] = names(t, k, "spec", "dependsOn")
		wait, _, _ := unstructured.NestedBool(k.Object, "spec", "wait")
		checks, _, _ := unstructured.NestedSlice(k.Object, "spec", "healthChecks")
		if wait == (len(checks) > 0) {
			t.Errorf("Kustomization %q must either wait for all objects or for those that it names", name)
		}
	}
	if diff := cmp.Diff(map[string][]string{
		"tailscale-gateway": nil,
		"tailscale-tailnet": {"tailscale-gateway"},
		"tailscale-proxies": {"tailscale-tailnet"},
		"web":               {"tailscale-proxies"},
		"envoy-gateway":     {"tailscale-tailnet"},
		"gateway-class":     {"envoy-gateway"},
	}, kustomizations); diff != "" {
		t.Errorf("dependencies of Kustomizations: -want, +got:\n%s", diff)
	}
	releases := map[string][]string{}
	for name, r := range of(all, "HelmRelease") {
		releases[name] = names(t, r, "spec", "dependsOn")
		for _, action := range []string{"install", "upgrade"} {
			if got := text(t, r, "spec", action, "crds"); got != "CreateReplace" {
				t.Errorf("the %s of HelmRelease %q does %q with CRDs", action, name, got)
			}
		}
	}
	if diff := cmp.Diff(map[string][]string{
		"crossplane":                  nil,
		"tailscale-gateway":           {"crossplane"},
		"tailscale-gateway-extension": {"tailscale-gateway"},
		"eg":                          {"tailscale-gateway-extension"},
	}, releases); diff != "" {
		t.Errorf("dependencies of HelmReleases: -want, +got:\n%s", diff)
	}
}

// TestInstallPaths checks that each tool applies every file of objects, and that what it names exists.
func TestInstallPaths(t *testing.T) {
	files := func(dir string) []string {
		var out []string
		for _, o := range installs(t, dir) {
			out = append(out, o.file)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	want := files(installation + "/objects")
	var flux, argo []string
	for _, k := range of(installs(t, installation+"/flux"), "Kustomization") {
		if p := strings.TrimPrefix(text(t, k, "spec", "path"), "./"); p != "" {
			flux = append(flux, files(p)...)
		}
	}
	for _, f := range files(installation + "/flux") {
		// The two files that users apply.
		if path.Dir(f) != installation+"/flux" {
			want = append(want, f)
		}
	}
	slices.Sort(flux)
	slices.Sort(want)
	if diff := cmp.Diff(want, flux); diff != "" {
		t.Errorf("-files, +what Flux applies:\n%s", diff)
	}
	for _, a := range of(installs(t, installation+"/argocd"), "Application") {
		for _, s := range sources(t, a) {
			p, _, _ := unstructured.NestedString(s, "path")
			exclude, _, _ := unstructured.NestedString(s, "directory", "exclude")
			if p == "" {
				continue
			}
			excluded := 0
			for _, f := range files(p) {
				// Argo CD's asterisk also matches slashes (argo-cd util/glob/glob.go), of which these names have one.
				if skip, err := path.Match(exclude, strings.TrimPrefix(f, p+"/")); err != nil || skip {
					excluded++
					continue
				}
				argo = append(argo, f)
			}
			if exclude != "" && excluded != 1 {
				t.Errorf("Application %q excludes %d files by %s", a.GetName(), excluded, exclude)
			}
		}
	}
	slices.Sort(argo)
	want = append(files(installation+"/objects"), installation+"/argocd/apps/crossplane.yaml", installation+"/argocd/apps/tailscale-gateway.yaml", installation+"/argocd/apps/web.yaml")
	slices.Sort(want)
	if diff := cmp.Diff(want, argo); diff != "" {
		t.Errorf("-files, +what Argo CD applies:\n%s", diff)
	}
}

// sources returns the sources of an Application.
func sources(t *testing.T, a installed) []map[string]any {
	t.Helper()
	if s, ok, _ := unstructured.NestedMap(a.Object, "spec", "source"); ok {
		return []map[string]any{s}
	}
	list, _, err := unstructured.NestedSlice(a.Object, "spec", "sources")
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, s := range list {
		out = append(out, s.(map[string]any)) //nolint:forcetypeassert // A test may panic.
	}
	return out
}

// A release is a chart with its version and values.
type release struct {
	Namespace, Chart, Version string
	Values                    map[string]any
}

// fluxReleases returns the charts that Flux installs, by the release's name.
func fluxReleases(t *testing.T) map[string]release {
	t.Helper()
	all := installs(t, installation+"/flux")
	out := map[string]release{}
	for name, r := range of(all, "HelmRelease") {
		values, _, _ := unstructured.NestedMap(r.Object, "spec", "values")
		repository, ok := of(all, "OCIRepository")[text(t, r, "spec", "chartRef", "name")]
		if ok {
			out[name] = release{r.GetNamespace(), strings.TrimPrefix(text(t, repository, "spec", "url"), "oci://"), text(t, repository, "spec", "ref", "tag"), values}
			continue
		}
		index := of(all, "HelmRepository")[text(t, r, "spec", "chart", "spec", "sourceRef", "name")]
		out[name] = release{r.GetNamespace(), text(t, index, "spec", "url") + "/" + text(t, r, "spec", "chart", "spec", "chart"), text(t, r, "spec", "chart", "spec", "version"), values}
	}
	return out
}

// argoReleases returns the charts that Argo CD installs, by the Application's name.
func argoReleases(t *testing.T) map[string]release {
	t.Helper()
	out := map[string]release{}
	for name, a := range of(installs(t, installation+"/argocd/apps"), "Application") {
		for _, s := range sources(t, a) {
			chart, ok := s["chart"]
			if !ok {
				continue
			}
			values, _, _ := unstructured.NestedMap(s, "helm", "valuesObject")
			out[name] = release{text(t, a, "spec", "destination", "namespace"), fmt.Sprintf("%v/%v", s["repoURL"], chart), fmt.Sprint(s["targetRevision"]), values}
		}
	}
	return out
}

// TestInstallCharts checks that both tools install the same charts with the same values, in the versions
// that are tested and that docs name.
func TestInstallCharts(t *testing.T) {
	ours, crossplane, envoyGateway := named(t, "README.md", `--version (0\.\d+\.\d+)`), named(t, "cluster/tools/crossplane/go.mod", `crossplane/crossplane/v2 v(\S+)`), named(t, "go.mod", `envoyproxy/gateway (v\S+)`)
	want := map[string]release{
		"crossplane": {"crossplane-system", "https://charts.crossplane.io/stable/crossplane", crossplane, nil},
		"tailscale-gateway": {"crossplane-system", products.Charts + "/" + charts.Install, ours, map[string]any{"tailnet": map[string]any{
			"name": "example", "oauthSecretName": "tailscale-oauth", "spec": map[string]any{"tags": []any{"tag:k8s"}},
		}}},
		"tailscale-gateway-extension": {"envoy-gateway-system", products.Charts + "/" + charts.Extension, ours, map[string]any{"certificates": map[string]any{"mode": "Job"}}},
		"eg":                          {"envoy-gateway-system", "docker.io/envoyproxy/gateway-helm", envoyGateway, nil},
	}
	if diff := cmp.Diff(want, fluxReleases(t)); diff != "" {
		t.Errorf("Flux: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, argoReleases(t)); diff != "" {
		t.Errorf("Argo CD: -want, +got:\n%s", diff)
	}
	for _, a := range of(installs(t, installation+"/argocd"), "Application") {
		for _, s := range sources(t, a) {
			if _, ok := s["path"]; ok && (s["targetRevision"] != "v"+ours || s["repoURL"] != "https://github.com/"+products.Owner+"/tailscale-gateway.git") {
				t.Errorf("Application %q has %v at %v", a.GetName(), s["repoURL"], s["targetRevision"])
			}
		}
	}
	for _, r := range of(installs(t, installation+"/flux"), "GitRepository") {
		if got := text(t, r, "spec", "ref", "tag"); got != "v"+ours {
			t.Errorf("GitRepository %q has the tag %q", r.GetName(), got)
		}
	}
}

// named returns the first submatch of a pattern in a file.
func named(t *testing.T, file, pattern string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(b)
	if m == nil {
		t.Fatalf("%s does not match %s", file, pattern)
	}
	return string(m[1])
}

// inlined matches the expressions of a kind of ours in a file of Kustomizations.
var inlined = regexp.MustCompile(`(    kind: Tailscale\w+\n)    inProgress: >-\n(?:      .*\n)+    failed: >-\n(?:      .*\n)+    current: >-\n(?:      .*\n)+`)

// TestInstallExpressions checks that the expressions of the Kustomizations are those of package/flux. With
// -update it copies these.
func TestInstallExpressions(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "package", "flux", "health", string(Composites)+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "#") {
			body.WriteString("    " + line)
		}
	}
	file := filepath.Join(root, installation, "flux", "sync.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(inlined.FindAll(text, -1)); n != 3 {
		t.Errorf("the test finds the expressions of %d kinds, want 3", n)
	}
	golden.Compare(t, file, inlined.ReplaceAll(text, []byte("${1}"+body.String())), nil)
	for _, k := range of(installs(t, installation+"/flux"), "Kustomization") {
		list, _, _ := unstructured.NestedSlice(k.Object, "spec", "healthCheckExprs")
		for _, item := range list {
			e := item.(map[string]any) //nolint:forcetypeassert // A test may panic.
			if e["kind"] == "Configuration" {
				checkPackages(t, Expressions{Kind: "Configuration", Current: fmt.Sprint(e["current"])})
			}
		}
	}
}
