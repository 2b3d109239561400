// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// SelectedHealth counts the machines of a TailscaleEndpoints.
type SelectedHealth struct {
	// HealthyMachines is the number of machines that host the service.
	HealthyMachines int32 `json:"healthyMachines"`

	// UnhealthyMachines is the number of the other machines that should host it.
	UnhealthyMachines int32 `json:"unhealthyMachines"`

	// UnhealthyRemotePaths is the number of unhealthy connections from the TailscaleEndpoints to
	// other clusters. Gateways use them only when no healthy one is left.
	// +optional
	UnhealthyRemotePaths int32 `json:"unhealthyRemotePaths,omitempty"`
}

// MachineNames are names of machines. Objects that an earlier version wrote have a number instead,
// which counts as none. The schema has no type for it, because server-side apply refuses each change of
// an object with a value of another type than the schema's (sigs.k8s.io/structured-merge-diff
// v6 typed/typed.go, ObjectToTyped of the live object), and so would Crossplane stop.
type MachineNames []string

// UnmarshalJSON decodes a list of names.
func (n *MachineNames) UnmarshalJSON(b []byte) error {
	var names []string
	if err := json.Unmarshal(b, &names); err == nil {
		*n = names
		return nil
	}
	var number int64
	*n = nil
	return json.Unmarshal(b, &number)
}

// A SelectedEndpoints is a TailscaleEndpoints that the selector matches.
type SelectedEndpoints struct {
	Name string `json:"name"`

	// Namespace of the TailscaleEndpoints, which is the object's.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Machines are the names in the tailnet of the machines that host the service, sorted: DNS
	// names without the tailnet's domain. At most 128 are listed.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Machines MachineNames `json:"machines,omitempty"`

	// Status is Ready when a machine hosts the service, and otherwise Pending, or NotAllowed if
	// spec.ports of the TailscaleEndpoints lacks a port of the service.
	// +optional
	Status string `json:"status,omitempty"`

	// HealthStatus counts the machines.
	// +optional
	HealthStatus SelectedHealth `json:"healthStatus,omitempty"`
}

// A ServiceVIPStatus is the observed state of the Tailscale Service.
type ServiceVIPStatus struct {
	Created     bool   `json:"created"`
	ServiceName string `json:"serviceName"`

	// Addresses of the service, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName is the DNS name of the service in the tailnet.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// BackendCount is the number of machines that should host the service.
	BackendCount int32 `json:"backendCount"`

	// HealthyBackendCount is the number of machines that host it.
	HealthyBackendCount int32 `json:"healthyBackendCount"`
}

// A VIPServiceStatus is the observed state of the Tailscale Service, in brief.
type VIPServiceStatus struct {
	// Addresses of the service, IPv4 first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=45
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName is the DNS name of the service in the tailnet.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// BackendCount is the number of machines that should host the service.
	BackendCount int32 `json:"backendCount"`

	// HealthyBackends is the number of machines that host it.
	HealthyBackends int32 `json:"healthyBackends"`
}

// RemoteHealth is the health of another cluster's machines that host the service.
type RemoteHealth struct {
	// Ready is the number of machines that offer the service.
	Ready int32 `json:"ready"`

	// Total is the number of machines that should offer it.
	Total int32 `json:"total"`

	// Score is the percentage of healthy backends, from 0 to 100.
	Score int32 `json:"score"`
}

// A RemoteCluster is another cluster that shares the service, according to its record in the
// tailnet.
type RemoteCluster struct {
	// ClusterID of the cluster.
	ClusterID string `json:"clusterID"`

	// ServiceName is the name of the Tailscale Service that leads to that cluster alone.
	ServiceName string `json:"serviceName"`

	// Addresses of the cluster's service, IPv4 first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName is the DNS name of the cluster's service in the tailnet.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Health of the cluster's machines. Absent while it has none.
	// +optional
	Health *RemoteHealth `json:"health,omitempty"`

	// Draining reports that the cluster hands the service to others.
	// +optional
	Draining bool `json:"draining,omitempty"`

	// Online reports whether one of the cluster's machines is online or was online within the
	// last 30 minutes, or the cluster has listed no machine yet.
	Online bool `json:"online"`
}

// A DiscoveredService is a service of the tailnet that serviceDiscovery found.
type DiscoveredService struct {
	// Name of the service, with svc:.
	Name string `json:"name"`

	// DNSName is the DNS name of the service. Absent until the tailnet's domain is known.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Addresses of the service, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// Ports of the service.
	// +listType=atomic
	// +optional
	Ports []string `json:"ports,omitempty"`

	// Tags of the service.
	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// An UnhealthyEndpoint is an unhealthy endpoint. Gateways use it only when no healthy one is left.
type UnhealthyEndpoint struct {
	// Name of the endpoint's backend, or of the ServiceAttachment that leads to another
	// cluster.
	Name string `json:"name"`

	// Address of the endpoint as HOST:PORT.
	Address string `json:"address"`

	// Reason is a short description of the problem.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// A FailoverStatus holds the times of the last failover and failback, by the clock of the
// extension. It changes only with the next one.
type FailoverStatus struct {
	// LastFailover is the time at which a port last lost its local backends, so that requests
	// moved to other clusters or to the endpoints of last resort.
	// +optional
	LastFailover *metav1.Time `json:"lastFailover,omitempty"`

	// LastFailback is the time at which all ports last had local backends again.
	// +optional
	LastFailback *metav1.Time `json:"lastFailback,omitempty"`

	// FailoverReason of the last failover: the problem of the first unhealthy endpoint.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	FailoverReason string `json:"failoverReason,omitempty"`
}

// A LoadBalancingStatus is the health of the endpoints to which Gateways send requests, as the
// extension's probes report it. It changes when the health of an endpoint changes.
type LoadBalancingStatus struct {
	// ActiveTier is the tier that receives requests: Local for backends of this cluster, Remote
	// for other clusters, LastResort when no endpoint is healthy. With several ports, it is the
	// worst of them.
	ActiveTier string `json:"activeTier"`

	// Endpoints is the number of pods and of connections to other clusters, summed over the
	// ports that routes reference.
	Endpoints int32 `json:"endpoints"`

	// HealthyEndpoints is the number of healthy endpoints.
	HealthyEndpoints int32 `json:"healthyEndpoints"`

	// UnhealthyEndpoints lists unhealthy endpoints by name and address. At most 16 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	UnhealthyEndpoints []UnhealthyEndpoint `json:"unhealthyEndpoints,omitempty"`

	// FailoverStatus is absent until the first failover.
	// +optional
	FailoverStatus *FailoverStatus `json:"failoverStatus,omitempty"`
}

// A TailscaleServicesStatus is the observed state of a TailscaleServices.
type TailscaleServicesStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// +listType=map
	// +listMapKey=name
	// +optional
	SelectedEndpoints []SelectedEndpoints `json:"selectedEndpoints,omitempty"`

	// VIPService is the state of the Tailscale Service, in brief. Absent until it has an address.
	// +optional
	VIPService *VIPServiceStatus `json:"vipService,omitempty"`

	// VIPServiceStatus is the state of the Tailscale Service.
	// +optional
	VIPServiceStatus *ServiceVIPStatus `json:"vipServiceStatus,omitempty"`

	// TotalBackends is the number of machines that should host the service.
	// +optional
	TotalBackends *int32 `json:"totalBackends,omitempty"`

	// HealthyBackends is the number of machines that host it.
	// +optional
	HealthyBackends *int32 `json:"healthyBackends,omitempty"`

	// LoadBalancingStatus is absent unless routes reference the object.
	// +optional
	LoadBalancingStatus *LoadBalancingStatus `json:"loadBalancingStatus,omitempty"`

	// Routes of Gateways that lead to the service, as KIND/NAMESPACE/NAME: those that name this object, and
	// those to a Service that fail over to other clusters by it. The first 64 are listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=336
	// +optional
	Routes []string `json:"routes,omitempty"`

	// ClusterSet is the set of clusters that share the service. Absent if it belongs to this cluster
	// alone, or sharing is Shared.
	// +optional
	ClusterSet string `json:"clusterSet,omitempty"`

	// ClusterCount is the number of clusters that share the service, including this one. Absent
	// if it belongs to this cluster alone.
	// +optional
	ClusterCount *int32 `json:"clusterCount,omitempty"`

	// RemoteClusters lists the other clusters that share the service, by cluster ID. At most 64
	// are listed.
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	// +optional
	RemoteClusters []RemoteCluster `json:"remoteClusters,omitempty"`

	// DiscoveredServices lists the services that serviceDiscovery found, by name. At most 100
	// are listed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	DiscoveredServices []DiscoveredService `json:"discoveredServices,omitempty"`
}
