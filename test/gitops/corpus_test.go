// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose/composetest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

// root of the repository.
const root = "../.."

// results are what Flux should report for each status of Argo CD.
var results = map[string]string{Healthy: Current, Degraded: Failed, Progressing: InProgress, Suspended: InProgress}

// condition is a condition in a golden file of a function, see golden.Condition.
var condition = regexp.MustCompile(`(?s)^(\w+)=(TRUE|FALSE|UNKNOWN) (\w+)(?:: (.*))?$`)

// statuses are the names of Kubernetes for the statuses in golden files.
var statuses = map[string]string{"TRUE": "True", "FALSE": "False", "UNKNOWN": "Unknown"}

// TestVerdicts checks the health of each composite of the functions' golden files. The golden file
// of this test has the status, and the condition with the message that Argo CD shows.
func TestVerdicts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "functions", "*", "testdata", "out", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	seen := map[string]bool{}
	for _, path := range paths {
		o := composite(t, path)
		if o == nil {
			continue
		}
		h := healthOf(t, o)
		seen[h.Status] = true
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		fmt.Fprintf(&out, "%s/%s: %s%s\n", strings.ToLower(o.GetKind()), name, h.Status, source(o, h.Message))
	}
	for _, s := range []string{Healthy, Progressing, Degraded} {
		if !seen[s] {
			t.Errorf("no golden file of a function is %s", s)
		}
	}
	golden.Compare(t, filepath.Join("testdata", "verdicts.txt"), []byte(out.String()), nil)
}

// healthOf returns the health of an object, and fails the test if Flux's differs.
func healthOf(t *testing.T, o *unstructured.Unstructured) Health {
	t.Helper()
	h, err := HealthOf(root, o)
	if err != nil {
		t.Fatal(err)
	}
	if h.Message == "" {
		t.Errorf("%s %q is %s without a message", o.GetKind(), o.GetName(), h.Status)
	}
	c, err := CheckOf(o.GroupVersionKind().GroupKind())
	if err != nil {
		t.Fatal(err)
	}
	if c == MachineSets || c == Plain {
		return h
	}
	e, err := c.Expressions(root)
	if err != nil {
		t.Fatal(err)
	}
	result, err := e.Evaluate(o)
	if _, exists := o.Object["status"]; !exists && err != nil {
		// Flux waits.
		result, err = InProgress, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if result != results[h.Status] {
		t.Errorf("%s %q is %s in Flux and %s (%s) in Argo CD", o.GetKind(), o.GetName(), result, h.Status, h.Message)
	}
	return h
}

// source returns the type of the condition that has a message, in parentheses. It returns nothing
// for a message of the check itself.
func source(o *unstructured.Unstructured, message string) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		if c, ok := c.(map[string]any); ok && c["message"] == message {
			return fmt.Sprintf(" (%v)", c["type"])
		}
	}
	return ""
}

// composite returns the composite of a golden file of a function as Crossplane writes it: with the
// function's conditions, and with Synced and Ready (crossplane v2.4
// internal/controller/apiextensions/composite/reconciler.go). It returns nil for a step in a pipeline
// of another composite.
func composite(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	c := composetest.ReadCase(t, filepath.Join(filepath.Dir(filepath.Dir(path)), "in", filepath.Base(path)))
	o := &unstructured.Unstructured{Object: c.Objects[0]}
	if c, err := CheckOf(o.GroupVersionKind().GroupKind()); err != nil || c != Composites {
		return nil
	}
	out, err := golden.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	rsp := &struct {
		Conditions []string `json:"conditions"`
		Desired    struct {
			Composite struct {
				Ready string `json:"ready"`
			} `json:"composite"`
			Resources map[string]any `json:"resources"`
		} `json:"desired"`
		Results []struct {
			Severity string `json:"severity"`
			Message  string `json:"message"`
		} `json:"results"`
	}{}
	if err := yaml.Unmarshal(out, rsp); err != nil {
		t.Fatal(err)
	}
	var conditions []any
	for _, c := range rsp.Conditions {
		m := condition.FindStringSubmatch(c)
		if m == nil {
			t.Fatalf("%s: %q is no condition", path, c)
		}
		conditions = append(conditions, map[string]any{"type": m[1], "status": statuses[m[2]], "reason": m[3], "message": m[4]})
	}
	synced := map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess"}
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "Available"}
	if rsp.Desired.Composite.Ready == "READY_FALSE" || unready(rsp.Desired.Resources) {
		ready = map[string]any{"type": "Ready", "status": "False", "reason": "Creating"}
	}
	for _, r := range rsp.Results {
		if r.Severity == "SEVERITY_FATAL" {
			synced = map[string]any{"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "cannot compose resources: " + r.Message}
		}
	}
	if err := setConditions(o, append(conditions, synced, ready)...); err != nil {
		t.Fatal(err)
	}
	return o
}

// unready reports whether a resource of a golden file is not ready.
func unready(resources map[string]any) bool {
	for _, r := range resources {
		if m, ok := r.(map[string]any); ok {
			r = m["ready"]
		}
		if !strings.HasPrefix(fmt.Sprint(r), "READY_TRUE") {
			return true
		}
	}
	return false
}

// setConditions replaces the conditions of an object.
func setConditions(o *unstructured.Unstructured, conditions ...any) error {
	return errors.Wrap(unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions"), "cannot set conditions")
}
