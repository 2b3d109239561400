// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HealthTier is the group of a target's endpoints that receives requests.
// +kubebuilder:validation:Enum=Local;Remote;LastResort
type HealthTier string

// Tiers of endpoints.
const (
	// HealthTierLocal is the endpoints of this cluster.
	HealthTierLocal HealthTier = "Local"
	// HealthTierRemote is the endpoints of other clusters.
	HealthTierRemote HealthTier = "Remote"
	// HealthTierLastResort is all endpoints, because none is healthy.
	HealthTierLastResort HealthTier = "LastResort"
)

// A HealthReportTarget is the subject of a report, in the same namespace.
type HealthReportTarget struct {
	// Kind is TailscaleServices or TailscaleEndpoints.
	// +kubebuilder:validation:Enum=TailscaleServices;TailscaleEndpoints
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// An UnhealthyEndpoint is an unhealthy endpoint.
type UnhealthyEndpoint struct {
	// Name of the endpoint's backend, of the endpoint of a TailscaleEndpoints with its port, or
	// of the ServiceAttachment that leads to another cluster.
	Name string `json:"name"`

	// Address is an IP address.
	Address string `json:"address"`

	// EndpointPort is the port at the address.
	EndpointPort int32 `json:"endpointPort"`

	// Reason is a short description of the problem. It is constant for the same cause.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// A HealthReportPort is the health of the endpoints behind one port of an object.
type HealthReportPort struct {
	Port int32 `json:"port"`

	// Protocol that Gateways use: http, grpc or tcp.
	Protocol string `json:"protocol"`

	// Tier that receives requests.
	Tier HealthTier `json:"tier"`

	// Endpoints is the number of endpoints, and Healthy the number of healthy ones.
	Endpoints int32 `json:"endpoints"`
	Healthy   int32 `json:"healthy"`

	// UnhealthyEndpoints, by name and address. At most 32 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	UnhealthyEndpoints []UnhealthyEndpoint `json:"unhealthyEndpoints,omitempty"`
}

// A HealthReportFailover holds the times of an object's last failover and failback.
type HealthReportFailover struct {
	// Failover is the time at which a port last lost its healthy local endpoints, while all
	// ports had some before.
	Failover metav1.Time `json:"failover"`

	// Failback is the time at which all ports last had healthy local endpoints again. Absent
	// until then.
	// +optional
	Failback *metav1.Time `json:"failback,omitempty"`

	// Reason of the failover: the problem of the first unhealthy endpoint.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
}

// A HealthReportSpec is the health of the endpoints behind an object.
type HealthReportSpec struct {
	// TargetRef is the subject of the report.
	TargetRef HealthReportTarget `json:"targetRef"`

	// Ports that routes reference, and whose endpoints are probed.
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Ports []HealthReportPort `json:"ports,omitempty"`

	// Routes that lead to a TailscaleServices, as KIND/NAMESPACE/NAME: the routes of Gateways that name it, or a
	// Service that fails over to other clusters by it. The first 64 are listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=336
	// +optional
	Routes []string `json:"routes,omitempty"`

	// Failover is absent until the first failover.
	// +optional
	Failover *HealthReportFailover `json:"failover,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="KIND",type="string",JSONPath=".spec.targetRef.kind"
// +kubebuilder:printcolumn:name="TARGET",type="string",JSONPath=".spec.targetRef.name"
// +kubebuilder:printcolumn:name="TIER",type="string",JSONPath=".spec.ports[0].tier"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={tailscale}

// A HealthReport is the extension's information about the endpoints of one object that routes
// reference, and about these routes. Only the extension writes it: when the health of an endpoint or the
// routes change, not for each probe. It is deleted with the object. It has no status, because functions that require it run
// for each change.
type HealthReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HealthReportSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// HealthReportList is a list of HealthReport.
type HealthReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HealthReport `json:"items"`
}

// HealthReportKind is the kind of a HealthReport.
const HealthReportKind = "HealthReport"

func init() {
	register(&HealthReport{}, &HealthReportList{})
}
