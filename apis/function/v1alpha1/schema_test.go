// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

// TestDefinitions checks that an API server accepts each definition in the functions' packages,
// including the cost of its rules: a package with a refused definition cannot be installed.
func TestDefinitions(t *testing.T) {
	files, err := input.Files()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 5 {
		t.Errorf("want a definition for each of 5 kinds, got %d", len(files))
	}
	for f, b := range files {
		t.Run(f, func(t *testing.T) {
			crd := &extv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(b, crd); err != nil {
				t.Fatal(err)
			}
			crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
			extv1.SetDefaults_CustomResourceDefinition(crd)
			extv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			c := &apiextensions.CustomResourceDefinition{}
			if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, c, nil); err != nil {
				t.Fatal(err)
			}
			for _, e := range extvalidation.ValidateCustomResourceDefinition(t.Context(), c) {
				t.Errorf("an API server would not take the definition: %v", e)
			}
		})
	}
}
