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

// A TailscaleProxyGroupInput adds the resources of a TailscaleProxyGroup to any composite. The
// composite must have a namespace, or a claim.
type TailscaleProxyGroupInput struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Step `json:",inline"`

	// Spec is the spec of a TailscaleProxyGroup. Package input adds its schema.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec gatewayv1alpha1.TailscaleProxyGroupSpec `json:"spec"`
}
