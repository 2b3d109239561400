// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

func TestCheckAdmission(t *testing.T) {
	const (
		policy  = "missing  ValidatingAdmissionPolicy tailscale-gateway-internal-kinds, as in the chart"
		binding = "missing  ValidatingAdmissionPolicyBinding tailscale-gateway-internal-kinds, which denies everywhere"
	)
	cases := map[string]struct {
		reason string
		change func(*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) []runtime.Object
		want   []string
	}{
		"Applied": {
			reason: "Applied policies are found",
			change: func(p *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding) []runtime.Object {
				return []runtime.Object{p, b}
			},
		},
		"Absent": {
			reason: "Missing policies are listed",
			change: func(*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) []runtime.Object {
				return nil
			},
			want: []string{policy, binding},
		},
		"Warns": {
			reason: "A binding that only warns refuses nothing",
			change: func(p *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding) []runtime.Object {
				b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
				return []runtime.Object{p, b}
			},
			want: []string{binding},
		},
		"Older": {
			reason: "A policy that leaves a kind out is not the one of this version",
			change: func(p *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding) []runtime.Object {
				r := &p.Spec.MatchConstraints.ResourceRules[0]
				r.Resources = r.Resources[1:]
				return []runtime.Object{p, b}
			},
			want: []string{policy},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, b := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
			for kind, obj := range map[string]any{"ValidatingAdmissionPolicy": p, "ValidatingAdmissionPolicyBinding": b} {
				if err := kustomization.Get(kind, kustomization.PolicyInternalKinds, obj); err != nil {
					t.Fatal(err)
				}
			}
			out := &bytes.Buffer{}
			r := &report{out: out}
			if err := checkAdmission(t.Context(), fake.NewClientset(tc.change(p, b)...), kustomization.PolicyInternalKinds, r); err != nil {
				t.Fatal(err)
			}
			var missing []string
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "missing") {
					missing = append(missing, strings.TrimSpace(line))
				}
			}
			if diff := cmp.Diff(tc.want, missing); diff != "" {
				t.Errorf("%s: -want missing, +got missing:\n%s", tc.reason, diff)
			}
		})
	}
}
