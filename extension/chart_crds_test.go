// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// TestChartCRDs checks that the chart contains the generated CRDs, and that they and all objects of
// their kinds stay when the chart is uninstalled.
func TestChartCRDs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", charts.ExtensionCRDs, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, tc := range []struct {
		reason, value string
		keep          bool
	}{
		{reason: "By default Helm keeps the CRDs.", value: "crds.enabled=true", keep: true},
		{reason: "On request Helm deletes the CRDs.", value: "crds.keep=false"},
	} {
		want := map[string]apiextensionsv1.CustomResourceDefinition{}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			o := apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(b, &o); err != nil {
				t.Fatal(err)
			}
			if tc.keep {
				o.Annotations["helm.sh/resource-policy"] = "keep"
			}
			want[o.GetName()] = o
		}
		got := objects[apiextensionsv1.CustomResourceDefinition](t, render(t, "certificates.mode=Existing", tc.value), "CustomResourceDefinition")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s -files, +chart:\n%s", tc.reason, diff)
		}
	}
	if out := render(t, "certificates.mode=Existing", "crds.enabled=false"); strings.Contains(out, "kind: CustomResourceDefinition") {
		t.Error("the chart contains CRDs with crds.enabled=false")
	}
}
