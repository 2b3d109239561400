// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// TestTailscaleRevisionSchema checks that the API server refuses objects that stop Envoy Gateway:
// one policy without spec or targetRefs, in any namespace, fails all its work
// (envoyproxy/gateway internal/provider/kubernetes/controller.go,
// processExtensionServerPolicies).
func TestTailscaleRevisionSchema(t *testing.T) {
	const gateway = "{group: gateway.networking.k8s.io, kind: Gateway, name: gw}"
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"First":      {reason: "A revision is valid.", spec: "{revision: 0123456789abcdef, targetRefs: [" + gateway + "]}"},
		"Again":      {reason: "A further attempt is valid.", spec: "{revision: 0123456789abcdef, attempt: 2, targetRefs: [" + gateway + "]}"},
		"NoSpec":     {reason: "Without a spec it would stop Envoy Gateway.", spec: "null", want: "spec"},
		"NoTarget":   {reason: "Without targetRefs it would stop Envoy Gateway.", spec: "{revision: 0123456789abcdef}", want: "spec.targetRefs: Required value"},
		"Nobody":     {reason: "An empty list has no target.", spec: "{revision: 0123456789abcdef, targetRefs: []}", want: "spec.targetRefs"},
		"Route":      {reason: "A route has no revision.", spec: "{revision: 0123456789abcdef, targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]}", want: "targetRefs must name a Gateway"},
		"NoRevision": {reason: "The revision is required.", spec: "{targetRefs: [" + gateway + "]}", want: "spec.revision: Required value"},
		"Word":       {reason: "A revision is a digest.", spec: "{revision: latest, targetRefs: [" + gateway + "]}", want: "spec.revision"},
	}
	s := serve(t, ofExtension(t, "gateway.tailscale.com_tailscalerevisions.yaml"))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, s.create(t, tc.spec), tc.want)
		})
	}
}

// ofExtension returns a CRD of the extension's chart.
func ofExtension(t *testing.T, file string) *extv1.CustomResourceDefinition {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", charts.ExtensionCRDs, file))
	if err != nil {
		t.Fatal(err)
	}
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(b, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}
