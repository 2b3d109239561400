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

// A TailscaleGatewayInput adds the resources of a TailscaleGateway to any composite, except
// those for each route, because the extension reads only TailscaleGateways. The composite must
// have a namespace, or a claim.
type TailscaleGatewayInput struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Step `json:",inline"`

	// Spec is the spec of a TailscaleGateway. Package input adds its schema.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec gatewayv1alpha1.TailscaleGatewaySpec `json:"spec"`
}
