// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A DeviceDeletionPolicy decides what happens to a device when its object is deleted.
// +kubebuilder:validation:Enum=Orphan;Delete
type DeviceDeletionPolicy string

// Deletion policies of devices.
const (
	// DeviceOrphan leaves the device in the tailnet.
	DeviceOrphan DeviceDeletionPolicy = "Orphan"
	// DeviceDelete removes the device from the tailnet.
	DeviceDelete DeviceDeletionPolicy = "Delete"
)

// A PostureAttribute is a custom attribute of a device, for postures in the policy file.
// Exactly one value is set.
// +kubebuilder:validation:XValidation:rule="(has(self.string) ? 1 : 0) + (has(self.number) ? 1 : 0) + (has(self.bool) ? 1 : 0) == 1",message="exactly one of string, number and bool must be set"
type PostureAttribute struct {
	// Key is custom: followed by a name.
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:Pattern=`^custom:[a-zA-Z0-9_]+$`
	Key string `json:"key"`

	// String of letters, digits, underscores and periods.
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_.]*$`
	// +optional
	String *string `json:"string,omitempty"`

	// Number that JSON can represent without loss.
	// +kubebuilder:validation:Minimum=-9007199254740991
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Number *int64 `json:"number,omitempty"`

	// +optional
	Bool *bool `json:"bool,omitempty"`
}

// DeviceParameters are the desired state of a device. Absent fields are not changed.
type DeviceParameters struct {
	// NodeID is the device's stable node ID, such as nAbCdEf11CNTRL. The annotation
	// crossplane.io/external-name can set it instead.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Device instead"
	// +optional
	NodeID string `json:"nodeID,omitempty"`

	// Name of the device in the tailnet, without its domain.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Name *string `json:"name,omitempty"`

	// Tags of the device, all of them: tags decide what a device may do, so others are removed. A
	// device with tags belongs to no user.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Authorized approves the device if the tailnet requires approval.
	// +optional
	Authorized *bool `json:"authorized,omitempty"`

	// KeyExpiryDisabled prevents the device's node key from expiring.
	// +optional
	KeyExpiryDisabled *bool `json:"keyExpiryDisabled,omitempty"`

	// Routes to approve for the device, in CIDR notation, in addition to those that others have
	// approved: an admin, such as for an exit node, or autoApprovers in the policy file. The
	// approval of a route that is removed from the list is withdrawn. 0.0.0.0/0 together with ::/0
	// approves the device as an exit node.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a subnet in CIDR notation, such as 10.0.0.0/16"
	// +kubebuilder:validation:items:XValidation:rule="!isCIDR(self) || cidr(self) == cidr(self).masked() && ip.isCanonical(self.split('/')[0])",message="must have no bits of a host, and IPv6 in its short form with lower-case letters, as Tailscale returns it: 10.0.0.0/16, fd00::/64"
	// +optional
	Routes *[]string `json:"routes,omitempty"`

	// PostureAttributes to set on the device. Other attributes are not changed.
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=32
	// +optional
	PostureAttributes []PostureAttribute `json:"postureAttributes,omitempty"`

	// DeletionPolicy decides whether the device is removed from the tailnet when this object is
	// deleted. The default is Orphan, because others run the device.
	// +kubebuilder:default=Orphan
	// +optional
	DeletionPolicy DeviceDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// A DeviceObservation is what Tailscale reports of a device.
type DeviceObservation struct {
	// NodeID is the device's stable node ID.
	// +optional
	NodeID string `json:"nodeID,omitempty"`

	// Name is the device's DNS name in the tailnet.
	// +optional
	Name string `json:"name,omitempty"`

	// Hostname that the device reports.
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// User that owns the device, or tagged-devices.
	// +optional
	User string `json:"user,omitempty"`

	// OS of the device.
	// +optional
	OS string `json:"os,omitempty"`

	// Addresses of the device in the tailnet, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// Online reports whether the device is connected to the control server.
	// +optional
	Online *bool `json:"online,omitempty"`

	// LastSeen is the time at which an offline device was last connected.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// +optional
	Authorized *bool `json:"authorized,omitempty"`

	// +optional
	KeyExpiryDisabled *bool `json:"keyExpiryDisabled,omitempty"`

	// Expires is the time at which the device's node key expires, if it does.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`

	// ClientVersion is the version of Tailscale that the device runs.
	// +optional
	ClientVersion string `json:"clientVersion,omitempty"`

	// UpdateAvailable reports whether a newer version is available for the device.
	// +optional
	UpdateAvailable *bool `json:"updateAvailable,omitempty"`

	// AdvertisedRoutes are the subnet routes that the device advertises.
	// +listType=atomic
	// +optional
	AdvertisedRoutes []string `json:"advertisedRoutes,omitempty"`

	// EnabledRoutes are the subnet routes that are approved for it.
	// +listType=atomic
	// +optional
	EnabledRoutes []string `json:"enabledRoutes,omitempty"`

	// PostureAttributes that this object manages, as Tailscale reports them.
	// +listType=map
	// +listMapKey=key
	// +optional
	PostureAttributes []PostureAttribute `json:"postureAttributes,omitempty"`
}

// A DeviceSpec is the desired state of a Device.
type DeviceSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider DeviceParameters `json:"forProvider"`
}

// A DeviceStatus is the observed state of a Device.
type DeviceStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider DeviceObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="DEVICE",type="string",JSONPath=".status.atProvider.name"
// +kubebuilder:printcolumn:name="ADDRESS",type="string",JSONPath=".status.atProvider.addresses[0]"
// +kubebuilder:printcolumn:name="ONLINE",type="boolean",JSONPath=".status.atProvider.online"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.atProvider.clientVersion",priority=1
// +kubebuilder:printcolumn:name="NODE-ID",type="string",JSONPath=".status.atProvider.nodeID",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// A Device is an existing node of the tailnet. The provider adopts it by its node ID and never
// creates a device.
type Device struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DeviceSpec   `json:"spec"`
	Status DeviceStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// DeviceList is a list of Device.
type DeviceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Device `json:"items"`
}

// DeviceKind is the kind of a Device.
const DeviceKind = "Device"

// DeviceGroupVersionKind is the GroupVersionKind of the kind.
var DeviceGroupVersionKind = SchemeGroupVersion.WithKind(DeviceKind)

func init() {
	register(&Device{}, &DeviceList{})
}
