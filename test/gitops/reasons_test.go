// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/golden"
)

// TestReasons records how the checks judge each type and each reason of our conditions. A new
// constant changes the golden file, so that somebody decides whether it passes by itself.
func TestReasons(t *testing.T) {
	types, reasons := constants(t, "Type"), constants(t, "Reason")
	if len(types) < 25 || len(reasons) < 100 {
		t.Fatalf("found %d types and %d reasons of conditions", len(types), len(reasons))
	}
	var out strings.Builder
	out.WriteString("# A False condition of each type, for a reason that nobody knows, of a composite and of a managed resource that are ready.\n")
	for _, typ := range types {
		fmt.Fprintf(&out, "%s: %s, %s\n", typ, judge(t, xr(), "True", typ, "Unheard"), judge(t, mr(), "True", typ, "Unheard"))
	}
	out.WriteString("# The condition Accepted of a composite that is not ready, False for each reason.\n")
	for _, reason := range reasons {
		fmt.Fprintf(&out, "%s: %s\n", reason, judge(t, xr(), "False", "Accepted", reason))
	}
	golden.Compare(t, filepath.Join("testdata", "reasons.txt"), []byte(out.String()), nil)
}

func xr() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind("TailscaleServices"))
	o.SetName("web")
	return o
}

func mr() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(tailnetv1alpha1.VIPServiceGroupVersionKind)
	o.SetName("web")
	return o
}

// judge returns the status of an object with a False condition.
func judge(t *testing.T, o *unstructured.Unstructured, ready, typ, reason string) string {
	t.Helper()
	err := setConditions(o,
		map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess"},
		map[string]any{"type": "Ready", "status": ready, "reason": map[string]string{"True": "Available", "False": "Creating"}[ready]},
		map[string]any{"type": typ, "status": "False", "reason": reason, "message": "Something"})
	if err != nil {
		t.Fatal(err)
	}
	return healthOf(t, o).Status
}

// constants returns the values of the constants of internal/meta, and of those of the functions'
// library, whose names have a prefix.
func constants(t *testing.T, prefix string) []string {
	t.Helper()
	found := map[string]bool{}
	for _, dir := range []string{"meta", "compose"} {
		paths, err := filepath.Glob(filepath.Join(root, "internal", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				v, ok := n.(*ast.ValueSpec)
				if !ok || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, prefix) {
					return true
				}
				s, ok := v.Type.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "Condition"+prefix {
					return true
				}
				if l, ok := v.Values[0].(*ast.BasicLit); ok {
					value, err := strconv.Unquote(l.Value)
					if err != nil {
						t.Fatal(err)
					}
					found[value] = true
				}
				return true
			})
		}
	}
	out := make([]string, 0, len(found))
	for v := range found {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}
