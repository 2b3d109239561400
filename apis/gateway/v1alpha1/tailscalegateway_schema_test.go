// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTailscaleGatewaySchema(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Least": {
			reason: "A name is enough.",
			spec:   "{gatewayRef: {name: eg}}",
		},
		"All": {
			reason: "A Gateway of another namespace, whose name has dots.",
			spec:   "{gatewayRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: infra, name: eg.example}}",
		},
		"NoName": {
			reason: "Which Gateway must be said.",
			spec:   "{gatewayRef: {namespace: infra}}",
			want:   "spec.gatewayRef.name: Required value",
		},
		"NoRef": {
			reason: "Which Gateway must be said.",
			spec:   "{}",
			want:   "spec.gatewayRef: Required value",
		},
		"OtherKind": {
			reason: "Only Gateways have what we look for.",
			spec:   "{gatewayRef: {kind: Service, name: eg}}",
			want:   "spec.gatewayRef.kind: Unsupported value",
		},
		"OtherGroup": {
			reason: "Only Gateways have what we look for.",
			spec:   "{gatewayRef: {group: networking.istio.io, name: eg}}",
			want:   "spec.gatewayRef.group: Unsupported value",
		},
		"Namespace": {
			reason: "A namespace is a DNS label.",
			spec:   "{gatewayRef: {namespace: a.b, name: eg}}",
			want:   "spec.gatewayRef.namespace",
		},
	}
	c := load(t, "tailscalegateways")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.create(t, tc.spec), tc.want)
		})
	}
}

func TestTailscaleGatewayDefaults(t *testing.T) {
	s := load(t, "tailscalegateways")
	o := parse(t, "spec: {gatewayRef: {name: eg}}")
	if errs := s.validate(t, o, nil); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want := map[string]any{"gatewayRef": map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "eg"}}
	if diff := cmp.Diff(want, o["spec"]); diff != "" {
		t.Errorf("defaults: -want, +got:\n%s", diff)
	}
}
