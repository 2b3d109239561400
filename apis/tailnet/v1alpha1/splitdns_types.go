// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// SplitDNSParameters are nameservers that this object adds to domains of a tailnet, in addition
// to those that others added.
type SplitDNSParameters struct {
	// Domains that the nameservers resolve, with all names below them. A single label, such as
	// com or internal, is refused.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)+$`
	Domains []string `json:"domains"`

	// Nameservers of all these domains. Devices query all nameservers of a domain at once, and
	// use the first answer.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address"
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip.isCanonical(self)",message="must be in its short form with lower-case letters, as Tailscale returns it, such as fd7a::53"
	Nameservers []string `json:"nameservers"`
}

// A SplitDNSStateObservation is what Tailscale reports of the domains of a SplitDNS.
type SplitDNSStateObservation struct {
	// Tailnet is the tailnet's DNS name, if the credential may list its devices.
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// Domains with all their nameservers, including those that others added.
	// +listType=map
	// +listMapKey=domain
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Domains []SplitDNSObservation `json:"domains,omitempty"`
}

// A SplitDNSSpec is the desired state of a SplitDNS.
type SplitDNSSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider SplitDNSParameters `json:"forProvider"`
}

// A SplitDNSStatus is the observed state of a SplitDNS.
type SplitDNSStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider SplitDNSStateObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="DOMAINS",type="string",JSONPath=".spec.forProvider.domains"
// +kubebuilder:printcolumn:name="NAMESERVERS",type="string",JSONPath=".spec.forProvider.nameservers",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:path=splitdns,scope=Namespaced,categories={crossplane,managed,tailscale}

// A SplitDNS adds nameservers to domains of a tailnet. Several objects, in several clusters,
// can list the same domain: each adds its nameservers and leaves the others unchanged. A domain
// that a DNS object of the cluster sets belongs to that object. Deleting the object removes
// only the nameservers that it added.
type SplitDNS struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SplitDNSSpec   `json:"spec"`
	Status SplitDNSStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// SplitDNSList is a list of SplitDNS.
type SplitDNSList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SplitDNS `json:"items"`
}

// SplitDNSKind is the kind of a SplitDNS.
const SplitDNSKind = "SplitDNS"

// SplitDNSGroupVersionKind is the GroupVersionKind of the kind.
var SplitDNSGroupVersionKind = SchemeGroupVersion.WithKind(SplitDNSKind)

func init() {
	register(&SplitDNS{}, &SplitDNSList{})
}
