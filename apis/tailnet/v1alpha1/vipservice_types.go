// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A ServiceName is the name of a Tailscale Service: svc: and a DNS label
// (tailcfg.ServiceName).
// +kubebuilder:validation:MaxLength=67
// +kubebuilder:validation:XValidation:rule="self.matches('^svc:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="must be svc: followed by a DNS label of lower-case letters, digits and dashes"
// +kubebuilder:validation:XValidation:rule="!(self in ['svc:localhost', 'svc:wpad', 'svc:autoconfig', 'svc:isatap', 'svc:teredo', 'svc:autorouter'])",message="is a reserved name with a special meaning for resolvers or clients; choose another"
type ServiceName string

// A ServicePort is a port of a Tailscale Service: tcp:PORT, or do-not-validate. Services
// support only TCP ports.
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:XValidation:rule="self == 'do-not-validate' || (self.matches('^tcp:[1-9][0-9]{0,4}$') && int(self.substring(4)) <= 65535)",message="must be tcp:PORT with PORT from 1 to 65535, or do-not-validate; Tailscale Services support only TCP ports"
type ServicePort string

// ServicePortAll stands for all ports.
const ServicePortAll ServicePort = "do-not-validate"

// ServicePortOf returns the port of an attachment as a service has it. 0 stands for all ports.
func ServicePortOf(port int32) ServicePort {
	if port == 0 {
		return ServicePortAll
	}
	return ServicePort(fmt.Sprintf("tcp:%d", port))
}

// Number returns the number of a port tcp:PORT, and false for anything else: all ports, and what pods
// write, which the API server does not check.
func (p ServicePort) Number() (int32, bool) {
	number, ok := strings.CutPrefix(string(p), "tcp:")
	n, err := strconv.ParseUint(number, 10, 16)
	return int32(n), ok && err == nil && n > 0
}

// An AdoptionPolicy decides about an existing object that the managed resource did not create.
// +kubebuilder:validation:Enum=Refuse;Adopt
type AdoptionPolicy string

// Adoption policies.
const (
	AdoptionPolicyRefuse AdoptionPolicy = "Refuse"
	AdoptionPolicyAdopt  AdoptionPolicy = "Adopt"
)

// A VIPServiceDeletionPolicy decides what happens to a service when its object is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type VIPServiceDeletionPolicy string

// Deletion policies of services.
const (
	VIPServiceDelete VIPServiceDeletionPolicy = "Delete"
	VIPServiceRetain VIPServiceDeletionPolicy = "Retain"
)

// Sharing decides whether several clusters may define one service.
// +kubebuilder:validation:Enum=Exclusive;Shared;ClusterSet
type Sharing string

// Sharing modes.
const (
	SharingExclusive  Sharing = "Exclusive"
	SharingShared     Sharing = "Shared"
	SharingClusterSet Sharing = "ClusterSet"
)

// IsShared reports whether other clusters may also define the service.
func (s Sharing) IsShared() bool { return s == SharingShared || s == SharingClusterSet }

// VIPServiceParameters are the desired state of a Tailscale Service.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.sharing) || oldSelf.sharing == 'Exclusive' || (has(self.sharing) && self.sharing != 'Exclusive')",message="sharing cannot go back from Shared or ClusterSet to Exclusive; delete this VIPService and create another"
type VIPServiceParameters struct {
	// Name of the service in the tailnet. It is the external name.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another VIPService instead"
	Name ServiceName `json:"name"`

	// DisplayName is the name that Tailscale's admin console shows instead of the service's
	// name.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// Comment is the comment that Tailscale's admin console shows.
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

	// Annotations to set on the service. Annotations of the provider and of others are kept. An
	// annotation that is removed here is removed from the service.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && !k.startsWith('gateway.tailscale.com/') && k != 'tailscale.com/owner-references')",message="keys must be at most 128 characters long, not begin with gateway.tailscale.com/ and not be tailscale.com/owner-references: the provider manages those"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Sharing is Exclusive (the default) for a service that belongs to this cluster alone, or
	// Shared for a service that several clusters define together, each with a VIPService of the
	// same forProvider.name and with sharing Shared. ClusterSet limits this to the clusters whose
	// provider configs name the same clusterSet, and to VIPServices of the same namespace and name.
	// The service exists until the last of them is deleted. Tags, ports, display name, comment and
	// annotations are those of the cluster that created it. If another cluster specifies other
	// tags, ports or another clusterSet, it and the creating cluster have the condition Conflict.
	// Exclusive can be changed to Shared and to ClusterSet, but not back.
	// +kubebuilder:default=Exclusive
	// +optional
	Sharing Sharing `json:"sharing,omitempty"`

	// Drain hands a service that clusters share to the other clusters: once a host of one of them, which
	// does not drain, is known to serve all ports, this cluster's machines withdraw the service. They
	// serve again when no such host is left, and when Drain is removed. The condition Drained reports
	// the progress.
	// +optional
	Drain bool `json:"drain,omitempty"`

	// Fencing withdraws the approval of a host that a majority of other machines has lost, so that
	// Tailscale moves the service to another host within seconds, instead of minutes after a node
	// failed. Machines on other Kubernetes nodes, and those of other clusters that share the service
	// and have fencing, watch each host. The condition FencingReady reports whether they can.
	// Experimental, and not yet measured in a real tailnet.
	// +optional
	Fencing bool `json:"fencing,omitempty"`

	// Routes of this cluster that use the service, as KIND/NAMESPACE/NAME. Other clusters that
	// share the service can read them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=336
	// +optional
	Routes []string `json:"routes,omitempty"`

	// Export describes the Service of this cluster in its record, for the clusters of the set that import
	// it by the Multi-Cluster Services API.
	// +optional
	Export *ExportedService `json:"export,omitempty"`

	// RecordTags are the tags of the cluster's service, which represents this cluster among the
	// clusters that share the service. Absent means the tags of the service.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	RecordTags []Tag `json:"recordTags,omitempty"`

	// RecordPorts are the ports of the cluster's service, on which other clusters can reach
	// this one. Absent means the ports of the service.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	RecordPorts []ServicePort `json:"recordPorts,omitempty"`

	// AutoApprove approves hosts through Tailscale's API: Machines of this cluster whose
	// endpoints should host the service, and that have one of hostTags.
	// +kubebuilder:default=true
	// +optional
	AutoApprove *bool `json:"autoApprove,omitempty"`

	// HostTags limit the hosts that autoApprove approves. If there are none, nothing is
	// approved.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	HostTags []Tag `json:"hostTags,omitempty"`

	// AdoptionPolicy decides about an existing service with this name that this object did not
	// create. Refuse reports an error. Adopt takes the service over, unless it belongs to
	// another VIPService of this cluster.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// DeletionPolicy decides what happens to the service when this object is deleted. Delete
	// deletes it, unless other clusters share it. Retain keeps the service with its name and
	// addresses, without hosts: an object of the same cluster ID, namespace and name gets it
	// back, and another one takes it over with adoptionPolicy Adopt.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy VIPServiceDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// A ServiceHost is a device that offers to host a service.
type ServiceHost struct {
	// NodeID is the device's stable node ID.
	NodeID string `json:"nodeID"`

	// Name is the device's name in the tailnet.
	// +optional
	Name string `json:"name,omitempty"`

	// Endpoints is the name of the TailscaleEndpoints whose Machine the device is. Absent for
	// other devices.
	// +optional
	Endpoints string `json:"endpoints,omitempty"`

	// Local reports whether the device is a Machine of this cluster whose agent
	// reports the service. A shared service has hosts of other clusters, too.
	// +optional
	Local bool `json:"local,omitempty"`

	// Online reports whether the device is connected to the control server.
	Online bool `json:"online"`

	// Configured reports whether the device serves all ports of the service: its state is
	// ready, or it is an approved Machine of this cluster whose agent reports that it
	// advertises the service and that the control server accepted it.
	Configured bool `json:"configured"`

	// State is the device's progress in serving the service, as Tailscale's API reports it.
	// Only the value ready has a known meaning.
	// +optional
	State string `json:"state,omitempty"`

	// Approval is not-approved, approved:auto or approved:manual.
	// +optional
	Approval string `json:"approval,omitempty"`

	// Fenced reports that a cluster has withdrawn the approval, because machines have lost the device.
	// +optional
	Fenced bool `json:"fenced,omitempty"`
}

// Approved reports whether the tailnet permits the device to host the service.
func (h ServiceHost) Approved() bool { return strings.HasPrefix(h.Approval, "approved") }

// Serves reports whether the device receives the service's traffic.
func (h ServiceHost) Serves() bool { return h.Online && h.Configured && h.Approved() && !h.Fenced }

// ConsumerHealth is the health of a cluster's machines that host a service.
type ConsumerHealth struct {
	// Ready is the number of machines that offer the service.
	Ready int32 `json:"ready"`

	// Total is the number of machines that should offer it.
	Total int32 `json:"total"`

	// Score is the percentage of healthy backends, from 0 to 100.
	Score int32 `json:"score"`
}

// A ServiceConsumer is a cluster that shares a service, according to its record.
type ServiceConsumer struct {
	// ClusterID of the cluster.
	ClusterID string `json:"clusterID"`

	// OperatorID is NAMESPACE/NAME of the VIPService in that cluster.
	// +optional
	OperatorID string `json:"operatorID,omitempty"`

	// ClusterSet is the set of clusters for which the VIPService in that cluster shares the service.
	// Absent means any cluster.
	// +optional
	ClusterSet string `json:"clusterSet,omitempty"`

	// ServiceName is the name of the cluster's Tailscale Service.
	ServiceName string `json:"serviceName"`

	// Addresses of the cluster's service, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName is the DNS name of the cluster's service. Absent until the tailnet's domain is
	// known.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Draining reports that the cluster hands the service to others.
	// +optional
	Draining bool `json:"draining,omitempty"`

	// Fencing reports that the cluster watches the hosts of the service.
	// +optional
	Fencing bool `json:"fencing,omitempty"`

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

	// Online reports whether one of the cluster's machines is online or was online within the
	// last 30 minutes, or the cluster has listed no machine yet.
	Online bool `json:"online"`
}

// A RemedyAction is what a machine does so that control chooses a primary host.
// +kubebuilder:validation:Enum=Advertise;Restart
type RemedyAction string

// Actions of a RoutingRemedy.
const (
	// RemedyActionAdvertise withdraws the service for a few seconds and advertises it again.
	RemedyActionAdvertise RemedyAction = "Advertise"
	// RemedyActionRestart withdraws all services of the machine, and restarts its tailscaled after
	// clients have moved to other machines.
	RemedyActionRestart RemedyAction = "Restart"
)

// A RoutingRemedy is an attempt to make control choose a primary host of a service.
type RoutingRemedy struct {
	Action RemedyAction `json:"action"`

	// Machine whose agent acts. Absent if no machine could restart without interrupting
	// another service.
	// +optional
	Machine string `json:"machine,omitempty"`

	// Time of the attempt.
	Time metav1.Time `json:"time"`

	// Restarted is when the provider last requested the restart of a machine for this service.
	// +optional
	Restarted *metav1.Time `json:"restarted,omitempty"`
}

// A HostFence keeps a host from serving, because other machines have lost it.
type HostFence struct {
	// NodeID is the stable node ID of the host.
	NodeID string `json:"nodeID"`

	// ClusterID of the provider that withdrew the approval of the host.
	ClusterID string `json:"clusterID"`

	// Message says which machines have lost the host.
	// +optional
	Message string `json:"message,omitempty"`

	// Deadline is when the host may serve again at the latest. It may earlier, once it answers.
	Deadline metav1.Time `json:"deadline"`
}

// A VIPServiceObservation is what Tailscale reports of a service.
type VIPServiceObservation struct {
	// +optional
	Name string `json:"name,omitempty"`

	// Addresses are the service's virtual IP addresses, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName is the DNS name of the service. Absent until the tailnet's domain is known.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Ports of the service in the tailnet. Its hosts must serve them all.
	// +listType=atomic
	// +optional
	Ports []string `json:"ports,omitempty"`

	// Hosts of the service, by name.
	// +listType=atomic
	// +optional
	Hosts []ServiceHost `json:"hosts,omitempty"`

	// PrimaryRoutesSeen reports whether a machine of this cluster was primary for the service, as
	// control reports it. Only where that was seen, the absence of a primary host is acted on.
	// +optional
	PrimaryRoutesSeen bool `json:"primaryRoutesSeen,omitempty"`

	// RoutingRemedy is the last attempt to make control choose a primary host. Absent if there was
	// none.
	// +optional
	RoutingRemedy *RoutingRemedy `json:"routingRemedy,omitempty"`

	// Fence is the host from which this cluster has withdrawn the approval. Absent if there is none.
	// +optional
	Fence *HostFence `json:"fence,omitempty"`

	// OwnServiceName is the name of this cluster's Tailscale Service beside a shared one. It
	// carries this cluster's record.
	// +optional
	OwnServiceName string `json:"ownServiceName,omitempty"`

	// OwnAddresses are the virtual IP addresses of the cluster's service, IPv4 first.
	// +listType=atomic
	// +optional
	OwnAddresses []string `json:"ownAddresses,omitempty"`

	// OwnPorts are the ports of the cluster's service in the tailnet.
	// +listType=atomic
	// +optional
	OwnPorts []string `json:"ownPorts,omitempty"`

	// Owner is CLUSTER/NAMESPACE/NAME of the VIPService that defines the tags and ports of a
	// shared service.
	// +optional
	Owner string `json:"owner,omitempty"`

	// Consumers are the clusters that share the service, including this one, by cluster ID. At
	// most 64 are listed.
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Consumers []ServiceConsumer `json:"consumers,omitempty"`

	// ConsumerCount is the number of clusters that share the service.
	// +optional
	ConsumerCount *int32 `json:"consumerCount,omitempty"`

	// IgnoredRecords are services that claim to be a cluster's record and are not. At most 16
	// are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	IgnoredRecords []string `json:"ignoredRecords,omitempty"`
}

// A VIPServiceSpec is the desired state of a VIPService.
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

// A VIPService is a Tailscale Service: a name and a pair of virtual IP addresses that tagged
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

// VIPServiceKind is the kind of a VIPService.
const VIPServiceKind = "VIPService"

// VIPServiceGroupVersionKind is the GroupVersionKind of the kind.
var VIPServiceGroupVersionKind = SchemeGroupVersion.WithKind(VIPServiceKind)

func init() {
	register(&VIPService{}, &VIPServiceList{})
}
