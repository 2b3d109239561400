// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// TailnetParameters are the settings of a tailnet that are wanted. There are
// none yet: a Tailnet only observes.
type TailnetParameters struct{}

// A TailnetObservation is what Tailscale reports of a tailnet.
type TailnetObservation struct {
	// Name is the tailnet's DNS name, such as tail1234.ts.net. It is known once
	// the tailnet has a device or MagicDNS tells it.
	// +optional
	Name string `json:"name,omitempty"`

	// Organization is the tailnet's display name, as far as the API tells it.
	// +optional
	Organization string `json:"organization,omitempty"`

	// MagicDNSSuffix is the domain under which machines and services have names.
	// +optional
	MagicDNSSuffix string `json:"magicDNSSuffix,omitempty"`

	// MagicDNS tells whether MagicDNS is on.
	// +optional
	MagicDNS *bool `json:"magicDNS,omitempty"`

	// DeviceCount is how many devices the tailnet has.
	// +optional
	DeviceCount *int64 `json:"deviceCount,omitempty"`

	// ServiceCount is how many Tailscale Services the tailnet has.
	// +optional
	ServiceCount *int64 `json:"serviceCount,omitempty"`
}

// A TailnetSpec is the wanted state of a Tailnet.
type TailnetSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// +optional
	ForProvider TailnetParameters `json:"forProvider,omitempty"`
}

// A TailnetStatus is the observed state of a Tailnet.
type TailnetStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider TailnetObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="TAILNET",type="string",JSONPath=".status.atProvider.name"
// +kubebuilder:printcolumn:name="DEVICES",type="integer",JSONPath=".status.atProvider.deviceCount"
// +kubebuilder:printcolumn:name="SERVICES",type="integer",JSONPath=".status.atProvider.serviceCount"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// A Tailnet observes the tailnet that its provider config names. It makes and
// deletes nothing.
type Tailnet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailnetSpec   `json:"spec"`
	Status TailnetStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// TailnetList is a list of Tailnet.
type TailnetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tailnet `json:"items"`
}
