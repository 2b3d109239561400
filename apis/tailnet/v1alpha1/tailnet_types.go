// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// TailnetSettings are settings of a tailnet, with the names of Tailscale's API. Absent settings
// are not changed.
type TailnetSettings struct {
	// HTTPSEnabled allows devices to obtain TLS certificates for their names.
	// +optional
	HTTPSEnabled *bool `json:"httpsEnabled,omitempty"`

	// DevicesApprovalOn requires an administrator's approval for new devices.
	// +optional
	DevicesApprovalOn *bool `json:"devicesApprovalOn,omitempty"`

	// DevicesAutoUpdatesOn updates devices that allow it.
	// +optional
	DevicesAutoUpdatesOn *bool `json:"devicesAutoUpdatesOn,omitempty"`

	// DevicesKeyDurationDays is the lifetime of node keys, in days: 1 to 180.
	// +optional
	DevicesKeyDurationDays *int32 `json:"devicesKeyDurationDays,omitempty"`

	// UsersApprovalOn requires an administrator's approval for new users.
	// +optional
	UsersApprovalOn *bool `json:"usersApprovalOn,omitempty"`

	// UsersRoleAllowedToJoinExternalTailnets is the role of users that may join other tailnets:
	// none, admin or member.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UsersRoleAllowedToJoinExternalTailnets *string `json:"usersRoleAllowedToJoinExternalTailnets,omitempty"`

	// NetworkFlowLoggingOn records connections between devices.
	// +optional
	NetworkFlowLoggingOn *bool `json:"networkFlowLoggingOn,omitempty"`

	// RegionalRoutingOn routes clients to the nearest of several routers or hosts. Tailscale
	// has replaced it by routeSelection: true is regional-routing.
	// +optional
	RegionalRoutingOn *bool `json:"regionalRoutingOn,omitempty"`

	// RouteSelection decides which of several routers of a subnet, or hosts of a service, a
	// client uses: active-passive-failover, regional-routing, regional-routing-failover or
	// magicroute.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RouteSelection *string `json:"routeSelection,omitempty"`

	// PostureIdentityCollectionOn collects serial numbers of devices.
	// +optional
	PostureIdentityCollectionOn *bool `json:"postureIdentityCollectionOn,omitempty"`

	// ACLsExternallyManagedOn prevents users from editing the policy file in the admin console.
	// +optional
	ACLsExternallyManagedOn *bool `json:"aclsExternallyManagedOn,omitempty"`

	// ACLsExternalLink is the link that the admin console shows to users who want to edit the
	// policy file.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ACLsExternalLink *string `json:"aclsExternalLink,omitempty"`
}

// TailnetParameters are the desired state of a tailnet.
type TailnetParameters struct {
	// Settings to manage. Absent means none. Each setting needs an OAuth scope:
	// networking_settings for httpsEnabled, logs:network for networkFlowLoggingOn, policy_file
	// for the settings of ACLs, feature_settings for all others. If two objects set the same
	// setting, the older one takes precedence.
	// +kubebuilder:validation:XValidation:rule="!has(self.devicesKeyDurationDays) || (self.devicesKeyDurationDays >= 1 && self.devicesKeyDurationDays <= 180)",message="devicesKeyDurationDays must be between 1 and 180"
	// +kubebuilder:validation:XValidation:rule="!has(self.usersRoleAllowedToJoinExternalTailnets) || self.usersRoleAllowedToJoinExternalTailnets in ['none', 'admin', 'member']",message="usersRoleAllowedToJoinExternalTailnets must be none, admin or member"
	// +kubebuilder:validation:XValidation:rule="!has(self.routeSelection) || self.routeSelection in ['active-passive-failover', 'regional-routing', 'regional-routing-failover', 'magicroute']",message="routeSelection must be active-passive-failover, regional-routing, regional-routing-failover or magicroute"
	// +kubebuilder:validation:XValidation:rule="!has(self.regionalRoutingOn) || !has(self.routeSelection)",message="regionalRoutingOn and routeSelection exclude each other; set routeSelection, which replaces regionalRoutingOn"
	// +kubebuilder:validation:XValidation:rule="!has(self.aclsExternalLink) || self.aclsExternalLink == '' || isURL(self.aclsExternalLink)",message="aclsExternalLink must be a URL"
	// +optional
	Settings *TailnetSettings `json:"settings,omitempty"`
}

// A CredentialObservation is what Tailscale reports of a credential.
type CredentialObservation struct {
	// Scopes of the credential. An API access token has none: it has the rights of its user.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Scopes []string `json:"scopes,omitempty"`

	// ExpiresAt is the time at which the credential expires. Absent for OAuth clients and
	// federated identities, which are valid until they are revoked.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// A TailnetObservation is what Tailscale reports of a tailnet.
type TailnetObservation struct {
	// ID of the tailnet, if the credential may read it.
	// +optional
	ID string `json:"id,omitempty"`

	// Name is the tailnet's DNS name, such as tail1234.ts.net. Absent until the tailnet has a
	// device or MagicDNS reports it.
	// +optional
	Name string `json:"name,omitempty"`

	// Organization is the tailnet's display name, if the credential may read it.
	// +optional
	Organization string `json:"organization,omitempty"`

	// OrganizationID is the ID of the organization that owns the tailnet, if the credential may
	// read it.
	// +optional
	OrganizationID string `json:"organizationID,omitempty"`

	// MagicDNSSuffix is the domain of the names of machines and services.
	// +optional
	MagicDNSSuffix string `json:"magicDNSSuffix,omitempty"`

	// MagicDNS reports whether MagicDNS is enabled.
	// +optional
	MagicDNS *bool `json:"magicDNS,omitempty"`

	// DeviceCount is the number of devices in the tailnet.
	// +optional
	DeviceCount *int64 `json:"deviceCount,omitempty"`

	// ConnectedDevices is the number of devices that are connected to the control server.
	// +optional
	ConnectedDevices *int64 `json:"connectedDevices,omitempty"`

	// Credential of the provider config, as far as Tailscale reports it.
	// +optional
	Credential *CredentialObservation `json:"credential,omitempty"`

	// ServiceCount is the number of Tailscale Services in the tailnet.
	// +optional
	ServiceCount *int64 `json:"serviceCount,omitempty"`

	// Settings of the tailnet, if the credential may read them.
	// +optional
	Settings *TailnetSettings `json:"settings,omitempty"`
}

// A TailnetSpec is the desired state of a Tailnet.
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

// A Tailnet observes the tailnet of its provider config, and manages the settings that are set.
// It does not create or delete the tailnet.
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

// TailnetKind is the kind of a Tailnet.
const TailnetKind = "Tailnet"

// TailnetGroupVersionKind is the GroupVersionKind of the kind.
var TailnetGroupVersionKind = SchemeGroupVersion.WithKind(TailnetKind)

func init() {
	register(&Tailnet{}, &TailnetList{})
}
