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
// +kubebuilder:validation:XValidation:rule="!(self in ['svc:localhost', 'svc:wpad', 'svc:autoconfig', 'svc:isatap', 'svc:teredo', 'svc:autorouter'])",message="is a name that resolvers or clients give a meaning of their own; choose another"
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

// Sharing says whether several clusters may define one service.
// +kubebuilder:validation:Enum=Exclusive;Shared
type Sharing string

// Ways to share.
const (
	SharingExclusive Sharing = "Exclusive"
	SharingShared    Sharing = "Shared"
)

// VIPServiceParameters are the wanted state of a Tailscale Service.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.sharing) || oldSelf.sharing != 'Shared' || (has(self.sharing) && self.sharing == 'Shared')",message="sharing cannot go back from Shared to Exclusive; delete this VIPService and make another"
type VIPServiceParameters struct {
	// Name of the service in the tailnet. It is the external name.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; make another VIPService instead"
	Name ServiceName `json:"name"`

	// DisplayName is shown instead of the name in Tailscale's admin console.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	DisplayName string `json:"displayName,omitempty"`

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
	// others keep there. One that is taken out here is taken off the service.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && !k.startsWith('gateway.tailscale.com/') && k != 'tailscale.com/owner-references')",message="keys must be at most 128 characters long, not begin with gateway.tailscale.com/ and not be tailscale.com/owner-references: those are kept by the provider"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Sharing is Exclusive (the default) for a service of this cluster alone,
	// or Shared for one that several clusters define together, each with a
	// VIPService of the same name and with sharing Shared. The service lives
	// until the last of them is deleted. Tags, ports, display name, comment and
	// annotations are those of the cluster that made it; others that want other
	// tags or ports see the condition Conflict, and so does the one that made
	// it. Exclusive can be changed to Shared, but not back.
	// +kubebuilder:default=Exclusive
	// +optional
	Sharing Sharing `json:"sharing,omitempty"`

	// Routes of this cluster that use the service, as KIND/NAMESPACE/NAME.
	// Other clusters that share it see them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=336
	// +optional
	Routes []string `json:"routes,omitempty"`

	// RecordTags are the tags of the cluster's own service, which stands for
	// this cluster among those that share the service. The tags of the service
	// where there are none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	RecordTags []Tag `json:"recordTags,omitempty"`

	// RecordPorts are the ports of the cluster's own service: those at which
	// other clusters may reach this one. The ports of the service where there
	// are none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	RecordPorts []ServicePort `json:"recordPorts,omitempty"`

	// AutoApprove approves hosts through the API: Machines of this cluster whose
	// endpoints are to host the service, and that carry one of hostTags.
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
	// not made for this object. Refuse reports it, Adopt takes it over, unless
	// another VIPService of this cluster has it.
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

	// Endpoints is the TailscaleEndpoints whose Machine the device is. Absent for
	// others' devices.
	// +optional
	Endpoints string `json:"endpoints,omitempty"`

	// Local reports whether the device is a Machine of this cluster whose agent
	// reports the service. A shared service has hosts of other clusters, too.
	// +optional
	Local bool `json:"local,omitempty"`

	// Online reports whether the device is connected to the control server.
	Online bool `json:"online"`

	// Configured reports whether the device serves all that the service defines: its
	// state is ready, or it is a Machine of this cluster that is approved, and whose
	// agent reports that it advertises the service and that control accepted it.
	Configured bool `json:"configured"`

	// State is how far the device is with serving the service, as Tailscale's API
	// calls it. ready is the one value with a known meaning.
	// +optional
	State string `json:"state,omitempty"`

	// Approval is not-approved, approved:auto or approved:manual.
	// +optional
	Approval string `json:"approval,omitempty"`
}

// ConsumerHealth is how the machines of a cluster do that host a service.
type ConsumerHealth struct {
	// Ready is how many machines offer the service.
	Ready int32 `json:"ready"`

	// Total is how many machines are to offer it.
	Total int32 `json:"total"`

	// Score is the percentage of backends that answer, from 0 to 100.
	Score int32 `json:"score"`
}

// A ServiceConsumer is a cluster that shares a service, as its own record says.
type ServiceConsumer struct {
	// ClusterID of the cluster.
	ClusterID string `json:"clusterID"`

	// OperatorID is NAMESPACE/NAME of the VIPService in that cluster.
	// +optional
	OperatorID string `json:"operatorID,omitempty"`

	// ServiceName is the cluster's own Tailscale Service.
	ServiceName string `json:"serviceName"`

	// Addresses of the cluster's own service, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName of the cluster's own service, once the tailnet's domain is known.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Routes of the cluster that use the service.
	// +listType=atomic
	// +optional
	Routes []string `json:"routes,omitempty"`

	// Health of the cluster's machines. Absent while it has none.
	// +optional
	Health *ConsumerHealth `json:"health,omitempty"`

	// NodeIDs of the cluster's machines.
	// +listType=atomic
	// +optional
	NodeIDs []string `json:"nodeIDs,omitempty"`

	// Alive reports whether one of its machines is online or was so within the
	// last 30 minutes, or it has named none yet.
	Alive bool `json:"alive"`
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

	// Ports that the service has in the tailnet. Its hosts must serve them all.
	// +listType=atomic
	// +optional
	Ports []string `json:"ports,omitempty"`

	// Hosts of the service, by name.
	// +listType=atomic
	// +optional
	Hosts []ServiceHost `json:"hosts,omitempty"`

	// OwnServiceName is this cluster's own Tailscale Service beside a shared
	// one. It carries this cluster's record.
	// +optional
	OwnServiceName string `json:"ownServiceName,omitempty"`

	// OwnAddresses are the virtual IPs of the cluster's own service, IPv4 first.
	// +listType=atomic
	// +optional
	OwnAddresses []string `json:"ownAddresses,omitempty"`

	// OwnPorts that the cluster's own service has in the tailnet.
	// +listType=atomic
	// +optional
	OwnPorts []string `json:"ownPorts,omitempty"`

	// Owner is CLUSTER/NAMESPACE/NAME of the VIPService whose tags and ports a
	// shared service has.
	// +optional
	Owner string `json:"owner,omitempty"`

	// Consumers are the clusters that share the service, this one included, by
	// cluster ID. At most 64 are listed.
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Consumers []ServiceConsumer `json:"consumers,omitempty"`

	// ConsumerCount is how many clusters share the service.
	// +optional
	ConsumerCount *int32 `json:"consumerCount,omitempty"`

	// IgnoredRecords are services that claim to be a cluster's record and are
	// not. At most 16 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	IgnoredRecords []string `json:"ignoredRecords,omitempty"`
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
