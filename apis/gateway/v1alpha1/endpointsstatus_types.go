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

	// Type is the direction in which its proxies carry traffic.
	Type ConnectionType `json:"type"`

	// Replicas is the number of desired pods.
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of pods that are ready.
	ReadyReplicas int32 `json:"readyReplicas"`

	// Service is the headless Service that governs the StatefulSet. Prometheus scrapes its
	// ports.
	Service string `json:"service"`

	// CreatedAt is the time at which the StatefulSet was created.
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

	// StatefulSetPod is the name of the pod that runs the machine.
	StatefulSetPod string `json:"statefulSetPod"`

	// Online reports whether the machine is connected to the control server, according to
	// Tailscale's API.
	Online bool `json:"online"`

	// Connected reports whether the machine is in the tailnet, according to the agent in its
	// pod.
	Connected bool `json:"connected"`

	// LastSeen is the time at which an offline machine was last connected. It is absent while
	// the machine is online, because it would change all the time.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// A MachineStatus is one machine of a TailscaleEndpoints in the tailnet, in brief.
type MachineStatus struct {
	// Name of the machine in the tailnet: its DNS name without the tailnet's domain.
	Name string `json:"name"`

	// TailscaleIP is the machine's first address in the tailnet, IPv4 if it has one.
	// +optional
	TailscaleIP string `json:"tailscaleIP,omitempty"`

	// Connected reports whether the machine is in the tailnet, according to the agent in its
	// pod.
	Connected bool `json:"connected"`

	// StatefulSetPod is the name of the pod that runs the machine.
	StatefulSetPod string `json:"statefulSetPod"`
}

// An EndpointStatus is the health of a proxy pod.
type EndpointStatus struct {
	// Name of the pod.
	Name string `json:"name"`

	// Type is the direction in which the proxy carries traffic.
	// +optional
	Type ConnectionType `json:"type,omitempty"`

	// +optional
	TailscaleIP string `json:"tailscaleIP,omitempty"`

	// PodIP is the pod's first address in the cluster, while the proxy is healthy.
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// Ports that the pod serves while the proxy is healthy: those of its metrics at podIP, then
	// those that its agent reports: the ports of the services that an ingress pod hosts, at their
	// addresses, or the ports of an egress pod that lead to targets, at podIP. A port that several
	// services have is listed once, and of the reported ports the lowest 32.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=40
	// +optional
	Ports []EndpointPort `json:"ports,omitempty"`

	// HealthStatus is Healthy while the machine is in the tailnet, and Unhealthy otherwise.
	HealthStatus string `json:"healthStatus"`

	// Message describes the problem when the proxy is not healthy.
	// +optional
	Message string `json:"message,omitempty"`

	// UnhealthyTargets lists the names of the unhealthy targets: Gateways use this pod to reach
	// them only when no other pod can. Absent unless routes reference the object. At most 64 are
	// listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	UnhealthyTargets []string `json:"unhealthyTargets,omitempty"`
}

// An EndpointPort is a port of a proxy pod.
type EndpointPort struct {
	// Name is agent or tailscale for metrics, and otherwise PROTOCOL-PORT in lower case.
	Name string `json:"name"`

	// Port is 0 for all ports.
	Port int32 `json:"port"`

	Protocol corev1.Protocol `json:"protocol"`
}

// An EgressTargetStatus is a target that egress proxies carry traffic to.
type EgressTargetStatus struct {
	// Name of the target: the name of the endpoint or of the ServiceAttachment, then a slash
	// and its port, with /udp for UDP.
	Name string `json:"name"`

	// Address of the target as HOST:PORT. The proxies resolve a host name in the tailnet.
	Address string `json:"address"`

	// TailscaleFQDN is the expected DNS name of the address in the tailnet, when the endpoint
	// sets both.
	// +optional
	TailscaleFQDN string `json:"tailscaleFQDN,omitempty"`

	Protocol EndpointProtocol `json:"protocol"`

	// ProxyPort is the port of every egress pod that leads to the target.
	// +optional
	ProxyPort int32 `json:"proxyPort,omitempty"`

	// Service of this namespace, as NAME:PORT, that any pod can use to reach the target. Absent
	// for targets that only Gateways use.
	// +optional
	Service string `json:"service,omitempty"`

	// ReadyProxies is the number of egress proxies that reach the target.
	ReadyProxies int32 `json:"readyProxies"`

	// Message describes the problem when a proxy does not reach the target, and warnings about
	// a target that all proxies reach.
	// +optional
	Message string `json:"message,omitempty"`
}

// A DiscoveredEndpoint is a device or a service that autoDiscovery found.
type DiscoveredEndpoint struct {
	// Name of the endpoint that represents the device or service.
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

	// Tailnet is the name of the TailscaleTailnet that the proxies join if spec.tailnet names none.
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// +listType=map
	// +listMapKey=name
	// +optional
	StatefulSetRefs []StatefulSetRef `json:"statefulSetRefs,omitempty"`

	// +listType=map
	// +listMapKey=name
	// +optional
	StatefulSets []StatefulSetStatus `json:"statefulSets,omitempty"`

	// Machines are the machines in the tailnet, in brief. Devices has more about the same ones.
	// +listType=map
	// +listMapKey=statefulSetPod
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Machines []MachineStatus `json:"machines,omitempty"`

	// Devices are the machines in the tailnet.
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

	// DiscoveredEndpoints lists the devices and services that autoDiscovery found.
	// +listType=map
	// +listMapKey=name
	// +optional
	DiscoveredEndpoints []DiscoveredEndpoint `json:"discoveredEndpoints,omitempty"`

	// LastSync is the time at which the discovered endpoints last changed, by the clock of
	// Tailscale's API.
	// +optional
	LastSync *metav1.Time `json:"lastSync,omitempty"`

	// TotalEndpoints is the number of desired proxies.
	// +optional
	TotalEndpoints *int32 `json:"totalEndpoints,omitempty"`

	// HealthyEndpoints is the number of proxies that are in the tailnet.
	// +optional
	HealthyEndpoints *int32 `json:"healthyEndpoints,omitempty"`

	// Replicas is the number of ready replicas of the proxy StatefulSet that has the fewest.
	// The scale subresource reports it.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector is the label selector, as a string, that autoscalers use to find the pods: those
	// of the only StatefulSet, or of the ingress StatefulSet when there are two. Autoscalers
	// assume that it matches as many pods as replicas reports.
	// +optional
	Selector string `json:"selector,omitempty"`
}
