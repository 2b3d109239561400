// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// checkAdmission checks that a policy of the manifest exists, is equal to that of the manifest, and is
// bound.
func checkAdmission(ctx context.Context, kube kubernetes.Interface, name string, manifest []byte, r *report) error {
	const fix = "Install or upgrade the chart tailscale-gateway with admission.enabled=true, or apply deploy/kustomization."
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		want := &admissionv1.ValidatingAdmissionPolicy{}
		if err := yaml.Unmarshal(doc, want); err != nil {
			return errors.Wrap(err, "cannot parse a ValidatingAdmissionPolicy")
		}
		if want.Kind != "ValidatingAdmissionPolicy" || want.GetName() != name {
			continue
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
		if err := r.add(bound, fmt.Sprintf("ValidatingAdmissionPolicyBinding %s, which denies everywhere", name), fix); err != nil {
			return err
		}
	}
	return nil
}

// said is what a policy says itself; the rest is the API server's defaults.
func said(p *admissionv1.ValidatingAdmissionPolicy) any {
	var matched [][]string
	if m := p.Spec.MatchConstraints; m != nil {
		for _, r := range m.ResourceRules {
			matched = append(matched, r.APIGroups, r.Resources)
		}
	}
	return []any{matched, p.Spec.MatchConditions, p.Spec.Variables, p.Spec.Validations}
}
