// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane

// A TailscaleServicesInput adds the resources of a TailscaleServices to any composite. The
// composite must have a namespace, or a claim.
type TailscaleServicesInput struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Step `json:",inline"`

	// Spec is the spec of a TailscaleServices. Package input adds its schema.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec gatewayv1alpha1.TailscaleServicesSpec `json:"spec"`
}
