// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A TailscaleEndpointsSpec is a group of proxies that appear as machines in a
// tailnet.
type TailscaleEndpointsSpec struct {
	// Tailnet is the name of the TailscaleTailnet to join.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; make another TailscaleEndpoints instead"
	Tailnet string `json:"tailnet"`

	// Tags of the machines, beside the tailnet's own.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Proxy says how the pods look.
	// +kubebuilder:default={}
	// +optional
	Proxy Proxy `json:"proxy,omitempty"`
}

// A StatefulSetRef is one StatefulSet of a TailscaleEndpoints.
type StatefulSetRef struct {
	Name            string         `json:"name"`
	Namespace       string         `json:"namespace"`
	ConnectionType  ConnectionType `json:"connectionType"`
	ReadyReplicas   int32          `json:"readyReplicas"`
	DesiredReplicas int32          `json:"desiredReplicas"`
}

// A StatefulSetStatus is one StatefulSet of a TailscaleEndpoints.
type StatefulSetStatus struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`

	// Type is which way its proxies carry traffic.
	Type ConnectionType `json:"type"`

	// Replicas that are wanted.
	Replicas int32 `json:"replicas"`

	// ReadyReplicas are the pods that are ready.
	ReadyReplicas int32 `json:"readyReplicas"`

	// Service is the headless Service that governs the StatefulSet. Its ports
	// are those that metrics are scraped from.
	Service string `json:"service"`

	// CreatedAt is when the StatefulSet was made.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
}

// A DeviceStatus is one machine of a TailscaleEndpoints in the tailnet.
type DeviceStatus struct {
	// Hostname in the tailnet.
	Hostname string `json:"hostname"`

	// +optional
	TailscaleIP string `json:"tailscaleIP,omitempty"`

	// +optional
	TailscaleFQDN string `json:"tailscaleFQDN,omitempty"`

	// +optional
	NodeID string `json:"nodeID,omitempty"`

	// StatefulSetPod runs the machine.
	StatefulSetPod string `json:"statefulSetPod"`

	// Online tells whether the machine is connected to the control server.
	Online bool `json:"online"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// An EndpointStatus is one proxy pod's health.
type EndpointStatus struct {
	// Name of the pod.
	Name string `json:"name"`

	// +optional
	TailscaleIP string `json:"tailscaleIP,omitempty"`

	// PodIP is the pod's first address in the cluster, while the proxy is healthy.
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// Ports that the pod serves at podIP.
	// +listType=map
	// +listMapKey=name
	// +optional
	Ports []EndpointPort `json:"ports,omitempty"`

	// HealthStatus is Healthy when the machine is in the tailnet, else Unhealthy.
	HealthStatus string `json:"healthStatus"`

	// Message tells what is missing when the proxy is not healthy.
	// +optional
	Message string `json:"message,omitempty"`
}

// An EndpointPort is a port of a proxy pod.
type EndpointPort struct {
	Name     string          `json:"name"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol"`
}

// A TailscaleEndpointsStatus is the observed state of a TailscaleEndpoints.
type TailscaleEndpointsStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// +listType=map
	// +listMapKey=name
	// +optional
	StatefulSetRefs []StatefulSetRef `json:"statefulSetRefs,omitempty"`

	// +listType=map
	// +listMapKey=name
	// +optional
	StatefulSets []StatefulSetStatus `json:"statefulSets,omitempty"`

	// +listType=map
	// +listMapKey=statefulSetPod
	// +optional
	Devices []DeviceStatus `json:"devices,omitempty"`

	// +listType=map
	// +listMapKey=name
	// +optional
	EndpointStatus []EndpointStatus `json:"endpointStatus,omitempty"`

	// TotalEndpoints is how many proxies are wanted.
	// +optional
	TotalEndpoints *int32 `json:"totalEndpoints,omitempty"`

	// HealthyEndpoints is how many proxies are in the tailnet.
	// +optional
	HealthyEndpoints *int32 `json:"healthyEndpoints,omitempty"`

	// Replicas that are ready in each proxy StatefulSet. The scale subresource
	// reports it.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector of the pods that replicas counts, as a string. Autoscalers find
	// the pods by it.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.proxy.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TAILNET",type="string",JSONPath=".spec.tailnet"
// +kubebuilder:printcolumn:name="HEALTHY",type="integer",JSONPath=".status.healthyEndpoints"
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.totalEndpoints"
// +kubebuilder:printcolumn:name="DEVICES",type="string",JSONPath=".status.devices[*].hostname"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='StatefulSetsReady')].reason"
// +kubebuilder:resource:scope=Namespaced,path=tailscaleendpoints,singular=tailscaleendpoint,categories={tailscale,crossplane},shortName=tsep

// A TailscaleEndpoints is a group of proxies, each a machine in a tailnet.
type TailscaleEndpoints struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailscaleEndpointsSpec   `json:"spec"`
	Status TailscaleEndpointsStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// TailscaleEndpointsList is a list of TailscaleEndpoints.
type TailscaleEndpointsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleEndpoints `json:"items"`
}
