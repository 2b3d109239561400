// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// MachineParameters are the wanted state of a tailnet node that we run.
type MachineParameters struct {
	// Hostname that the node asks for. Tailscale appends -1, -2 and so on when
	// it is taken.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Hostname string `json:"hostname"`

	// Tags of the node's auth key, beside those of the provider config. A node
	// must have a tag to host services.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// AcceptRoutes has the node use the routes of subnet routers.
	// +optional
	AcceptRoutes bool `json:"acceptRoutes,omitempty"`
}

// A MachineObservation is what Tailscale and the node's state Secret report.
type MachineObservation struct {
	// NodeID is the device's stable node ID, to be read by people: pods may write a
	// status. The provider acts on the one in the annotation
	// gateway.tailscale.com/node-id, which pods cannot write.
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

	// LastSeen is when the device was last connected, as Tailscale tells it. Only of one
	// that is offline: else it would change all the time.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// Authorized reports whether an admin, or the key, let the device in.
	// +optional
	Authorized *bool `json:"authorized,omitempty"`

	// KeyIssued reports that an auth key waits in the config Secret for the node
	// to log in with.
	// +optional
	KeyIssued bool `json:"keyIssued,omitempty"`
}

// A HostedService is how one machine stands to one Tailscale Service, as the
// machine's own agent sees it.
type HostedService struct {
	// Name of the Tailscale Service.
	Name string `json:"name"`

	// Advertised reports whether the agent offers the service to control. It
	// does so only while a backend answers.
	Advertised bool `json:"advertised"`

	// Accepted reports whether control gave this machine the service.
	Accepted bool `json:"accepted"`

	// Readvertisements is how often the agent withdrew the service for a few seconds
	// and advertised it again, because control had not accepted the machine. An
	// approval may reach a machine only when it advertises again.
	// +optional
	Readvertisements int32 `json:"readvertisements,omitempty"`

	// HealthyBackends is how many backends answered the last probes.
	HealthyBackends int32 `json:"healthyBackends"`

	// TotalBackends is how many backends are probed.
	TotalBackends int32 `json:"totalBackends"`

	// Reason why the service is not advertised, if its certificate is: HTTPSDisabled,
	// CertificateNotIssued or CertificateNotUsable.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says why the service is not advertised or not accepted.
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

	// Target that the port leads to, by its key in the egress ConfigMap. Nobody
	// else may have the port while one machine reports it.
	Target string `json:"target"`

	// Ready reports whether a device of the tailnet has the target, and the target
	// answers its health check if it has one.
	Ready bool `json:"ready"`

	// Message says why the port is not ready, or what is wrong though it is. It is cut
	// where there are many.
	// +optional
	Message string `json:"message,omitempty"`
}

// A MachineAgentStatus is what the machine's agent reports: transitions, not
// probes.
type MachineAgentStatus struct {
	// PodIP of the pod that runs the machine.
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// Services that the machine is to host, by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	Services []HostedService `json:"services,omitempty"`

	// EgressConfig is the revision of the egress ConfigMap that the ports are of.
	// +optional
	EgressConfig string `json:"egressConfig,omitempty"`

	// Egress are the ports of the pod that lead into the tailnet, one each of a
	// protocol. A list as a whole: who owns each entry would be as long as the entries.
	// +listType=atomic
	// +optional
	Egress []EgressPort `json:"egress,omitempty"`
}

// A MachineSpec is the wanted state of a Machine.
type MachineSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider MachineParameters `json:"forProvider"`

	// ReportInterval is the shortest time between two reports of the machine's
	// agent.
	// +kubebuilder:default="2s"
	// +optional
	ReportInterval *metav1.Duration `json:"reportInterval,omitempty"`
}

// A MachineStatus is the observed state of a Machine.
type MachineStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider MachineObservation `json:"atProvider,omitempty"`

	// Agent is written by the machine's own agent, never by the provider.
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
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// A Machine is a tailnet node that we run: one replica of a proxy. Its name is
// the pod's name and that of the pod's state Secret; the config Secret is
// called NAME-config. Both Secrets are the Machine's own.
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
