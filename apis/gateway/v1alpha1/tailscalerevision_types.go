// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TailscaleRevisionSpec identifies the objects that a Gateway's configuration depends on.
type TailscaleRevisionSpec struct {
	// TargetRefs references the Gateway, in the same namespace.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.group == 'gateway.networking.k8s.io' && r.kind == 'Gateway')",message="targetRefs must name a Gateway"
	// +listType=atomic
	TargetRefs []gwapiv1.LocalPolicyTargetReference `json:"targetRefs"`

	// Revision is a hash of the objects that the Gateway's routes depend on, as the extension
	// knows them: 16 hexadecimal digits, equal in all replicas with the same objects.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	Revision string `json:"revision"`

	// Attempt counts the repeated requests to Envoy Gateway for the same revision, which are
	// needed when a replica answered from older objects, or terminated. It starts at 0 with
	// each revision.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
}

// A TailscaleRevision triggers a new translation of a Gateway by Envoy Gateway. Envoy Gateway
// calls the extension only when objects that it watches change, and this is one of them. The
// extension creates one, with the Gateway's name, for each Gateway to which a route with a
// TailscaleServices or TailscaleEndpoints as backend is attached, and deletes it with the last
// such route. Do not create one yourself.
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

	// Status is set by Envoy Gateway and reports whether it accepts the Gateway.
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

// TailscaleRevisionKind is the kind of a TailscaleRevision.
const TailscaleRevisionKind = "TailscaleRevision"

func init() {
	register(&TailscaleRevision{}, &TailscaleRevisionList{})
}
