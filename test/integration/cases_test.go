// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// cases are the cases that the files of the kinds add.
var cases []anyCase

// addCase adds the case of a kind to all tests that run every kind.
func addCase[T resource.ModernManaged](k kindCase[T]) { cases = append(cases, k.erase()) }

// kindCases returns the cases of all kinds, sorted by kind.
func kindCases() []anyCase {
	return slices.SortedFunc(slices.Values(cases), func(a, b anyCase) int { return strings.Compare(a.Kind, b.Kind) })
}

// TestEveryKindHasCase compares the cases with the managed resources of the API.
func TestEveryKindHasCase(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for gvk := range s.AllKnownTypes() {
		if o, err := s.New(gvk); err == nil && gvk.Group == v1alpha1.Group {
			if _, ok := o.(resource.Managed); ok {
				want = append(want, gvk.Kind)
			}
		}
	}
	for _, k := range kindCases() {
		got = append(got, k.Kind)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds with a case: -want, +got:\n%s", diff)
	}
}
