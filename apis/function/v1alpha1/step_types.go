// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// A Step is what all inputs have in common.
type Step struct {
	// Name says what this step makes from what other steps of the same function
	// make: it is called <composite>-<name>, and its conditions are of the types
	// <name>/<type>. Absent means the composite's own name, and plain types. One
	// step of a function in a pipeline may have no name.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Name string `json:"name,omitempty"`

	// Patches copy fields of the composite into this input, in order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Patches []Patch `json:"patches,omitempty"`

	// StatusFieldPath is the field of the composite that gets the status of what
	// this step makes, such as status.proxies. The schema of the composite must
	// have it, or preserve unknown fields there. Absent means that the status is
	// not written.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^status(\.[a-zA-Z][a-zA-Z0-9]*)+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^status[.](conditions|crossplane|claimConditionTypes|connectionDetails)([.]|$)')",message="is a field that Crossplane writes; name another"
	// +optional
	StatusFieldPath string `json:"statusFieldPath,omitempty"`
}

// A Patch copies a field of the composite into the input. A field that the
// composite lacks is not copied: what the input has, or its default, holds.
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

	// Format puts the value, as text, in the place of %s, such as %s-backend.
	// Absent means that the value is copied as it is.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^%]*%s[^%]*$`
	// +optional
	Format string `json:"format,omitempty"`
}
