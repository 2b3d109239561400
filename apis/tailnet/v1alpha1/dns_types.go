// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// DNSNameservers are the tailnet's global nameservers.
type DNSNameservers struct {
	// Addresses of nameservers, in order. With an empty list, devices use their local
	// nameservers.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address"
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip.isCanonical(self)",message="must be in its short form with lower-case letters, as Tailscale returns it, such as fd7a::53"
	Addresses []string `json:"addresses"`

	// OverrideLocalDNS makes devices use these nameservers instead of their local ones. If it
	// is absent, and when the object is deleted, the setting is not changed. Tailscale's API
	// for it is alpha: it replaces all DNS settings of a tailnet at once.
	// +optional
	OverrideLocalDNS *bool `json:"overrideLocalDNS,omitempty"`
}

// A SplitDNSDomain sends queries for one domain to dedicated nameservers.
type SplitDNSDomain struct {
	// Domain whose names the nameservers resolve.
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
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip.isCanonical(self)",message="must be in its short form with lower-case letters, as Tailscale returns it, such as fd7a::53"
	Nameservers []string `json:"nameservers"`
}

// DNSPreferences are options of a tailnet's DNS.
type DNSPreferences struct {
	// MagicDNS gives devices and services DNS names. Deleting the object does not change it.
	MagicDNS bool `json:"magicDNS"`
}

// DNSParameters are the desired DNS settings of a tailnet. Absent settings are not changed.
// +kubebuilder:validation:XValidation:rule="has(self.nameservers) || has(self.searchPaths) || has(self.splitDNS) || has(self.preferences)",message="at least one of nameservers, searchPaths, splitDNS and preferences must be set"
type DNSParameters struct {
	// Nameservers that resolve all other domains.
	// +optional
	Nameservers *DNSNameservers `json:"nameservers,omitempty"`

	// SearchPaths are the domains that are appended to short names, in order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$`
	// +optional
	SearchPaths *[]string `json:"searchPaths,omitempty"`

	// SplitDNS by domain. Other domains are not changed.
	// +listType=map
	// +listMapKey=domain
	// +kubebuilder:validation:MaxItems=64
	// +optional
	SplitDNS []SplitDNSDomain `json:"splitDNS,omitempty"`

	// Preferences are options of a tailnet's DNS.
	// +optional
	Preferences *DNSPreferences `json:"preferences,omitempty"`

	// AdoptionPolicy decides about existing settings that this object did not create. Refuse
	// reports an error, Adopt takes them over.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// A SplitDNSObservation is a domain with dedicated nameservers.
type SplitDNSObservation struct {
	Domain string `json:"domain"`

	// +listType=atomic
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`
}

// A DNSObservation is what Tailscale reports of a tailnet's DNS.
type DNSObservation struct {
	// Tailnet is the tailnet's DNS name, if the credential may list its devices.
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// +listType=atomic
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`

	// +listType=atomic
	// +optional
	SearchPaths []string `json:"searchPaths,omitempty"`

	// SplitDNS by domain, including domains that other objects or users set. At most 256 are
	// listed.
	// +listType=map
	// +listMapKey=domain
	// +kubebuilder:validation:MaxItems=256
	// +optional
	SplitDNS []SplitDNSObservation `json:"splitDNS,omitempty"`

	// +optional
	MagicDNS *bool `json:"magicDNS,omitempty"`

	// OverrideLocalDNS is read only if the spec sets it.
	// +optional
	OverrideLocalDNS *bool `json:"overrideLocalDNS,omitempty"`
}

// A DNSSpec is the desired state of a DNS.
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

// A DNS manages DNS settings of a tailnet: global nameservers, search paths, split DNS and
// MagicDNS. If two objects of the cluster set the same setting, the older one takes precedence.
// Deleting the object removes its nameservers, search paths and domains, unless they were
// changed by others.
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

// DNSKind is the kind of a DNS.
const DNSKind = "DNS"

// DNSGroupVersionKind is the GroupVersionKind of the kind.
var DNSGroupVersionKind = SchemeGroupVersion.WithKind(DNSKind)

func init() {
	register(&DNS{}, &DNSList{})
}
