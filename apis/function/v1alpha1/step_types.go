// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// A Step holds the fields that all inputs share.
type Step struct {
	// Name distinguishes the resources of this step from those of other steps of the same
	// function: they are called <composite>-<name>, and the step's condition types are
	// <name>/<type>. Absent means the composite's name, and plain types. At most one step of a
	// function in a pipeline may omit the name.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Name string `json:"name,omitempty"`

	// Patches copy fields of the composite into this input, in order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Patches []Patch `json:"patches,omitempty"`

	// StatusFieldPath is the field of the composite that receives the status of this step's
	// resource, such as status.proxies. The schema of the composite must have it, or preserve
	// unknown fields there. Absent means that the status is not written.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^status(\.[a-zA-Z][a-zA-Z0-9]*)+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^status[.](conditions|crossplane|claimConditionTypes|connectionDetails)([.]|$)')",message="is a field that Crossplane writes; use another field"
	// +optional
	StatusFieldPath string `json:"statusFieldPath,omitempty"`
}

// A Patch copies a field of the composite into the input. If the composite lacks the field, the
// input keeps its value or default.
type Patch struct {
	// FromFieldPath is the field of the composite, such as spec.replicas or
	// metadata.name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FromFieldPath string `json:"fromFieldPath"`

	// ToFieldPath is the field of the input, below spec or labels, such as
	// spec.proxy.replicas or spec.backends[0].name.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(spec|labels)[.\[]`
	ToFieldPath string `json:"toFieldPath"`

	// Format is a template for the value, such as %s-backend, where %s is replaced with the
	// value as text. Absent means that the value is copied unchanged.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^%]*%s[^%]*$`
	// +optional
	Format string `json:"format,omitempty"`
}
