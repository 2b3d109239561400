// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

// checkAdmission checks that a policy of the chart exists, is equal to that of the chart, and is
// bound.
func checkAdmission(ctx context.Context, kube kubernetes.Interface, name string, r *report) error {
	const fix = "Install or upgrade the chart tailscale-gateway with admission.enabled=true, or apply package/kustomization."
	want := &admissionv1.ValidatingAdmissionPolicy{}
	if err := kustomization.Get("ValidatingAdmissionPolicy", name, want); err != nil {
		return err
	}
	p, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !kerrors.IsNotFound(err) {
		return errors.Wrapf(err, "cannot look up ValidatingAdmissionPolicy %q", name)
	}
	same := err == nil && equality.Semantic.DeepEqual(said(p), said(want))
	if err := r.add(same, fmt.Sprintf("ValidatingAdmissionPolicy %s, as in the chart", name), fix); err != nil {
		return err
	}
	b, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !kerrors.IsNotFound(err) {
		return errors.Wrapf(err, "cannot look up ValidatingAdmissionPolicyBinding %q", name)
	}
	bound := err == nil && b.Spec.PolicyName == name && slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) && b.Spec.MatchResources == nil
	return r.add(bound, fmt.Sprintf("ValidatingAdmissionPolicyBinding %s, which denies everywhere", name), fix)
}

// said returns the fields of a policy that the chart sets. The others have defaults of the API server.
func said(p *admissionv1.ValidatingAdmissionPolicy) any {
	var matched [][]string
	if m := p.Spec.MatchConstraints; m != nil {
		for _, r := range m.ResourceRules {
			matched = append(matched, r.APIGroups, r.Resources)
		}
	}
	return []any{matched, p.Spec.MatchConditions, p.Spec.Variables, p.Spec.Validations}
}
