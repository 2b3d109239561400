// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// DNSNameservers are the tailnet's global nameservers.
type DNSNameservers struct {
	// Addresses of nameservers, in order. With none, devices use those that they
	// have of their own.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address"
	Addresses []string `json:"addresses"`

	// OverrideLocalDNS makes devices use these nameservers instead of their own.
	// It is left as it is where it is absent, and with the object's deletion.
	// Tailscale's API for it is still alpha: it replaces all of a tailnet's DNS
	// settings at once.
	// +optional
	OverrideLocalDNS *bool `json:"overrideLocalDNS,omitempty"`
}

// A SplitDNSDomain sends the names of one domain to nameservers of its own.
type SplitDNSDomain struct {
	// Domain whose names are asked for elsewhere.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$`
	Domain string `json:"domain"`

	// Nameservers of the domain, in order.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address"
	Nameservers []string `json:"nameservers"`
}

// DNSPreferences are switches of a tailnet's DNS.
type DNSPreferences struct {
	// MagicDNS gives devices and services names. It stays as it is when the object
	// is deleted.
	MagicDNS bool `json:"magicDNS"`
}

// DNSParameters are the wanted DNS settings of a tailnet. Parts that are absent
// are left as they are.
// +kubebuilder:validation:XValidation:rule="has(self.nameservers) || has(self.searchPaths) || has(self.splitDNS) || has(self.preferences)",message="at least one of nameservers, searchPaths, splitDNS and preferences must be set"
type DNSParameters struct {
	// Nameservers that answer for all other domains.
	// +optional
	Nameservers *DNSNameservers `json:"nameservers,omitempty"`

	// SearchPaths that are appended to short names, in order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$`
	// +optional
	SearchPaths *[]string `json:"searchPaths,omitempty"`

	// SplitDNS by domain. Other domains are left alone.
	// +listType=map
	// +listMapKey=domain
	// +kubebuilder:validation:MaxItems=64
	// +optional
	SplitDNS []SplitDNSDomain `json:"splitDNS,omitempty"`

	// Preferences are switches of a tailnet's DNS.
	// +optional
	Preferences *DNSPreferences `json:"preferences,omitempty"`

	// AdoptionPolicy says what to do when a setting exists already and was
	// not made for this object. Refuse reports it, Adopt takes it over.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// A SplitDNSObservation is a domain with nameservers of its own.
type SplitDNSObservation struct {
	Domain string `json:"domain"`

	// +listType=atomic
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`
}

// A DNSObservation is what Tailscale reports of a tailnet's DNS.
type DNSObservation struct {
	// Tailnet is the tailnet's DNS name, where the credential may list its devices.
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// +listType=atomic
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`

	// +listType=atomic
	// +optional
	SearchPaths []string `json:"searchPaths,omitempty"`

	// SplitDNS by domain, those of others included. At most 256 are shown.
	// +listType=map
	// +listMapKey=domain
	// +kubebuilder:validation:MaxItems=256
	// +optional
	SplitDNS []SplitDNSObservation `json:"splitDNS,omitempty"`

	// +optional
	MagicDNS *bool `json:"magicDNS,omitempty"`

	// OverrideLocalDNS is asked for only where the spec names it.
	// +optional
	OverrideLocalDNS *bool `json:"overrideLocalDNS,omitempty"`
}

// A DNSSpec is the wanted state of a DNS.
type DNSSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider DNSParameters `json:"forProvider"`
}

// A DNSStatus is the observed state of a DNS.
type DNSStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider DNSObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="MAGICDNS",type="boolean",JSONPath=".status.atProvider.magicDNS"
// +kubebuilder:printcolumn:name="NAMESERVERS",type="string",JSONPath=".status.atProvider.nameservers",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:path=dns,scope=Namespaced,categories={crossplane,managed,tailscale}

// A DNS is the DNS settings of a tailnet, or some of them: global nameservers,
// search paths, split DNS and MagicDNS. What one object names no other object of
// the cluster may change: the older one keeps it. Deleting the object removes its
// nameservers, search paths and domains, unless somebody changed them.
type DNS struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DNSSpec   `json:"spec"`
	Status DNSStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// DNSList is a list of DNS.
type DNSList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DNS `json:"items"`
}
