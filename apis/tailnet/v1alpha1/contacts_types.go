// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A ContactEmail is an email address to which Tailscale sends messages.
// +kubebuilder:validation:MaxLength=254
// +kubebuilder:validation:XValidation:rule="self.matches('^[^@[:space:]]+@[^@[:space:]]+$')",message="must be an email address"
type ContactEmail string

// ContactsParameters are the desired contacts of a tailnet. Absent contacts are not changed.
// +kubebuilder:validation:XValidation:rule="has(self.account) || has(self.support) || has(self.security)",message="at least one of account, support and security must be set"
type ContactsParameters struct {
	// Account receives messages about the account and billing.
	// +optional
	Account *ContactEmail `json:"account,omitempty"`

	// Support receives messages about support requests.
	// +optional
	Support *ContactEmail `json:"support,omitempty"`

	// Security receives messages about security issues.
	// +optional
	Security *ContactEmail `json:"security,omitempty"`
}

// A ContactObservation is a contact as Tailscale reports it.
type ContactObservation struct {
	Email string `json:"email"`

	// FallbackEmail is used until the email is verified.
	// +optional
	FallbackEmail string `json:"fallbackEmail,omitempty"`

	// NeedsVerification reports whether the recipient must still follow the link in the email
	// that Tailscale sent.
	// +optional
	NeedsVerification bool `json:"needsVerification,omitempty"`
}

// A ContactsObservation is what Tailscale reports of a tailnet's contacts.
type ContactsObservation struct {
	// Tailnet is the tailnet's DNS name, if the credential may list its devices.
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// +optional
	Account *ContactObservation `json:"account,omitempty"`

	// +optional
	Support *ContactObservation `json:"support,omitempty"`

	// +optional
	Security *ContactObservation `json:"security,omitempty"`
}

// A ContactsSpec is the desired state of Contacts.
type ContactsSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider ContactsParameters `json:"forProvider"`
}

// A ContactsStatus is the observed state of Contacts.
type ContactsStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider ContactsObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="ACCOUNT",type="string",JSONPath=".status.atProvider.account.email"
// +kubebuilder:printcolumn:name="SUPPORT",type="string",JSONPath=".status.atProvider.support.email",priority=1
// +kubebuilder:printcolumn:name="SECURITY",type="string",JSONPath=".status.atProvider.security.email",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:path=contacts,scope=Namespaced,categories={crossplane,managed,tailscale}

// Contacts are the recipients of Tailscale's messages about a tailnet. If two objects set the
// same contact, the older one takes precedence. Deleting the object does not change the contacts.
type Contacts struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ContactsSpec   `json:"spec"`
	Status ContactsStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ContactsList is a list of Contacts.
type ContactsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Contacts `json:"items"`
}

// ContactsKind is the kind of a Contacts.
const ContactsKind = "Contacts"

// ContactsGroupVersionKind is the GroupVersionKind of the kind.
var ContactsGroupVersionKind = SchemeGroupVersion.WithKind(ContactsKind)

func init() {
	register(&Contacts{}, &ContactsList{})
}
