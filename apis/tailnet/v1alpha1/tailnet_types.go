// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// TailnetSettings are settings of a tailnet, as Tailscale's API calls them. Those
// that are absent are left as they are.
type TailnetSettings struct {
	// HTTPSEnabled lets devices get TLS certificates for their names.
	// +optional
	HTTPSEnabled *bool `json:"httpsEnabled,omitempty"`

	// DevicesApprovalOn makes new devices wait for an admin.
	// +optional
	DevicesApprovalOn *bool `json:"devicesApprovalOn,omitempty"`

	// DevicesAutoUpdatesOn updates devices that allow it.
	// +optional
	DevicesAutoUpdatesOn *bool `json:"devicesAutoUpdatesOn,omitempty"`

	// DevicesKeyDurationDays is how long node keys last, in days: 1 to 180.
	// +optional
	DevicesKeyDurationDays *int32 `json:"devicesKeyDurationDays,omitempty"`

	// UsersApprovalOn makes new users wait for an admin.
	// +optional
	UsersApprovalOn *bool `json:"usersApprovalOn,omitempty"`

	// UsersRoleAllowedToJoinExternalTailnets is who may join tailnets of others:
	// none, admin or member.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UsersRoleAllowedToJoinExternalTailnets *string `json:"usersRoleAllowedToJoinExternalTailnets,omitempty"`

	// NetworkFlowLoggingOn records which devices speak with each other.
	// +optional
	NetworkFlowLoggingOn *bool `json:"networkFlowLoggingOn,omitempty"`

	// RegionalRoutingOn sends clients to the nearest of several routers or hosts.
	// +optional
	RegionalRoutingOn *bool `json:"regionalRoutingOn,omitempty"`

	// PostureIdentityCollectionOn collects serial numbers of devices.
	// +optional
	PostureIdentityCollectionOn *bool `json:"postureIdentityCollectionOn,omitempty"`

	// ACLsExternallyManagedOn keeps people from editing the policy file in the
	// admin console.
	// +optional
	ACLsExternallyManagedOn *bool `json:"aclsExternallyManagedOn,omitempty"`

	// ACLsExternalLink is where the admin console sends people who want to edit the
	// policy file.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ACLsExternalLink *string `json:"aclsExternalLink,omitempty"`
}

// TailnetParameters are what is wanted of a tailnet.
type TailnetParameters struct {
	// Settings to manage. None are changed where it is absent. Each needs an OAuth
	// scope: networking_settings for httpsEnabled, logs:network for
	// networkFlowLoggingOn, policy_file for those of ACLs, feature_settings for all
	// others. Of two objects that name the same setting the older one has it.
	// +kubebuilder:validation:XValidation:rule="!has(self.devicesKeyDurationDays) || (self.devicesKeyDurationDays >= 1 && self.devicesKeyDurationDays <= 180)",message="devicesKeyDurationDays must be between 1 and 180"
	// +kubebuilder:validation:XValidation:rule="!has(self.usersRoleAllowedToJoinExternalTailnets) || self.usersRoleAllowedToJoinExternalTailnets in ['none', 'admin', 'member']",message="usersRoleAllowedToJoinExternalTailnets must be none, admin or member"
	// +kubebuilder:validation:XValidation:rule="!has(self.aclsExternalLink) || self.aclsExternalLink == '' || isURL(self.aclsExternalLink)",message="aclsExternalLink must be a URL"
	// +optional
	Settings *TailnetSettings `json:"settings,omitempty"`
}

// A CredentialObservation has what Tailscale reports of a credential.
type CredentialObservation struct {
	// Scopes of OAuth that the credential has. An API access token has none: it may do
	// what its user may.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Scopes []string `json:"scopes,omitempty"`

	// ExpiresAt is when the credential ends. Absent where it does not: OAuth clients and
	// federated identities stay until they are revoked.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// A TailnetObservation is what Tailscale reports of a tailnet.
type TailnetObservation struct {
	// ID of the tailnet, where the API tells it.
	// +optional
	ID string `json:"id,omitempty"`

	// Name is the tailnet's DNS name, such as tail1234.ts.net. It is known once
	// the tailnet has a device or MagicDNS tells it.
	// +optional
	Name string `json:"name,omitempty"`

	// Organization is the tailnet's display name, as far as the API tells it.
	// +optional
	Organization string `json:"organization,omitempty"`

	// OrganizationID is the ID of the organization that owns the tailnet, where the
	// API tells it.
	// +optional
	OrganizationID string `json:"organizationID,omitempty"`

	// MagicDNSSuffix is the domain under which machines and services have names.
	// +optional
	MagicDNSSuffix string `json:"magicDNSSuffix,omitempty"`

	// MagicDNS reports whether MagicDNS is on.
	// +optional
	MagicDNS *bool `json:"magicDNS,omitempty"`

	// DeviceCount is how many devices the tailnet has.
	// +optional
	DeviceCount *int64 `json:"deviceCount,omitempty"`

	// ConnectedDevices is how many of them are connected to the control server.
	// +optional
	ConnectedDevices *int64 `json:"connectedDevices,omitempty"`

	// Credential of the provider config, as far as Tailscale reports it.
	// +optional
	Credential *CredentialObservation `json:"credential,omitempty"`

	// ServiceCount is how many Tailscale Services the tailnet has.
	// +optional
	ServiceCount *int64 `json:"serviceCount,omitempty"`

	// Settings of the tailnet, where the credential may read them.
	// +optional
	Settings *TailnetSettings `json:"settings,omitempty"`
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

// A Tailnet observes the tailnet that its provider config names, and manages those
// of its settings that are set. It makes and deletes nothing.
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
