// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// AuthKeyParameters are the desired state of an auth key.
// +kubebuilder:validation:XValidation:rule="!has(self.rotateBefore) || !has(self.expiry) || duration(self.rotateBefore) < duration(self.expiry)",message="rotateBefore must be shorter than expiry"
type AuthKeyParameters struct {
	// Description that Tailscale's admin console shows, after the provider's identifier of the
	// key. Tailscale allows letters, digits, dashes and spaces.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9 -]*$`
	// +optional
	Description string `json:"description,omitempty"`

	// Tags of the nodes that log in with the key, in addition to those of the provider config.
	// An OAuth client must own them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Expiry is how long the key may be used, from 1m to 2160h (90 days), which is
	// also Tailscale's default.
	// +kubebuilder:default="2160h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('2160h')",message="must be from 1m to 2160h (90 days)"
	// +optional
	Expiry *metav1.Duration `json:"expiry,omitempty"`

	// RotateBefore is how long before its expiry a key is replaced. Absent means a third of
	// expiry.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	// +optional
	RotateBefore *metav1.Duration `json:"rotateBefore,omitempty"`

	// Reusable keys can log in any number of nodes, other keys only one.
	// +kubebuilder:default=false
	// +optional
	Reusable bool `json:"reusable,omitempty"`

	// Ephemeral nodes are removed soon after they go offline.
	// +kubebuilder:default=false
	// +optional
	Ephemeral bool `json:"ephemeral,omitempty"`

	// Preauthorized nodes need no approval by an administrator.
	// +kubebuilder:default=true
	// +optional
	Preauthorized *bool `json:"preauthorized,omitempty"`

	// RenewWhenUsed creates another key as soon as a single-use key is used, but at most one
	// every 30 seconds. Otherwise a used key remains, even if other fields change, until its
	// Secret is deleted or a new key is requested by annotation.
	// +optional
	RenewWhenUsed bool `json:"renewWhenUsed,omitempty"`
}

// An AuthKeyObservation is what Tailscale reports of an auth key, without its
// secret.
type AuthKeyObservation struct {
	// ID of the key.
	// +optional
	ID string `json:"id,omitempty"`

	// Created is the time at which the key was created.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`

	// Expires is the time at which the key expires.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`

	// Tags of the key, including those of the provider config.
	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// Used reports whether a single-use key has logged in its node. The provider does not check
	// a used key again, because it stays used.
	// +optional
	Used bool `json:"used,omitempty"`

	// Reissued is the value of the annotation gateway.tailscale.com/reissue for which the key
	// was last created.
	// +optional
	Reissued string `json:"reissued,omitempty"`
}

// An AuthKeySpec is the desired state of an AuthKey.
// +kubebuilder:validation:XValidation:rule="has(self.writeConnectionSecretToRef) || !has(self.managementPolicies) || self.managementPolicies.size() == 0 || self.managementPolicies.size() <= 2 && self.managementPolicies[0] in ['Observe', 'Delete'] && self.managementPolicies[self.managementPolicies.size() - 1] in ['Observe', 'Delete']",message="writeConnectionSecretToRef must be set: Tailscale shows a key only once"
type AuthKeySpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider AuthKeyParameters `json:"forProvider"`
}

// An AuthKeyStatus is the observed state of an AuthKey.
type AuthKeyStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider AuthKeyObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="ID",type="string",JSONPath=".status.atProvider.id"
// +kubebuilder:printcolumn:name="EXPIRES",type="date",JSONPath=".status.atProvider.expires"
// +kubebuilder:printcolumn:name="USED",type="boolean",JSONPath=".status.atProvider.used"
// +kubebuilder:printcolumn:name="SECRET",type="string",JSONPath=".spec.writeConnectionSecretToRef.name",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// An AuthKey creates a key that logs nodes in to a tailnet. Only the connection Secret contains
// the key, under authkey. The provider replaces it before it expires, and when the value of the
// annotation gateway.tailscale.com/reissue changes.
type AuthKey struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AuthKeySpec   `json:"spec"`
	Status AuthKeyStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// AuthKeyList is a list of AuthKey.
type AuthKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AuthKey `json:"items"`
}

// AuthKeyKind is the kind of an AuthKey.
const AuthKeyKind = "AuthKey"

// AuthKeyGroupVersionKind is the GroupVersionKind of the kind.
var AuthKeyGroupVersionKind = SchemeGroupVersion.WithKind(AuthKeyKind)

func init() {
	register(&AuthKey{}, &AuthKeyList{})
}
