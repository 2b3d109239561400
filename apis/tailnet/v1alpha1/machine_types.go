// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// MachineParameters are the desired state of a tailnet node that the provider runs.
type MachineParameters struct {
	// Hostname that the node requests. Tailscale appends -1, -2 and so on if it is taken.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Hostname string `json:"hostname"`

	// Tags of the node's auth key, in addition to those of the provider config. A node must
	// have a tag to host services.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// AcceptRoutes makes the node use the routes of subnet routers.
	// +optional
	AcceptRoutes bool `json:"acceptRoutes,omitempty"`

	// StaticEndpoints are addresses with ports, such as 198.51.100.7:31641, that the node
	// announces to its peers in addition to those that it finds.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	StaticEndpoints []string `json:"staticEndpoints,omitempty"`
}

// A MachineObservation is what Tailscale and the node's state Secret report.
type MachineObservation struct {
	// NodeID is the device's stable node ID, for information only, because pods can write a
	// status. The provider uses the annotation gateway.tailscale.com/node-id, which pods cannot
	// write.
	// +optional
	NodeID string `json:"nodeID,omitempty"`

	// Name is the device's DNS name in the tailnet.
	// +optional
	Name string `json:"name,omitempty"`

	// +optional
	Hostname string `json:"hostname,omitempty"`

	// Addresses of the device in the tailnet, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`

	// Online reports whether the device is connected to the control server.
	// +optional
	Online *bool `json:"online,omitempty"`

	// LastSeen is the time at which the device was last connected, according to Tailscale. It
	// is set only for an offline device, because it would change all the time otherwise.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// Authorized reports whether the device was approved, by an administrator or by its key.
	// +optional
	Authorized *bool `json:"authorized,omitempty"`

	// KeyIssued reports whether the config Secret holds an auth key for the node's next login.
	// +optional
	KeyIssued bool `json:"keyIssued,omitempty"`
}

// Routing reports whether control has made a host of a service primary: only then clients have a
// route to the service.
// +kubebuilder:validation:Enum="True";"False";Unknown
type Routing string

// Values of Routing.
const (
	// RoutingTrue means that the machine, or a connected device that it sees, is primary.
	RoutingTrue Routing = "True"
	// RoutingFalse means that the machine has seen no primary host for a minute, although it
	// advertises the service and is accepted.
	RoutingFalse Routing = "False"
	// RoutingUnknown means that the machine cannot say yet.
	RoutingUnknown Routing = "Unknown"
)

// A HostedService is the state of one Tailscale Service on one machine, as the machine's agent
// reports it.
type HostedService struct {
	// Name of the Tailscale Service.
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// Advertised reports whether the agent advertises the service to the control server. It
	// does so only while a backend is healthy.
	Advertised bool `json:"advertised"`

	// Accepted reports whether the control server assigned the service to this machine. If it is
	// false and the machine has acceptanceUnknown, this is not known.
	Accepted bool `json:"accepted"`

	// Routed reports whether a host of the service is primary, according to the machine's network
	// map. It does not change while control moves the addresses from one host to another. Absent
	// if tailscaled or the agent does not report it.
	// +optional
	Routed Routing `json:"routed,omitempty"`

	// Readvertisements counts how often the agent withdrew the service for a few seconds and
	// advertised it again, because the control server had not accepted the machine. An approval
	// may take effect only when a machine advertises again.
	// +optional
	Readvertisements int32 `json:"readvertisements,omitempty"`

	// HealthyBackends is the number of healthy backends.
	HealthyBackends int32 `json:"healthyBackends"`

	// TotalBackends is the number of probed backends.
	TotalBackends int32 `json:"totalBackends"`

	// Ports that the machine serves, as tcp:PORT or do-not-validate. Absent means that the agent
	// does not report them, or serves none.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=15
	// +optional
	Ports []string `json:"ports,omitempty"`

	// UnhealthyPorts are ports whose backend does not answer.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=15
	// +optional
	UnhealthyPorts []string `json:"unhealthyPorts,omitempty"`

	// Reason why the service is not advertised, if the cause is its certificate: HTTPSDisabled,
	// CertificateNotIssued, CertificateLimited, CertificateNoSpace or CertificateNotUsable.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message describes why the service is not advertised or not accepted.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
}

// An EgressPort is a port of the machine's pod that leads to a target in the
// tailnet.
type EgressPort struct {
	// Port of the pod.
	Port int32 `json:"port"`

	// Protocol is TCP or UDP.
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol corev1.Protocol `json:"protocol"`

	// Target of the port, by its key in the egress ConfigMap. The port cannot be given to
	// another target while a machine reports it.
	// +kubebuilder:validation:MaxLength=512
	Target string `json:"target"`

	// Ready reports whether a device of the tailnet has the target's address, and the target
	// answers and passes its health check, if it has one.
	Ready bool `json:"ready"`

	// Message describes why the port is not ready, or a warning about a ready port. It is
	// truncated if there are many.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Message string `json:"message,omitempty"`
}

// A NetworkProblem is a problem of Kernel networking on the node of a machine's pod.
type NetworkProblem struct {
	// Reason is NoTunDevice, NotForwarding or ForwardedPacketsDropped.
	// +kubebuilder:validation:Enum=NoTunDevice;NotForwarding;ForwardedPacketsDropped
	Reason string `json:"reason"`

	// Message describes the problem and what to do.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// A WatchState says whether a machine reaches a host that it watches.
// +kubebuilder:validation:Enum=Alive;Lost;Returning
type WatchState string

// Values of WatchState.
const (
	// WatchStateAlive means that the host answers.
	WatchStateAlive WatchState = "Alive"
	// WatchStateLost means that the host answered before, and has not for three seconds.
	WatchStateLost WatchState = "Lost"
	// WatchStateReturning means that a lost host has answered again, for less than ten seconds.
	WatchStateReturning WatchState = "Returning"
)

// A WatchedHost is a host of a Tailscale Service that a machine watches by disco pings, because the
// service has fencing.
type WatchedHost struct {
	// NodeID is the stable node ID of the host.
	// +kubebuilder:validation:MaxLength=64
	NodeID string `json:"nodeID"`

	// State is absent until the host has answered once: the policy file may not let the machine see it.
	// +optional
	State WatchState `json:"state,omitempty"`
}

// A MachineAgentStatus is the report of the machine's agent. It contains state changes, not
// probes.
type MachineAgentStatus struct {
	// PodIP of the pod that runs the machine.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// NodeName is the Kubernetes node of the pod.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// LoginError describes why the machine cannot log in to the tailnet, or why it has not started
	// yet. It is empty while the machine is in the tailnet.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	LoginError string `json:"loginError,omitempty"`

	// Network is a problem of the pod's Kernel networking. Absent means that none is known.
	// +optional
	Network *NetworkProblem `json:"network,omitempty"`

	// TailscaledVersion is the version that the pod's tailscaled reports.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TailscaledVersion string `json:"tailscaledVersion,omitempty"`

	// Polled reports that the agent requests the status of tailscaled every few seconds, because
	// it cannot read the notifications of this version. Changes then take effect some seconds
	// later.
	// +optional
	Polled bool `json:"polled,omitempty"`

	// StoppingSince is since when the pod is being stopped and keeps services advertised until
	// another host has them. Absent while it is not.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +optional
	StoppingSince *metav1.Time `json:"stoppingSince,omitempty"`

	// AcceptanceUnknown reports that tailscaled does not report whether the control server has
	// assigned the services that are not accepted. Such a service may work.
	// +optional
	AcceptanceUnknown bool `json:"acceptanceUnknown,omitempty"`

	// Services that the machine should host, by name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4096
	// +optional
	Services []HostedService `json:"services,omitempty"`

	// PrimaryRoutesSeen reports whether control has reported at least once that this machine is
	// primary for a service. In a tailnet where control does not report that, the absence of a
	// primary host means nothing.
	// +optional
	PrimaryRoutesSeen bool `json:"primaryRoutesSeen,omitempty"`

	// Paths to the peers with which the machine has exchanged traffic lately.
	// +optional
	Paths *MachinePaths `json:"paths,omitempty"`

	// Watches are the hosts of services with fencing that the machine watches, by node ID. Experimental.
	// +listType=map
	// +listMapKey=nodeID
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Watches []WatchedHost `json:"watches,omitempty"`

	// EgressConfig is the revision of the egress ConfigMap that the ports belong to.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	EgressConfig string `json:"egressConfig,omitempty"`

	// Egress lists the ports of the pod that lead into the tailnet, one entry for each port and
	// protocol. The list is atomic, because the field ownership of each entry would be as long
	// as the entry.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +optional
	Egress []EgressPort `json:"egress,omitempty"`
}

// MachinePaths count the peers of a machine by their path. The agent counts every five minutes,
// and reports a count that differs by more than a quarter, or when the first or the last path of
// its kind comes or goes.
type MachinePaths struct {
	// Direct is the number of peers whose path is direct.
	Direct int32 `json:"direct"`

	// Relayed is the number of peers whose path is a relay: a DERP server, or another node.
	Relayed int32 `json:"relayed"`
}

// A MachineSpec is the desired state of a Machine.
type MachineSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider MachineParameters `json:"forProvider"`

	// ReportInterval is the minimum time between two reports of the machine's agent.
	// +kubebuilder:default="2s"
	// +optional
	ReportInterval *metav1.Duration `json:"reportInterval,omitempty"`
}

// A MachineStatus is the observed state of a Machine.
type MachineStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider MachineObservation `json:"atProvider,omitempty"`

	// Agent is written by the machine's agent, never by the provider.
	// +optional
	Agent *MachineAgentStatus `json:"agent,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="DEVICE",type="string",JSONPath=".status.atProvider.name"
// +kubebuilder:printcolumn:name="ADDRESS",type="string",JSONPath=".status.atProvider.addresses[0]"
// +kubebuilder:printcolumn:name="ONLINE",type="boolean",JSONPath=".status.atProvider.online"
// +kubebuilder:printcolumn:name="NODE-ID",type="string",JSONPath=".status.atProvider.nodeID",priority=1
// +kubebuilder:printcolumn:name="DIRECT",type="integer",JSONPath=".status.agent.paths.direct",priority=1
// +kubebuilder:printcolumn:name="RELAYED",type="integer",JSONPath=".status.agent.paths.relayed",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// A Machine is a tailnet node that the provider runs: one replica of a proxy. It has the same
// name as its pod and the pod's state Secret; its config Secret is called NAME-config. The
// Machine owns both Secrets.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineSpec   `json:"spec"`
	Status MachineStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// MachineList is a list of Machine.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// MachineKind is the kind of a Machine.
const MachineKind = "Machine"

// MachineGroupVersionKind is the GroupVersionKind of the kind.
var MachineGroupVersionKind = SchemeGroupVersion.WithKind(MachineKind)

func init() {
	register(&Machine{}, &MachineList{})
}
