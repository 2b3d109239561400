// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A ServiceName is the name of a Tailscale Service: svc: and a DNS label
// (tailcfg.ServiceName).
// +kubebuilder:validation:MaxLength=67
// +kubebuilder:validation:XValidation:rule="self.matches('^svc:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="must be svc: followed by a DNS label of lower-case letters, digits and dashes"
type ServiceName string

// A ServicePort is a port of a Tailscale Service: tcp:PORT, or do-not-validate.
// Services carry TCP only.
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:XValidation:rule="self == 'do-not-validate' || (self.matches('^tcp:[1-9][0-9]{0,4}$') && int(self.substring(4)) <= 65535)",message="must be tcp:PORT with PORT from 1 to 65535, or do-not-validate; Tailscale Services carry TCP only"
type ServicePort string

// An AdoptionPolicy says what to do with a service that exists and is not ours.
// +kubebuilder:validation:Enum=Refuse;Adopt
type AdoptionPolicy string

// Adoption policies.
const (
	AdoptionPolicyRefuse AdoptionPolicy = "Refuse"
	AdoptionPolicyAdopt  AdoptionPolicy = "Adopt"
)

// VIPServiceParameters are the wanted state of a Tailscale Service.
type VIPServiceParameters struct {
	// Name of the service in the tailnet. It is the external name.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; make another VIPService instead"
	Name ServiceName `json:"name"`

	// Comment is shown in Tailscale's admin console.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Comment string `json:"comment,omitempty"`

	// Ports that hosts of the service must serve.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Ports []ServicePort `json:"ports"`

	// Tags of the service, for grants and for auto-approval.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Annotations to set on the service, beside those that the provider and
	// others keep there.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// AutoApprove approves hosts that carry one of hostTags through the API.
	// +kubebuilder:default=true
	// +optional
	AutoApprove *bool `json:"autoApprove,omitempty"`

	// HostTags tell which hosts autoApprove may approve. Nothing is approved
	// when there are none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	HostTags []Tag `json:"hostTags,omitempty"`

	// AdoptionPolicy says what to do when a service of this name exists and was
	// not made for this object. Refuse reports it, Adopt takes it over.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// A ServiceHost is a device that offers to host a service.
type ServiceHost struct {
	// NodeID is the device's stable node ID.
	NodeID string `json:"nodeID"`

	// Name is the device's name in the tailnet.
	// +optional
	Name string `json:"name,omitempty"`

	// Online tells whether the device is connected to the control server.
	Online bool `json:"online"`

	// Configured tells whether the device serves what the service defines.
	Configured bool `json:"configured"`

	// Approval is not-approved, approved:auto or approved:manual.
	// +optional
	Approval string `json:"approval,omitempty"`
}

// A VIPServiceObservation is what Tailscale reports of a service.
type VIPServiceObservation struct {
	// +optional
	Name string `json:"name,omitempty"`

	// Addresses are the service's virtual IPs, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName of the service, once the tailnet's domain is known.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Hosts of the service, by name.
	// +listType=atomic
	// +optional
	Hosts []ServiceHost `json:"hosts,omitempty"`
}

// A VIPServiceSpec is the wanted state of a VIPService.
type VIPServiceSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider VIPServiceParameters `json:"forProvider"`
}

// A VIPServiceStatus is the observed state of a VIPService.
type VIPServiceStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider VIPServiceObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SERVICE",type="string",JSONPath=".spec.forProvider.name"
// +kubebuilder:printcolumn:name="ADDRESS",type="string",JSONPath=".status.atProvider.addresses[0]"
// +kubebuilder:printcolumn:name="DNS-NAME",type="string",JSONPath=".status.atProvider.dnsName"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale},shortName=vip

// A VIPService is a Tailscale Service: a name and a virtual IP pair that tagged
// devices host.
type VIPService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VIPServiceSpec   `json:"spec"`
	Status VIPServiceStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// VIPServiceList is a list of VIPService.
type VIPServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VIPService `json:"items"`
}
