// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A GatewayRef names a Gateway.
type GatewayRef struct {
	// Group of the Gateway.
	// +kubebuilder:default=gateway.networking.k8s.io
	// +kubebuilder:validation:Enum=gateway.networking.k8s.io
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the Gateway.
	// +kubebuilder:default=Gateway
	// +kubebuilder:validation:Enum=Gateway
	// +optional
	Kind string `json:"kind,omitempty"`

	// Namespace of the Gateway. Absent means the object's own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
}

// A TailscaleGatewaySpec says which Gateway to share.
type TailscaleGatewaySpec struct {
	// GatewayRef names a Gateway that Envoy Gateway runs.
	GatewayRef GatewayRef `json:"gatewayRef"`
}

// A GatewayService is the Service in front of a Gateway's proxies.
type GatewayService struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// A GatewayListener is a listener of a Gateway.
type GatewayListener struct {
	Name string `json:"name"`

	// Port of the listener, which is that of the Service too.
	Port int32 `json:"port"`

	// Protocol of the listener, such as HTTP, HTTPS, TLS, TCP or UDP.
	Protocol string `json:"protocol"`

	// Hostname that the listener is for. Absent means any.
	// +optional
	Hostname string `json:"hostname,omitempty"`
}

// A GatewayStatus is what was found of a Gateway.
type GatewayStatus struct {
	// Service that Envoy Gateway made in front of the Gateway's proxies.
	Service GatewayService `json:"service"`

	// ClusterIP of the Service, if it has one.
	// +optional
	ClusterIP string `json:"clusterIP,omitempty"`

	// Listeners of the Gateway that the Service has a port for, in the Gateway's
	// order. Those of ListenerSets are not among them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Listeners []GatewayListener `json:"listeners,omitempty"`
}

// A TailscaleGatewayStatus is the observed state of a TailscaleGateway.
type TailscaleGatewayStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Gateway is what was found. Absent unless the condition GatewayValid is True.
	// +optional
	Gateway *GatewayStatus `json:"gateway,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="GATEWAY",type="string",JSONPath=".spec.gatewayRef.name"
// +kubebuilder:printcolumn:name="SERVICE",type="string",JSONPath=".status.gateway.service.name"
// +kubebuilder:printcolumn:name="VALID",type="string",JSONPath=".status.conditions[?(@.type=='GatewayValid')].status"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='GatewayValid')].reason"
// +kubebuilder:resource:scope=Namespaced,path=tailscalegateways,singular=tailscalegateway,categories={tailscale,crossplane},shortName=tsgw

// A TailscaleGateway is a Gateway of Envoy Gateway that TailscaleServices of the
// same namespace may have as their backend: it finds the Service in front of the
// Gateway's proxies.
type TailscaleGateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailscaleGatewaySpec   `json:"spec"`
	Status TailscaleGatewayStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// TailscaleGatewayList is a list of TailscaleGateways.
type TailscaleGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleGateway `json:"items"`
}
