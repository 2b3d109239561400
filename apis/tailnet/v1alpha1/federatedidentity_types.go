// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// FederatedIdentityParameters are the desired state of a federated identity.
// +kubebuilder:validation:XValidation:rule="!self.scopes.exists(s, s == 'devices:core' || s == 'auth_keys') || (has(self.tags) && size(self.tags) > 0)",message="tags must be set for the scopes devices:core and auth_keys"
type FederatedIdentityParameters struct {
	// Description that Tailscale's admin console shows, after the provider's identifier of the
	// identity. Tailscale allows letters, digits, dashes and spaces.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9 -]*$`
	// +optional
	Description string `json:"description,omitempty"`

	// Issuer of the tokens, such as a cluster's OIDC issuer.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://[^\s]+$`
	Issuer string `json:"issuer"`

	// Subject of the tokens, such as system:serviceaccount:NAMESPACE:NAME. A * matches any
	// characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject"`

	// Audience of the tokens. Absent means that Tailscale chooses one.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Audience string `json:"audience,omitempty"`

	// CustomClaimRules maps additional claims to their required values. A * matches any
	// characters.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'sub' && k != 'iss' && k != 'aud')",message="must not contain sub, iss or aud; set subject, issuer and audience"
	// +optional
	CustomClaimRules map[string]string `json:"customClaimRules,omitempty"`

	// Scopes of the tokens that the identity obtains.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Scopes []OAuthScope `json:"scopes"`

	// Tags that the tokens may assign. The scopes devices:core and auth_keys need at least one.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`
}

// A FederatedIdentityObservation is what Tailscale reports of a federated identity.
type FederatedIdentityObservation struct {
	// ID is the client ID for the token exchange.
	// +optional
	ID string `json:"id,omitempty"`

	// +optional
	Description string `json:"description,omitempty"`

	// +optional
	Issuer string `json:"issuer,omitempty"`

	// +optional
	Subject string `json:"subject,omitempty"`

	// Audience is the required audience of tokens.
	// +optional
	Audience string `json:"audience,omitempty"`

	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// +optional
	Created *metav1.Time `json:"created,omitempty"`
}

// A FederatedIdentitySpec is the desired state of a FederatedIdentity.
type FederatedIdentitySpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider FederatedIdentityParameters `json:"forProvider"`
}

// A FederatedIdentityStatus is the observed state of a FederatedIdentity.
type FederatedIdentityStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider FederatedIdentityObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="CLIENT-ID",type="string",JSONPath=".status.atProvider.id"
// +kubebuilder:printcolumn:name="SUBJECT",type="string",JSONPath=".spec.forProvider.subject",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:path=federatedidentities,scope=Namespaced,categories={crossplane,managed,tailscale}

// A FederatedIdentity exchanges tokens of another issuer, such as those of a cluster's service
// accounts, for tokens of Tailscale's API. It has no secret.
type FederatedIdentity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FederatedIdentitySpec   `json:"spec"`
	Status FederatedIdentityStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// FederatedIdentityList is a list of FederatedIdentity.
type FederatedIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FederatedIdentity `json:"items"`
}

// FederatedIdentityKind is the kind of a FederatedIdentity.
const FederatedIdentityKind = "FederatedIdentity"

// FederatedIdentityGroupVersionKind is the GroupVersionKind of the kind.
var FederatedIdentityGroupVersionKind = SchemeGroupVersion.WithKind(FederatedIdentityKind)

func init() {
	register(&FederatedIdentity{}, &FederatedIdentityList{})
}
