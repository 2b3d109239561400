// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	authv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// TestGatewayExtension holds the rights of a Gateway's own extension against those that the
// chart gives the installed one: they differ by what it does not do.
func TestGatewayExtension(t *testing.T) {
	var want []authv1.ResourceAttributes
	for _, file := range [][]byte{charts.ExtensionRules, charts.Placeholders, charts.Failover, charts.Gateways} {
		var rules []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict(file, &rules); err != nil {
			t.Fatal(err)
		}
		want = append(want, single(rules)...)
	}
	// Before it writes a report it looks whether the installed one does.
	want = append(want, authv1.ResourceAttributes{Verb: "get", Group: "tailnet.gateway.tailscale.com", Resource: "healthreports"})
	got, err := permissions("tailscale-gateway:gateway-extension")
	if err != nil {
		t.Fatal(err)
	}
	sorted := func(attributes []authv1.ResourceAttributes) []authv1.ResourceAttributes {
		slices.SortFunc(attributes, func(a, b authv1.ResourceAttributes) int {
			return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb))
		})
		return slices.Compact(attributes)
	}
	if diff := gocmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("-the extension's chart, +the chart tailscale-gateway:\n%s", diff)
	}
}
