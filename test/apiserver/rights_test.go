//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestRights compares all rights in the project's manifests, and those that Crossplane creates for
// its packages, with a file: a review shows each additional right. Roles that functions compose
// come from some examples, as in test/render.
func TestRights(t *testing.T) {
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	got := &strings.Builder{}
	fmt.Fprintln(got, "# Who may do what. Written by: go test -tags=integration ./test/apiserver/ -run TestRights -update")
	var files []string
	for _, example := range []string{"extension-server", "gateway-split-dns", "kernel", "tls"} {
		more, err := filepath.Glob(filepath.Join(root, "test", "render", "testdata", example, "configuration", "*.yaml"))
		if err != nil || len(more) == 0 {
			t.Fatalf("no goldens of example %s: %v", example, err)
		}
		files = append(files, more...)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := apiserver.Objects(b)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, f)
		if err != nil {
			t.Fatal(err)
		}
		describe(t, got, name, objects)
	}
	helm, err := apiserver.Program(t.Context(), root, "helm", "TEST_ASSET_HELM")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, namespace string
		values          []string
	}{
		{name: charts.Install, namespace: apiserver.CrossplaneNamespace, values: []string{"--set=provider.workloadIdentity=true,provider.staticEndpoints=true,provider.publishServices=true"}},
		{name: charts.Extension, namespace: extensionNamespace, values: []string{"--set=clientCertificates[0].namespace=shop", "--set=clientCertificates[0].name=client"}},
	} {
		chart := "package/charts/" + c.name
		args := append([]string{"template", c.name, filepath.Join(root, chart), "--namespace=" + c.namespace, "--kube-version=1.35.4"}, c.values...)
		rendered, err := exec.CommandContext(t.Context(), helm, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		objects, err := apiserver.Objects(rendered)
		if err != nil {
			t.Fatal(err)
		}
		describe(t, got, chart, objects)
	}
	objects, err := apiserver.CrossplaneRoles(root)
	if err != nil {
		t.Fatal(err)
	}
	describe(t, got, "Crossplane's RBAC manager, of our packages", objects)

	golden.Compare(t, filepath.Join("testdata", "rights.txt"), []byte(got.String()), nil)
}

// describe writes the rules of a source's roles, and their subjects.
func describe(t *testing.T, w *strings.Builder, source string, objects []client.Object) {
	t.Helper()
	var out []string
	for _, o := range objects {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		kind := o.GetObjectKind().GroupVersionKind().Kind
		switch o.(type) {
		case *rbacv1.ClusterRole:
			kind = "ClusterRole"
		case *rbacv1.ClusterRoleBinding:
			kind = "ClusterRoleBinding"
		}
		head := kind + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
		switch kind {
		case "Role", "ClusterRole":
			r := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u, r); err != nil {
				t.Fatal(err)
			}
			out = append(out, head+aggregates(r)+grants(r.Rules))
		case "RoleBinding", "ClusterRoleBinding":
			b := &rbacv1.ClusterRoleBinding{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u, b); err != nil {
				t.Fatal(err)
			}
			lines := []string{head}
			for _, s := range b.Subjects {
				lines = append(lines, "  "+s.Kind+" "+strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")+" has "+b.RoleRef.Kind+" "+b.RoleRef.Name)
			}
			out = append(out, strings.Join(lines, "\n"))
		}
	}
	if len(out) == 0 {
		return
	}
	slices.Sort(out)
	fmt.Fprintf(w, "\n## %s\n\n%s\n", source, strings.Join(out, "\n"))
}

// aggregates returns the roles that a role is added to, or consists of.
func aggregates(r *rbacv1.ClusterRole) string {
	var out []string
	for k, v := range r.GetLabels() {
		if strings.Contains(k, "/aggregate-to-") && v == "true" {
			out = append(out, "\n  added to "+k)
		}
	}
	if a := r.AggregationRule; a != nil {
		for _, s := range a.ClusterRoleSelectors {
			for k := range s.MatchLabels {
				out = append(out, "\n  made of "+k)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// grants returns a line for each resource.
func grants(rules []rbacv1.PolicyRule) string {
	var out []string
	for _, r := range rules {
		for _, g := range r.APIGroups {
			if g == "" {
				g = "core"
			}
			for _, res := range r.Resources {
				line := "\n  " + g + " " + res
				if len(r.ResourceNames) > 0 {
					line += " " + fmt.Sprint(r.ResourceNames)
				}
				out = append(out, line+": "+strings.Join(slices.Sorted(slices.Values(r.Verbs)), " "))
			}
		}
		for _, u := range r.NonResourceURLs {
			out = append(out, "\n  "+u+": "+strings.Join(slices.Sorted(slices.Values(r.Verbs)), " "))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}
