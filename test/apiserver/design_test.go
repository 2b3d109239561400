//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// designs are the manifests of examples/design. The value is true for one that only client-side apply
// accepts: server-side apply compares even a status with the schema, in which a condition's status is no
// boolean, and discoveredEndpoints no number.
var designs = map[string]bool{
	"tailnet.yaml": false, "web-proxies.yaml": false, "web-service.yaml": false, "web-proxy-east.yaml": false,
	"web-service-east.yaml": false, "example-endpoints.yaml": false, "corp-gateway.yaml": false, "corp-endpoints.yaml": true,
}

// isDesign reports whether a file is one of examples/design.
func isDesign(path string) bool { return filepath.Base(filepath.Dir(path)) == "design" }

// TestDesigns applies each manifest of examples/design as kubectl apply does, with its status and with
// strict validation, and then again. Then it writes the status by the subresource: the schema has each
// field of it, and the API server stores each value. Two differ: see complete and discoveredEndpoints.
func TestDesigns(t *testing.T) {
	for name, claims := range map[string]bool{"Composites": false, "Claims": true} {
		t.Run(name, func(t *testing.T) {
			root, err := apiserver.Root()
			if err != nil {
				t.Fatal(err)
			}
			c := startServer(t, apiserver.Options{Composites: !claims, Claims: claims})
			a := &applier{T: t, c: client.WithFieldValidation(c, metav1.FieldValidationStrict), claims: claims, patched: map[string]bool{}, conflicts: map[string]bool{}}
			found := 0
			for _, f := range exampleFiles(t, root) {
				if !isDesign(f) {
					continue
				}
				found++
				clientOnly, listed := designs[filepath.Base(f)]
				objects := objectsOf(t, f)
				if !listed || len(objects) != 1 {
					t.Errorf("%s has %d objects, or is not in the list of this test", f, len(objects))
					continue
				}
				o := objects[0]
				a.subject = fmt.Sprintf("%s: %s %s", strings.TrimPrefix(f, root+"/"), o.GetKind(), o.GetName())
				if o.GetKind() != "TailscaleTailnet" {
					o.SetNamespace("default")
				}
				a.design(o)
				if !clientOnly {
					a.delete(a.apply(o, "argocd-controller"))
				}
			}
			if found != len(designs) {
				t.Errorf("%d manifests, want %d", found, len(designs))
			}
		})
	}
}

// TestEarlierMachines applies a status over one of an earlier version, in which machines is a number.
// The API server compares the live object with the schema before each server-side apply, so another type
// there would stop Crossplane at every object that exists.
func TestEarlierMachines(t *testing.T) {
	c := startServer(t, apiserver.Options{Composites: true})
	object := func(field string, value any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleServices",
			"metadata": map[string]any{"name": "web", "namespace": "default"}, field: value,
		}}
	}
	if err := c.Create(t.Context(), object("spec", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}})); err != nil {
		t.Fatal(err)
	}
	for _, machines := range []any{int64(2), []any{"web-0", "web-1"}} {
		selected := map[string]any{"name": "web", "machines": machines}
		o := object("status", map[string]any{"selectedEndpoints": []any{selected}})
		if err := c.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("crossplane"), client.ForceOwnership); err != nil {
			t.Errorf("cannot apply a status with machines %v: %v", machines, err)
		}
	}
}

// design applies a manifest with a status twice, and writes its status.
func (a *applier) design(manifest *unstructured.Unstructured) {
	a.Helper()
	live := annotated(a.T, manifest)
	if err := a.c.Create(a.Context(), live, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		a.Errorf("%s: cannot create: %v", a.subject, err)
		return
	}
	a.contained(manifest.Object["spec"], live.Object["spec"], "spec")
	a.unchanged(live, a.threeWay(manifest, live), "applied again by kubectl")

	status, _, err := unstructured.NestedMap(manifest.Object, "status")
	if err != nil {
		a.Fatal(err)
	}
	if status != nil {
		complete(status)
		if n, ok := status["discoveredEndpoints"].(int64); ok {
			// Ours is a list of so many.
			list := make([]any, n)
			for i := range list {
				list[i] = map[string]any{"name": fmt.Sprintf("e%d", i), "source": "Devices"}
			}
			status["discoveredEndpoints"] = list
		}
		live.Object["status"] = status
		if err := a.c.Status().Update(a.Context(), live); err != nil {
			a.Errorf("%s: cannot write the status: %v", a.subject, err)
		}
		a.contained(status, live.Object["status"], "status")
	}
	a.delete(live)
}

// complete adds the time to conditions, which Crossplane's schema requires, and makes their status a
// string: True is a boolean in YAML.
func complete(status map[string]any) {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok {
			c["lastTransitionTime"] = "2026-01-02T03:04:05Z"
			if value, ok := c["status"].(bool); ok && value {
				c["status"] = "True"
			}
		}
	}
}
