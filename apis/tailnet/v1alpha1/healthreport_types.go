// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HealthTier is which endpoints of a target answer.
// +kubebuilder:validation:Enum=Local;Remote;LastResort
type HealthTier string

// Tiers of endpoints.
const (
	// HealthTierLocal is those of this cluster.
	HealthTierLocal HealthTier = "Local"
	// HealthTierRemote is those of other clusters.
	HealthTierRemote HealthTier = "Remote"
	// HealthTierLastResort is any, for none is healthy.
	HealthTierLastResort HealthTier = "LastResort"
)

// A HealthReportTarget is the object that a report is of, in the same namespace.
type HealthReportTarget struct {
	// Kind is TailscaleServices or TailscaleEndpoints.
	// +kubebuilder:validation:Enum=TailscaleServices;TailscaleEndpoints
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// A SickEndpoint is an endpoint that does not answer as it should.
type SickEndpoint struct {
	// Name of its backend, of the endpoint of a TailscaleEndpoints with its port, or
	// of the ServiceAttachment that leads to another cluster.
	Name string `json:"name"`

	// Address is an IP address.
	Address string `json:"address"`

	// EndpointPort is the port at the address.
	EndpointPort int32 `json:"endpointPort"`

	// Reason in a few words, that do not change while the cause does not.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// A HealthReportPort is how the endpoints behind one port of an object fare.
type HealthReportPort struct {
	Port int32 `json:"port"`

	// Protocol that Gateways speak: http, grpc or tcp.
	Protocol string `json:"protocol"`

	// Tier that answers.
	Tier HealthTier `json:"tier"`

	// Endpoints is how many there are, and Healthy how many of them are not sick.
	Endpoints int32 `json:"endpoints"`
	Healthy   int32 `json:"healthy"`

	// Sick endpoints, by name and address. At most 32 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Sick []SickEndpoint `json:"sick,omitempty"`
}

// A HealthReportFailover is when requests to an object last went elsewhere.
type HealthReportFailover struct {
	// Failover is when a port was last left without local endpoints that answer, while all
	// ports had some before.
	Failover metav1.Time `json:"failover"`

	// Failback is when all ports last had local endpoints that answer again. Absent until
	// they have.
	// +optional
	Failback *metav1.Time `json:"failback,omitempty"`

	// Reason of the failover: what the first of the sick endpoints lacked.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
}

// A HealthReportSpec is how the endpoints behind an object fare.
type HealthReportSpec struct {
	// For is the object.
	For HealthReportTarget `json:"for"`

	// Ports that routes name.
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Ports []HealthReportPort `json:"ports,omitempty"`

	// Failover is absent until one.
	// +optional
	Failover *HealthReportFailover `json:"failover,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="KIND",type="string",JSONPath=".spec.for.kind"
// +kubebuilder:printcolumn:name="FOR",type="string",JSONPath=".spec.for.name"
// +kubebuilder:printcolumn:name="TIER",type="string",JSONPath=".spec.ports[0].tier"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={tailscale}

// A HealthReport says what the extension has found out about the endpoints of one
// object that routes name. The extension alone writes it, when an endpoint becomes
// sick or well and never for a probe, and it goes with the object. It has no status: a
// function that requires it runs for each change.
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
