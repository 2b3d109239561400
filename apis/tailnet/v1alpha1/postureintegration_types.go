// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// PostureIntegrationParameters are the desired state of a posture integration.
type PostureIntegrationParameters struct {
	// Provider of the device attributes.
	// +kubebuilder:validation:Enum="1password";falcon;fleet;huntress;intune;iru;jamfpro;kandji;kolide;sentinelone
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another PostureIntegration instead"
	Provider string `json:"provider"`

	// CloudID is the provider's cloud, region or URL, if it has several.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	CloudID string `json:"cloudID,omitempty"`

	// ClientID of the provider's API, if it needs one.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ClientID string `json:"clientID,omitempty"`

	// TenantID of the provider, for intune.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	TenantID string `json:"tenantID,omitempty"`

	// ClientSecretSecretRef references a key of a Secret in this namespace that holds the
	// secret of the provider's API.
	ClientSecretSecretRef xpv2.LocalSecretKeySelector `json:"clientSecretSecretRef"`

	// AdoptionPolicy decides about an existing integration with the provider that this object
	// did not create, because Tailscale supports one for each provider. Refuse reports an
	// error, Adopt takes it over.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// A PostureIntegrationObservation is what Tailscale reports of a posture integration.
type PostureIntegrationObservation struct {
	// ID of the integration.
	// +optional
	ID string `json:"id,omitempty"`

	// +optional
	Provider string `json:"provider,omitempty"`

	// Error of the last synchronization: the first line of the provider's message.
	// +optional
	Error string `json:"error,omitempty"`

	// MatchedCount is the number of the tailnet's devices that the provider knows.
	// +optional
	MatchedCount *int64 `json:"matchedCount,omitempty"`

	// SecretHash is a salted, slow hash of the last sent secret, because Tailscale does not
	// return it.
	// +optional
	SecretHash string `json:"secretHash,omitempty"`
}

// A PostureIntegrationSpec is the desired state of a PostureIntegration.
type PostureIntegrationSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider PostureIntegrationParameters `json:"forProvider"`
}

// A PostureIntegrationStatus is the observed state of a PostureIntegration.
type PostureIntegrationStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider PostureIntegrationObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="PROVIDER",type="string",JSONPath=".spec.forProvider.provider"
// +kubebuilder:printcolumn:name="ID",type="string",JSONPath=".status.atProvider.id",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// A PostureIntegration connects a device management system to a tailnet, so that Tailscale
// receives attributes of devices.
type PostureIntegration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PostureIntegrationSpec   `json:"spec"`
	Status PostureIntegrationStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// PostureIntegrationList is a list of PostureIntegration.
type PostureIntegrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PostureIntegration `json:"items"`
}

// PostureIntegrationKind is the kind of a PostureIntegration.
const PostureIntegrationKind = "PostureIntegration"

// PostureIntegrationGroupVersionKind is the GroupVersionKind of the kind.
var PostureIntegrationGroupVersionKind = SchemeGroupVersion.WithKind(PostureIntegrationKind)

func init() {
	register(&PostureIntegration{}, &PostureIntegrationList{})
}
