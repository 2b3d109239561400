// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	gateway "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// TestTailnet checks that the request of the chart is what the provider reads, with the credential of
// each way to name one.
func TestTailnet(t *testing.T) {
	const id = "ConfigMap upbound-system/" + meta.FirstTailnetConfigMap
	cases := map[string]struct {
		reason string
		values []string
		want   gateway.TailscaleTailnetSpec
	}{
		"Secret": {
			reason: "An existing Secret is in the namespace of the release.",
			values: []string{"tailnet.oauthSecretName=oauth", "tailnet.spec.tags={tag:k8s}"},
			want:   gateway.TailscaleTailnetSpec{OAuthSecretName: "oauth", OAuthSecretNamespace: namespace, Tags: []gateway.Tag{"tag:k8s"}},
		},
		"OAuth": {
			reason: "So is the chart's.",
			values: []string{"tailnet.oauth.clientID=abc", "tailnet.oauth.clientSecret=notasecret"},
			want:   gateway.TailscaleTailnetSpec{OAuthSecretName: "tailscale-gateway-tailnet-example", OAuthSecretNamespace: namespace},
		},
		"SecretElsewhere": {
			reason: "A Secret of another namespace is in the spec.",
			values: []string{"tailnet.spec.oauthSecretName=oauth", "tailnet.spec.oauthSecretNamespace=platform"},
			want:   gateway.TailscaleTailnetSpec{OAuthSecretName: "oauth", OAuthSecretNamespace: "platform"},
		},
		"NamespaceElsewhere": {
			reason: "The spec says where the Secret is.",
			values: []string{"tailnet.oauthSecretName=oauth", "tailnet.spec.oauthSecretNamespace=platform"},
			want:   gateway.TailscaleTailnetSpec{OAuthSecretName: "oauth", OAuthSecretNamespace: "platform"},
		},
		"Null": {
			reason: "A value may be removed.",
			values: []string{"tailnet.oauthSecretName=oauth", "tailnet.oauth=null", "tailnet.spec=null"},
			want:   gateway.TailscaleTailnetSpec{OAuthSecretName: "oauth", OAuthSecretNamespace: namespace},
		},
		"WorkloadIdentity": {
			reason: "A workload identity needs no Secret.",
			values: []string{"tailnet.spec.workloadIdentity.clientID=abc", "tailnet.spec.workloadIdentity.audience=api", "tailnet.spec.workloadIdentity.namespace=platform"},
			want:   gateway.TailscaleTailnetSpec{WorkloadIdentity: &gateway.WorkloadIdentity{ClientID: "abc", Audience: "api", Namespace: "platform"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			doc, ok := objects(t, render(t, append(tc.values, "tailnet.name=example", "crossplane.namespace=upbound-system")...))[id]
			if !ok {
				t.Fatalf("%s\nthe chart has no %s", tc.reason, id)
			}
			o := parse(t, doc)
			if diff := cmp.Diff("example", field(t, o, "data", meta.FirstTailnetName)); diff != "" {
				t.Errorf("%s\n-want name, +got:\n%s", tc.reason, diff)
			}
			got := gateway.TailscaleTailnetSpec{}
			if err := yaml.UnmarshalStrict([]byte(field(t, o, "data", meta.FirstTailnetSpec)), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want spec, +got:\n%s", tc.reason, diff)
			}
			// The provider writes this key, and an upgrade would revert it if the chart did, too.
			if v, ok := o.Object["data"].(map[string]any)[meta.FirstTailnetCreated]; ok {
				t.Errorf("%s\nthe chart writes the provider's record: %q", tc.reason, v)
			}
		})
	}
}

// TestTailnetAbsent checks that the chart renders with the values of a release before this one, which lack
// the key: helm upgrade --reuse-values passes them.
func TestTailnetAbsent(t *testing.T) {
	if diff := cmp.Diff(render(t), render(t, "tailnet=null")); diff != "" {
		t.Errorf("-with the default, +without the key:\n%s", diff)
	}
}
