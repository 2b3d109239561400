// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/test/gitops"
)

const (
	exampleNamespace = "tailscale-example"
	exampleConfig    = "example"
)

var (
	nodeIDs = regexp.MustCompile(`(?m)^\s*(?:nodeID|crossplane\.io/external-name):\s*"?(n[A-Za-z0-9]+CNTRL)"?`)
	tags    = regexp.MustCompile(`tag:[a-zA-Z][a-zA-Z0-9-]*`)
)

// TestExamples applies every file of examples/managed, after creating its namespace and provider
// config. Each file has a separate tailnet with the devices that it names, and with a policy file
// that lets the credential assign its tags.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "managed", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no examples")
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			testExample(t, string(b))
		})
	}
}

// testExample renames namespace and provider config, so that examples run in parallel.
func testExample(t *testing.T, manifest string) {
	e := newEnv(t)
	e.must(e.tailnet.PolicyFile().Set(t.Context(), examplePolicy(manifest), ""))
	for _, m := range nodeIDs.FindAllStringSubmatch(manifest, -1) {
		_, err := e.sim.Join(tailnetsim.Puppet{NodeID: m[1], Hostname: "device", Routes: []string{"10.0.0.0/16"}})
		e.must(err)
	}
	runPods(e)
	for _, want := range []string{"namespace: " + exampleNamespace, "name: " + exampleConfig} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the example does not contain %q", want)
		}
	}
	manifest = strings.ReplaceAll(manifest, exampleNamespace, e.namespace)
	var managed []*unstructured.Unstructured
	for _, o := range e.parse(manifest) {
		if _, found, _ := unstructured.NestedMap(o.Object, "spec", "providerConfigRef"); found {
			ref := map[string]any{"kind": v1alpha1.ProviderConfigKind, "name": configName}
			e.must(unstructured.SetNestedMap(o.Object, ref, "spec", "providerConfigRef"))
			managed = append(managed, o)
		}
		if o.GetKind() == "Namespace" {
			continue // The object exists.
		}
		e.create(o)
	}
	if len(managed) == 0 {
		t.Error("the example has no managed resource")
	}
	for _, o := range managed {
		e.eventually(o.GetKind()+" "+o.GetName()+" is Ready", func() error {
			if err := shared.kube.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			return readyObject(o)
		})
		// Argo CD agrees, from the status that the provider wrote.
		switch h, err := gitops.HealthOf(filepath.Join("..", ".."), o); {
		case err != nil:
			t.Error(err)
		case h.Status != gitops.Healthy:
			t.Errorf("%s %s is Ready, and Argo CD shows %+v", o.GetKind(), o.GetName(), h)
		}
	}
	for _, o := range slices.Backward(managed) {
		e.must(shared.kube.Delete(t.Context(), o))
	}
	for _, o := range managed {
		e.eventually(o.GetKind()+" "+o.GetName()+" is gone", func() error {
			err := shared.kube.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			if kerrors.IsNotFound(err) {
				return nil
			}
			return errors.Errorf("the object still exists: %v %v", err, o.Object["status"])
		})
	}
}

// readyObject returns an error unless an object is Ready and Synced.
func readyObject(o *unstructured.Unstructured) error {
	cs, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return err
	}
	active := map[string]bool{}
	for _, c := range cs {
		if m, ok := c.(map[string]any); ok && m["status"] == "True" {
			active[fmt.Sprint(m["type"])] = true
		}
	}
	if active["Ready"] && active["Synced"] {
		return nil
	}
	return errors.Errorf("conditions: %v", cs)
}

// examplePolicy returns owners for the tags of a manifest, unless the manifest has them.
func examplePolicy(manifest string) string {
	owners := []string{`"tag:k8s-operator": []`}
	if !strings.Contains(manifest, "kind: PolicyFragment") {
		found := append(tags.FindAllString(manifest, -1), "tag:k8s")
		slices.Sort(found)
		for _, t := range slices.Compact(found) {
			if t != "tag:k8s-operator" {
				owners = append(owners, fmt.Sprintf("%q: [\"tag:k8s-operator\"]", t))
			}
		}
	}
	return `{"tagOwners": {` + strings.Join(owners, ", ") + `}, "grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}]}`
}
