// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A WebhookSubscription is an event, or a category of events, of a tailnet.
// +kubebuilder:validation:Enum=categoryTailnetManagement;nodeCreated;nodeNeedsApproval;nodeApproved;nodeKeyExpiringInOneDay;nodeKeyExpired;nodeDeleted;nodeSigned;nodeNeedsSignature;policyUpdate;userCreated;userNeedsApproval;userSuspended;userRestored;userDeleted;userApproved;userRoleUpdated;categoryDeviceMisconfigurations;subnetIPForwardingNotEnabled;exitNodeIPForwardingNotEnabled
type WebhookSubscription string

// WebhookParameters are the desired state of a webhook.
// +kubebuilder:validation:XValidation:rule="has(self.providerType) == has(oldSelf.providerType) && (!has(self.providerType) || self.providerType == oldSelf.providerType)",message="providerType is immutable; create another Webhook instead"
type WebhookParameters struct {
	// EndpointURL is the URL that receives the events. It identifies the webhook until its ID
	// is recorded.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https://[^/\\\\s]+(/\\\\S*)?$')",message="must be an https URL"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Webhook instead"
	EndpointURL string `json:"endpointURL"`

	// ProviderType is the format of the events. Absent means Tailscale's JSON.
	// +kubebuilder:validation:Enum=slack;mattermost;googlechat;discord
	// +optional
	ProviderType string `json:"providerType,omitempty"`

	// Subscriptions are the events to send.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Subscriptions []WebhookSubscription `json:"subscriptions"`

	// AdoptionPolicy decides about an existing webhook to the same URL that this object did not
	// create. Refuse reports an error, Adopt takes it over.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// A WebhookObservation is what Tailscale reports of a webhook.
type WebhookObservation struct {
	// ID of the webhook.
	// +optional
	ID string `json:"id,omitempty"`

	// +optional
	EndpointURL string `json:"endpointURL,omitempty"`

	// +optional
	ProviderType string `json:"providerType,omitempty"`

	// +listType=atomic
	// +optional
	Subscriptions []string `json:"subscriptions,omitempty"`

	// Creator is the login name of the user who created the webhook.
	// +optional
	Creator string `json:"creator,omitempty"`

	// +optional
	Created *metav1.Time `json:"created,omitempty"`
}

// A WebhookSpec is the desired state of a Webhook.
type WebhookSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider WebhookParameters `json:"forProvider"`
}

// A WebhookStatus is the observed state of a Webhook.
type WebhookStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider WebhookObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="ENDPOINT",type="string",JSONPath=".spec.forProvider.endpointURL"
// +kubebuilder:printcolumn:name="ID",type="string",JSONPath=".status.atProvider.id",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// A Webhook sends events of a tailnet to a URL. Only the connection Secret contains the secret
// that signs the events, under secret. The provider rotates the secret if the connection Secret
// lacks it.
type Webhook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebhookSpec   `json:"spec"`
	Status WebhookStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// WebhookList is a list of Webhook.
type WebhookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Webhook `json:"items"`
}

// WebhookKind is the kind of a Webhook.
const WebhookKind = "Webhook"

// WebhookGroupVersionKind is the GroupVersionKind of the kind.
var WebhookGroupVersionKind = SchemeGroupVersion.WithKind(WebhookKind)

func init() {
	register(&Webhook{}, &WebhookList{})
}
