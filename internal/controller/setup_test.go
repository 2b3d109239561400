// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// TestManagedKinds checks that every managed kind of the API has a controller, and that the
// controllers of provider configs know which kinds need credentials to clean up.
func TestManagedKinds(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	var want []string
	for kind, typ := range s.KnownTypes(v1alpha1.SchemeGroupVersion) {
		o, err := s.New(v1alpha1.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Fatalf("New(%s): %v", typ, err)
		}
		if _, ok := o.(resource.ModernManaged); ok {
			want = append(want, kind)
		}
	}
	var got, leaveNothing []string
	for _, k := range managedKinds(setup.Options{}) {
		u := k.User()
		got = append(got, u.GroupVersionKind.Kind)
		if !u.CleansUp {
			leaveNothing = append(leaveNothing, u.GroupVersionKind.Kind)
		}
		gvks, _, err := s.ObjectKinds(u.List())
		if err != nil || strings.TrimSuffix(gvks[0].Kind, "List") != u.GroupVersionKind.Kind {
			t.Errorf("List of kind %s: got %v, %v", u.GroupVersionKind.Kind, gvks, err)
		}
		gvks, _, err = s.ObjectKinds(u.Object)
		if err != nil || gvks[0] != u.GroupVersionKind {
			t.Errorf("Object of kind %s: got %v, %v", u.GroupVersionKind.Kind, gvks, err)
		}
		if k.Needs()[0] != u.GroupVersionKind {
			t.Errorf("Needs of kind %s: got %v", u.GroupVersionKind.Kind, k.Needs())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("managedKinds(...): -want, +got:\n%s", diff)
	}
	slices.Sort(leaveNothing)
	if diff := cmp.Diff([]string{"Contacts", "Discovery", "Tailnet"}, leaveNothing); diff != "" {
		t.Errorf("kinds that leave nothing: -want, +got:\n%s", diff)
	}
}

// TestOneWayToTailnet checks that no controller makes a client of a tailnet in another way than
// clients.Connector, which compares the tailnet with the recorded one: a kind that did would act in
// whichever tailnet its credential leads to.
func TestOneWayToTailnet(t *testing.T) {
	// Functions that return a client or a connection, and the packages that may call them.
	ways := map[string][]string{
		"NewClient":    nil,
		"NewPool":      nil,
		"NewConnector": {"fence", "kinds", "machineset", "multicluster", "publish"}, // Fence withdraws approvals, machineset and publish read grants alone, and multicluster only reads.
		"Open":         nil,
		"Client":       {"clients"}, // Of a pool.
	}
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) < 100 {
		t.Fatalf("found %d files, %v", len(files), err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			may, way := ways[sel.Sel.Name]
			if !way {
				return true
			}
			found[sel.Sel.Name] = true
			if pkg := filepath.Base(filepath.Dir(name)); !slices.Contains(may, pkg) {
				t.Errorf("%s calls %s: get the client from the Connect of the kind", name, sel.Sel.Name)
			}
			return true
		})
	}
	if !found["NewConnector"] || !found["Client"] {
		t.Errorf("the ways to a client have other names: found %v", found)
	}
}
