// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// An OAuthScope is a scope of Tailscale's API, such as devices:core or dns:read.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z_]+(:[a-z_]+)*$')",message="must be a scope such as devices:core or dns:read"
type OAuthScope string

// OAuthClientParameters are the desired state of an OAuth client.
// +kubebuilder:validation:XValidation:rule="!self.scopes.exists(s, s == 'devices:core' || s == 'auth_keys') || (has(self.tags) && size(self.tags) > 0)",message="tags must be set for the scopes devices:core and auth_keys"
type OAuthClientParameters struct {
	// Description that Tailscale's admin console shows, after the provider's identifier of the
	// client. Tailscale allows letters, digits, dashes and spaces.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9 -]*$`
	// +optional
	Description string `json:"description,omitempty"`

	// Scopes of the client.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Scopes []OAuthScope `json:"scopes"`

	// Tags that the client may assign. The scopes devices:core and auth_keys need at least one.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`
}

// An OAuthClientObservation is what Tailscale reports of an OAuth client, without
// its secret.
type OAuthClientObservation struct {
	// ID is the client ID.
	// +optional
	ID string `json:"id,omitempty"`

	// +optional
	Description string `json:"description,omitempty"`

	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// +optional
	Created *metav1.Time `json:"created,omitempty"`
}

// An OAuthClientSpec is the desired state of an OAuthClient.
type OAuthClientSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider OAuthClientParameters `json:"forProvider"`
}

// An OAuthClientStatus is the observed state of an OAuthClient.
type OAuthClientStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider OAuthClientObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="CLIENT-ID",type="string",JSONPath=".status.atProvider.id"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// An OAuthClient is a credential for Tailscale's API. Only the connection Secret contains the
// secret, with the keys that a provider config uses: client_id and client_secret. Tailscale
// shows a secret once, so the provider replaces a client whose secret is missing in the
// connection Secret with another one, which has another ID. This also applies to a client that
// is adopted by its ID: put its ID and secret into the connection Secret first, or omit
// spec.writeConnectionSecretToRef.
type OAuthClient struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OAuthClientSpec   `json:"spec"`
	Status OAuthClientStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// OAuthClientList is a list of OAuthClient.
type OAuthClientList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OAuthClient `json:"items"`
}

// OAuthClientKind is the kind of an OAuthClient.
const OAuthClientKind = "OAuthClient"

// OAuthClientGroupVersionKind is the GroupVersionKind of the kind.
var OAuthClientGroupVersionKind = SchemeGroupVersion.WithKind(OAuthClientKind)

func init() {
	register(&OAuthClient{}, &OAuthClientList{})
}
