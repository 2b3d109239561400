// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A DiscoverySource is a kind of things that a Discovery looks for.
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
	// TagSelectorIn wants at least one of the values among the tags.
	TagSelectorIn TagSelectorOperator = "In"
	// TagSelectorNotIn wants none of the values among the tags.
	TagSelectorNotIn TagSelectorOperator = "NotIn"
	// TagSelectorExists wants the tag key.
	TagSelectorExists TagSelectorOperator = "Exists"
	// TagSelectorDoesNotExist wants the tag key to be missing.
	TagSelectorDoesNotExist TagSelectorOperator = "DoesNotExist"
)

// A TagSelector is a requirement on the tags of a device or a service.
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 && !has(self.tag) : has(self.tag) && !has(self.values)",message="In and NotIn take values, Exists and DoesNotExist take tag"
type TagSelector struct {
	Operator TagSelectorOperator `json:"operator"`

	// Tag that must exist, or must not.
	// +optional
	Tag Tag `json:"tag,omitempty"`

	// Values are tags, for In and NotIn.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Values []Tag `json:"values,omitempty"`
}

// DiscoveryParameters say what to look for.
type DiscoveryParameters struct {
	// Sources to look in. Both are the default.
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:default={Devices,Services}
	// +optional
	Sources []DiscoverySource `json:"sources,omitempty"`

	// Include are name patterns of which one must match: * stands for any
	// characters, ? for one. A pattern is compared with the name and with the DNS
	// name. Absent means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Include []string `json:"include,omitempty"`

	// Exclude are name patterns of which none may match.
	// +listType=set
	// +kubebuilder:validation:MaxItems=72
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Exclude []string `json:"exclude,omitempty"`

	// TagSelectors must all be met.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TagSelectors []TagSelector `json:"tagSelectors,omitempty"`

	// Users of whom one must own the device, by login name, in any case. Tagged devices
	// and services are nobody's.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=254
	// +optional
	Users []string `json:"users,omitempty"`

	// OnlineOnly leaves out devices that are not connected.
	// +optional
	OnlineOnly bool `json:"onlineOnly,omitempty"`

	// Interval between two looks, at least 5s. It doubles after each failure, up
	// to 2m.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="must be at least 5s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// MaxResults bounds what the status lists: the first by source and name.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +optional
	MaxResults int32 `json:"maxResults,omitempty"`
}

// A Discovered is a device or a service that was found.
type Discovered struct {
	// Source is Devices or Services.
	Source DiscoverySource `json:"source"`

	// Name of the device without its domain, or of the service with svc:.
	Name string `json:"name"`

	// FQDN is its DNS name, once the tailnet's domain is known.
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

	// LastSeen is when an offline device was connected last.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
}

// A DiscoveryObservation is what was found.
type DiscoveryObservation struct {
	// Count of all that match.
	// +optional
	Count *int32 `json:"count,omitempty"`

	// Truncated reports that more match than are listed.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// Discovered devices and services, by source and name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +optional
	Discovered []Discovered `json:"discovered,omitempty"`

	// LastChanged is when what is listed was seen to have changed, by the clock of
	// Tailscale's API.
	// +optional
	LastChanged *metav1.Time `json:"lastChanged,omitempty"`

	// Failures in a row since the last look that succeeded.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}

// A DiscoverySpec is the wanted state of a Discovery.
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

// A Discovery finds devices and services of a tailnet by name and tag. It
// changes nothing there.
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
