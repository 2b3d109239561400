// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A DiscoverySource is a kind of objects that a Discovery searches for.
// +kubebuilder:validation:Enum=Devices;Services
type DiscoverySource string

// Sources of discoveries.
const (
	DiscoverDevices  DiscoverySource = "Devices"
	DiscoverServices DiscoverySource = "Services"
)

// A TagSelectorOperator relates tags to values.
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
type TagSelectorOperator string

// Operators of tag selectors.
const (
	// TagSelectorIn requires at least one of the values among the tags.
	TagSelectorIn TagSelectorOperator = "In"
	// TagSelectorNotIn requires none of the values among the tags.
	TagSelectorNotIn TagSelectorOperator = "NotIn"
	// TagSelectorExists requires the tag.
	TagSelectorExists TagSelectorOperator = "Exists"
	// TagSelectorDoesNotExist requires the absence of the tag.
	TagSelectorDoesNotExist TagSelectorOperator = "DoesNotExist"
)

// A TagSelector is a requirement on the tags of a device or a service.
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 && !has(self.tag) : has(self.tag) && !has(self.values)",message="In and NotIn take values, Exists and DoesNotExist take tag"
type TagSelector struct {
	Operator TagSelectorOperator `json:"operator"`

	// Tag that must exist, or must not exist.
	// +optional
	Tag Tag `json:"tag,omitempty"`

	// Values are the tags for In and NotIn.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Values []Tag `json:"values,omitempty"`
}

// DiscoveryParameters select the devices and services to discover.
type DiscoveryParameters struct {
	// Sources to search. The default is both.
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:default={Devices,Services}
	// +optional
	Sources []DiscoverySource `json:"sources,omitempty"`

	// Include are patterns for the name and the DNS name: * matches any characters, ? matches
	// one. A device or service must match one of them. Absent means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Include []string `json:"include,omitempty"`

	// Exclude are patterns that exclude devices and services that match one of them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=72
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Exclude []string `json:"exclude,omitempty"`

	// TagSelectors are requirements that must all be met.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TagSelectors []TagSelector `json:"tagSelectors,omitempty"`

	// Users of whom one must own the device, by login name, case-insensitive. Tagged devices
	// and services have no owner.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=254
	// +optional
	Users []string `json:"users,omitempty"`

	// OnlineOnly excludes devices that are not connected.
	// +optional
	OnlineOnly bool `json:"onlineOnly,omitempty"`

	// Interval between two searches, at least 5s. It doubles after each failure, up to 2m.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="must be at least 5s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// MaxResults is the maximum number of entries in the status. Listed ones stay while they
	// match. Services come before devices, and the oldest devices before others. New devices of one
	// user get at most three quarters of the places that others leave.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +optional
	MaxResults int32 `json:"maxResults,omitempty"`
}

// A Discovered is a discovered device or service.
type Discovered struct {
	// Source is Devices or Services.
	Source DiscoverySource `json:"source"`

	// Name of the device without its domain, or of the service with svc:.
	Name string `json:"name"`

	// FQDN is its DNS name. Absent until the tailnet's domain is known.
	// +optional
	FQDN string `json:"fqdn,omitempty"`

	// Addresses in the tailnet, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// Ports of a service.
	// +listType=atomic
	// +optional
	Ports []string `json:"ports,omitempty"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// NodeID of a device.
	// +optional
	NodeID string `json:"nodeID,omitempty"`

	// Health is Online or Offline for a device, Unknown for a service.
	// +optional
	Health string `json:"health,omitempty"`

	// LastSeen is the time at which an offline device was last connected.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
}

// A DiscoveryObservation is the result of a discovery.
type DiscoveryObservation struct {
	// Count is the number of all matches.
	// +optional
	Count *int32 `json:"count,omitempty"`

	// Truncated reports whether there are more matches than listed.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// Discovered devices and services, by source and name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +optional
	Discovered []Discovered `json:"discovered,omitempty"`

	// LastChanged is the time at which a change of the listed matches was seen, by the clock of
	// Tailscale's API.
	// +optional
	LastChanged *metav1.Time `json:"lastChanged,omitempty"`

	// Failures is the number of consecutive failures since the last successful search.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}

// A DiscoverySpec is the desired state of a Discovery.
type DiscoverySpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// +optional
	ForProvider DiscoveryParameters `json:"forProvider,omitempty"`
}

// A DiscoveryStatus is the observed state of a Discovery.
type DiscoveryStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider DiscoveryObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="FOUND",type="integer",JSONPath=".status.atProvider.count"
// +kubebuilder:printcolumn:name="INTERVAL",type="string",JSONPath=".spec.forProvider.interval"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:path=discoveries,scope=Namespaced,categories={crossplane,managed,tailscale}

// A Discovery finds devices and services of a tailnet by name and tag. It does not change them.
type Discovery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DiscoverySpec   `json:"spec"`
	Status DiscoveryStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// DiscoveryList is a list of Discovery.
type DiscoveryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Discovery `json:"items"`
}

// DiscoveryKind is the kind of a Discovery.
const DiscoveryKind = "Discovery"

// DiscoveryGroupVersionKind is the GroupVersionKind of the kind.
var DiscoveryGroupVersionKind = SchemeGroupVersion.WithKind(DiscoveryKind)

func init() {
	register(&Discovery{}, &DiscoveryList{})
}
