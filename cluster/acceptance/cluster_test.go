// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestQuickstartIsRenamed(t *testing.T) {
	objects, err := quickstart("../../examples/quickstart", names{
		prefix: "tsgw-acc-abc", tag: "tag:test", apiURL: "http://api.example.com", controlURL: "http://control.example.com", tailnet: "example.com",
	})
	if err != nil {
		t.Fatalf("cannot read the quickstart: %v", err)
	}
	var got []string
	for _, u := range objects {
		got = append(got, clusterName(u))
		parsed, err := objectOf(clusterName(u))
		if err != nil || clusterName(parsed) != clusterName(u) {
			t.Errorf("the ledger's name does not lead back to %s: %v", clusterName(u), err)
		}
		if b, err := u.MarshalJSON(); err != nil || strings.Contains(string(b), `"quickstart"`) || strings.Contains(string(b), "tag:k8s") {
			t.Errorf("%s still names the example: %s %v", clusterName(u), b, err)
		}
	}
	want := []string{
		"v1|Namespace||tsgw-acc-abc",
		"gateway.tailscale.com/v1alpha1|TailscaleTailnet||tsgw-acc-abc",
		"apps/v1|Deployment|tsgw-acc-abc|web",
		"v1|Service|tsgw-acc-abc|web",
		"gateway.tailscale.com/v1alpha1|TailscaleEndpoints|tsgw-acc-abc|proxies",
		"gateway.tailscale.com/v1alpha1|TailscaleServices|tsgw-acc-abc|tsgw-acc-abc-quick",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the namespace first, and all below it: -want, +got:\n%s", diff)
	}
	backends, _, _ := unstructured.NestedSlice(objects[5].Object, "spec", "backends")
	if diff := cmp.Diff([]any{map[string]any{"name": "web", "port": int64(80)}}, backends); diff != "" {
		t.Errorf("the backend is the example's Service: -want, +got:\n%s", diff)
	}
	spec, _, _ := unstructured.NestedMap(objects[1].Object, "spec")
	wantSpec := map[string]any{
		"oauthSecretName": "tailscale-oauth", "oauthSecretNamespace": "tsgw-acc-abc", "tags": []any{"tag:test"},
		"apiURL": "http://api.example.com", "controlURL": "http://control.example.com", "tailnet": "example.com",
		"allowedNamespaces": map[string]any{"domains": []any{"shop.example.com"}},
	}
	if diff := cmp.Diff(wantSpec, spec); diff != "" {
		t.Errorf("the tailnet is the run's: -want, +got:\n%s", diff)
	}
}
