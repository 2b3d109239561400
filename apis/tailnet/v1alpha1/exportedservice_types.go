// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An ExportedServiceType is the type of the ServiceImport of an exported Service.
// +kubebuilder:validation:Enum=ClusterSetIP;Headless
type ExportedServiceType string

// Types of ServiceImports, as in the Multi-Cluster Services API.
const (
	ExportedServiceClusterSetIP ExportedServiceType = "ClusterSetIP"
	ExportedServiceHeadless     ExportedServiceType = "Headless"
)

// An ExportedService describes a Service for which a cluster has a ServiceExport of the
// Multi-Cluster Services API (KEP-1645).
type ExportedService struct {
	// Name of the Service and of its ServiceExport, in the namespace of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Created is when the ServiceExport was created. Where clusters export different Services, the
	// oldest ServiceExport decides.
	Created metav1.Time `json:"created"`

	// Type of the ServiceImport: Headless for a Service without a cluster IP.
	// +kubebuilder:default=ClusterSetIP
	// +optional
	Type ExportedServiceType `json:"type,omitempty"`

	// Ports of the Service.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Ports []ExportedPort `json:"ports"`

	// SessionAffinity of the Service. Absent means None.
	// +kubebuilder:validation:Enum=None;ClientIP
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// SessionAffinityTimeoutSeconds is how long the session affinity ClientIP lasts.
	// +optional
	SessionAffinityTimeoutSeconds *int32 `json:"sessionAffinityTimeoutSeconds,omitempty"`

	// InternalTrafficPolicy of the Service.
	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`

	// TrafficDistribution of the Service.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TrafficDistribution *string `json:"trafficDistribution,omitempty"`

	// Labels that the ServiceExport exports.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations that the ServiceExport exports.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// MetadataOmitted says that labels and annotations are missing because a record has no room for them.
	// +optional
	MetadataOmitted bool `json:"metadataOmitted,omitempty"`
}

// An ExportedPort is a port of an exported Service.
type ExportedPort struct {
	// Name of the port. Absent for the only port of a Service without names.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`

	// Protocol of the port. Only TCP reaches other clusters: Tailscale Services have no other one.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +kubebuilder:default=TCP
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// AppProtocol of the port, as in the Service.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	AppProtocol *string `json:"appProtocol,omitempty"`

	// Port number.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
