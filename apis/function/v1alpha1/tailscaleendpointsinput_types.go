// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane

// A TailscaleEndpointsInput adds the resources of a TailscaleEndpoints to any composite. The
// composite must have a namespace, or a claim.
type TailscaleEndpointsInput struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Step `json:",inline"`

	// Labels by which a TailscaleServices, or a step with a TailscaleServicesInput, selects
	// these endpoints, in addition to the labels of the composite.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]tailnetv1alpha1.LabelValue `json:"labels,omitempty"`

	// Spec is the spec of a TailscaleEndpoints. Package input adds its schema.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec gatewayv1alpha1.TailscaleEndpointsSpec `json:"spec"`
}
