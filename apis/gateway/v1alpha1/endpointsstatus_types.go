// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

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

	// Addresses in the tailnet, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// +optional
	TailscaleFQDN string `json:"tailscaleFQDN,omitempty"`

	// +optional
	NodeID string `json:"nodeID,omitempty"`

	// StatefulSetPod runs the machine.
	StatefulSetPod string `json:"statefulSetPod"`

	// Online reports whether the machine is connected to the control server, as Tailscale
	// tells it.
	Online bool `json:"online"`

	// Connected reports whether the machine is in the tailnet, as its own agent tells it
	// besides.
	Connected bool `json:"connected"`

	// LastSeen is when a machine that is offline was last connected. It is absent while
	// the machine is online: it would change all the time.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// An EndpointStatus is one proxy pod's health.
type EndpointStatus struct {
	// Name of the pod.
	Name string `json:"name"`

	// Type is which way the proxy carries traffic.
	// +optional
	Type ConnectionType `json:"type,omitempty"`

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

	// Message says what is missing when the proxy is not healthy.
	// +optional
	Message string `json:"message,omitempty"`

	// SickTargets are the targets that Gateways reach through this pod only when no
	// other way is left, by name. Absent unless routes name them. At most 64 are
	// listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	SickTargets []string `json:"sickTargets,omitempty"`
}

// An EndpointPort is a port of a proxy pod.
type EndpointPort struct {
	Name     string          `json:"name"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol"`
}

// An EgressTargetStatus is a target that egress proxies carry traffic to.
type EgressTargetStatus struct {
	// Name of the target: that of the endpoint, or of the ServiceAttachment, and
	// after a slash its port, for UDP with /udp.
	Name string `json:"name"`

	// Address is the target as host:port. A host that is a name is resolved in
	// the tailnet.
	Address string `json:"address"`

	// TailscaleFQDN is the name that the address is to have in the tailnet, where the
	// endpoint says both.
	// +optional
	TailscaleFQDN string `json:"tailscaleFQDN,omitempty"`

	Protocol EndpointProtocol `json:"protocol"`

	// ProxyPort is the target's port at every egress pod.
	// +optional
	ProxyPort int32 `json:"proxyPort,omitempty"`

	// Service of this namespace that any pod can use to reach the target, as
	// name:port. Absent for targets that only Gateways use.
	// +optional
	Service string `json:"service,omitempty"`

	// ReadyProxies is how many egress proxies reach the target.
	ReadyProxies int32 `json:"readyProxies"`

	// Message says what is missing when a proxy does not reach the target, or what is
	// wrong though all do.
	// +optional
	Message string `json:"message,omitempty"`
}

// A DiscoveredEndpoint is a device or a service that autoDiscovery found.
type DiscoveredEndpoint struct {
	// Name of the endpoint that it became.
	Name string `json:"name"`

	// Source is Devices or Services.
	Source string `json:"source"`

	// +optional
	TailscaleFQDN string `json:"tailscaleFQDN,omitempty"`

	// +optional
	TailscaleIP string `json:"tailscaleIP,omitempty"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// Health is Online or Offline for a device, Unknown for a service.
	// +optional
	Health string `json:"health,omitempty"`
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

	// EgressTargets are the targets that egress proxies carry traffic to.
	// +listType=map
	// +listMapKey=name
	// +optional
	EgressTargets []EgressTargetStatus `json:"egressTargets,omitempty"`

	// DiscoveredEndpoints are what autoDiscovery found.
	// +listType=map
	// +listMapKey=name
	// +optional
	DiscoveredEndpoints []DiscoveredEndpoint `json:"discoveredEndpoints,omitempty"`

	// LastSync is when what autoDiscovery found last changed, by the clock of
	// Tailscale's API.
	// +optional
	LastSync *metav1.Time `json:"lastSync,omitempty"`

	// TotalEndpoints is how many proxies are wanted.
	// +optional
	TotalEndpoints *int32 `json:"totalEndpoints,omitempty"`

	// HealthyEndpoints is how many proxies are in the tailnet.
	// +optional
	HealthyEndpoints *int32 `json:"healthyEndpoints,omitempty"`

	// Replicas that are ready in every proxy StatefulSet: the least of them. The
	// scale subresource reports it.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector of the pods by which autoscalers judge, as a string: those of the
	// one StatefulSet, or of the ingress one where there are two. Autoscalers
	// take the pods for as many as replicas says.
	// +optional
	Selector string `json:"selector,omitempty"`
}
