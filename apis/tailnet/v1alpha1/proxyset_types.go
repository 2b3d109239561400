// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Direction is the direction in which a proxy carries traffic.
// +kubebuilder:validation:Enum=Ingress;Egress
type Direction string

// Directions of traffic.
const (
	// DirectionIngress is from the tailnet into the cluster.
	DirectionIngress Direction = "Ingress"
	// DirectionEgress is from the cluster into the tailnet.
	DirectionEgress Direction = "Egress"
)

// ProxySetMember is one StatefulSet of a TailscaleEndpoints.
type ProxySetMember struct {
	// Name of the StatefulSet. Its Machines are called NAME-0, NAME-1 and so on.
	Name string `json:"name"`

	Direction Direction `json:"direction"`

	// Replicas is the number of desired machines.
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// Networking of the proxies: Userspace or Kernel. Absent means unknown.
	// +kubebuilder:validation:Enum=Userspace;Kernel
	// +optional
	Networking string `json:"networking,omitempty"`
}

// ProxySetPorts are the ports at which ingress proxies may host services.
type ProxySetPorts struct {
	// All means all ports: the TailscaleEndpoints names none.
	// +optional
	All bool `json:"all,omitempty"`

	// Allowed are TCP ports. Empty means none, unless all is true.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Allowed []int32 `json:"allowed,omitempty"`

	// KeepHosted means that the proxies continue to host a service at the ports at which they
	// host it, whatever the allowed ports. These are older than their meaning for ingress, and
	// have not changed since.
	// +optional
	KeepHosted bool `json:"keepHosted,omitempty"`
}

// A ProxySetTarget is a target that the egress proxies carry traffic to.
type ProxySetTarget struct {
	// Name of the target: the name of its endpoint or of its ServiceAttachment, then a slash
	// and its port, with /udp for UDP.
	Name string `json:"name"`

	// Port of the target, which routes reference.
	Port int32 `json:"port"`

	// Protocol of the port: TCP, UDP, HTTP, HTTPS, GRPC or TLS.
	Protocol string `json:"protocol"`

	// Address is HOST:PORT of a target that is reached without a proxy. Absent for targets with
	// a proxyPort.
	// +optional
	Address string `json:"address,omitempty"`

	// ProxyPort is the port of every egress pod that leads to the target.
	// +optional
	ProxyPort int32 `json:"proxyPort,omitempty"`

	// Weight among the targets of one port.
	// +optional
	Weight int32 `json:"weight,omitempty"`
}

// A ProxySetSpec is the information about a TailscaleEndpoints that other functions need.
type ProxySetSpec struct {
	// Endpoints is the name of the TailscaleEndpoints, in the same namespace.
	Endpoints string `json:"endpoints"`

	// Tailnet is the name of the TailscaleTailnet that the proxies join.
	Tailnet string `json:"tailnet"`

	// Tags of the proxies, including the tailnet's defaults.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Sets are the StatefulSets of proxies.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Sets []ProxySetMember `json:"sets,omitempty"`

	// IngressOnRequest reports whether ingress proxies are created once a ServiceAttachment of
	// the TailscaleEndpoints needs them.
	// +optional
	IngressOnRequest bool `json:"ingressOnRequest,omitempty"`

	// IngressPorts are the ports at which the ingress proxies may host services. Absent means that
	// they are unknown, because an earlier version wrote the object. They then limit nothing.
	// +optional
	IngressPorts *ProxySetPorts `json:"ingressPorts,omitempty"`

	// Targets of egress, by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2048
	// +optional
	Targets []ProxySetTarget `json:"targets,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TAILNET",type="string",JSONPath=".spec.tailnet"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={tailscale}

// A ProxySet publishes a TailscaleEndpoints' labels and proxies to objects that select it. It
// has no status, because functions that require it run for each change.
type ProxySet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProxySetSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// ProxySetList is a list of ProxySet.
type ProxySetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProxySet `json:"items"`
}

// ProxySetKind is the kind of a ProxySet.
const ProxySetKind = "ProxySet"

func init() {
	register(&ProxySet{}, &ProxySetList{})
}
