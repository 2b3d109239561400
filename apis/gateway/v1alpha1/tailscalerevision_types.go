// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TailscaleRevisionSpec says what a Gateway's configuration should be made of.
type TailscaleRevisionSpec struct {
	// TargetRefs names the Gateway, in the same namespace.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.group == 'gateway.networking.k8s.io' && r.kind == 'Gateway')",message="targetRefs must name a Gateway"
	// +listType=atomic
	TargetRefs []gwapiv1.LocalPolicyTargetReference `json:"targetRefs"`

	// Revision of the objects that the Gateway's routes rest on, as the extension
	// knows them: 16 hexadecimal digits, equal in each replica that knows the same.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	Revision string `json:"revision"`

	// Attempt counts how often Envoy Gateway was asked again for the same revision,
	// because a replica had answered from older objects, or had ended. It starts at
	// 0 with each revision.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
}

// A TailscaleRevision has Envoy Gateway translate a Gateway again. Envoy Gateway
// asks the extension only when objects that it knows itself change, and this is one
// of them. The extension writes one for each Gateway that a route to a
// TailscaleServices or TailscaleEndpoints attaches to, under the Gateway's name, and
// deletes it with the last such route. Nobody else should write any.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="GATEWAY",type=string,JSONPath=`.spec.targetRefs[0].name`
// +kubebuilder:printcolumn:name="REVISION",type=string,JSONPath=`.spec.revision`
// +kubebuilder:printcolumn:name="ATTEMPT",type=integer,JSONPath=`.spec.attempt`
// +kubebuilder:printcolumn:name="ACCEPTED",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=='Accepted')].status`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type TailscaleRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TailscaleRevisionSpec `json:"spec"`

	// Status is Envoy Gateway's: whether it knows the Gateway.
	// +optional
	Status gwapiv1.PolicyStatus `json:"status,omitempty"`
}

// TailscaleRevisionList is a list of TailscaleRevisions.
// +kubebuilder:object:root=true
type TailscaleRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleRevision `json:"items"`
}
