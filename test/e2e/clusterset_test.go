// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && clusters

package e2e

import (
	"strings"
	"testing"
)

// strangersTailnet is the same tailnet for a cluster with another ID and without a set.
const strangersTailnet = `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleTailnet
metadata:
  name: stranger
spec:
  oauthSecretName: tailscale-oauth
  oauthSecretNamespace: quickstart
  clusterID: stranger
  tags:
  - tag:k8s
`

// sharesBySet shares a service between the two clusters of a set, without a field of its manifest, and
// checks that a cluster outside of the set is refused.
func sharesBySet(t *testing.T) {
	shared := readFile(t, "examples/shared.yaml")
	if !strings.Contains(shared, "  sharing: Shared\n") {
		t.Fatal("examples/shared.yaml does not set sharing")
	}
	manifest := strings.NewReplacer("  sharing: Shared\n", "", "name: shared\n", "name: set\n", "app: shared\n", "app: set\n").Replace(shared)
	joinSet(t)
	apply(t, manifest)
	inSecond(t, manifest, "apply", "--server-side", "-f", "-")
	const path = "{.status.clusterSet}/{.status.clusterCount}"
	for cluster, status := range map[string]func() string{
		"one": func() string { return jsonpath(t, "tailscaleservices", "set", path) },
		second: func() string {
			return inSecond(t, "", "get", "tailscaleservices", "set", "-n", namespace, "-o=jsonpath="+path)
		},
	} {
		eventually(t, patience, "members of the set, as cluster "+cluster+" sees them", func() string {
			if got := status(); got != "lab/2" {
				return "status.clusterSet and clusterCount are " + got
			}
			return ""
		})
	}

	inSecond(t, "", "create", "namespace", "stranger")
	joinSecond(t, strangersTailnet)
	inSecond(t, strings.NewReplacer("namespace: quickstart\n", "namespace: stranger\n", "tailnet: quickstart\n", "tailnet: stranger\n").Replace(manifest), "apply", "--server-side", "-f", "-")
	eventually(t, patience, "the refusal of a cluster outside of the set", func() string {
		got := inSecond(t, "", "get", "tailscaleservices", "set", "-n", "stranger", `-o=jsonpath={.status.conditions[?(@.type=="VIPServiceReady")]}`)
		if !strings.Contains(got, "SharedByOthers") || !strings.Contains(got, `set clusterSet to \"lab\"`) {
			return "VIPServiceReady is " + got
		}
		return ""
	})
	for cluster, got := range map[string]string{
		"one":  jsonpath(t, "tailscaleservices", "set", path),
		second: inSecond(t, "", "get", "tailscaleservices", "set", "-n", namespace, "-o=jsonpath="+path),
	} {
		if got != "lab/2" {
			t.Errorf("cluster %s after the stranger: want lab/2, got %s", cluster, got)
		}
	}
}

// joinSet makes both clusters members of a set.
func joinSet(t *testing.T) {
	t.Helper()
	const inSet = `--patch={"spec":{"clusterSet":"lab"}}`
	kubectl(t, "patch", "tailscaletailnet", "quickstart", "--type=merge", inSet)
	inSecond(t, "", "patch", "tailscaletailnet", "quickstart", "--type=merge", inSet)
}
