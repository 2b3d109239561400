// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A MachineSetMember is a desired Machine.
type MachineSetMember struct {
	// Name of the Machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Hostname of the machine in the tailnet. The machine requests a longer, unique name that
	// begins with it: NAME-HASH, with a hash of the set's UID.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Hostname string `json:"hostname"`
}

// A MachineSetSpec lists the desired Machines, and configures the pods that run them.
type MachineSetSpec struct {
	// ProviderConfigReference of the Machines.
	ProviderConfigReference xpv2.ProviderConfigReference `json:"providerConfigRef"`

	// Tags of the machines' auth keys, in addition to those of the provider config.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// AcceptRoutes makes the machines use the routes of subnet routers.
	// +optional
	AcceptRoutes bool `json:"acceptRoutes,omitempty"`

	// Machines that should exist. Machines that are not listed are deleted with their devices,
	// keys and Secrets, once their pods are gone.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Machines []MachineSetMember `json:"machines,omitempty"`

	// Pods configures the pods that run the machines: a StatefulSet and a service account with
	// the set's name. A StatefulSet of that name that does not belong to the set is not
	// changed. Absent leaves the pods of the set unchanged; zero replicas delete them.
	// +optional
	Pods *MachineSetPods `json:"pods,omitempty"`
}

// A MachineSummary is the state of one Machine of a set.
type MachineSummary struct {
	// Name of the Machine.
	Name string `json:"name"`

	// Ready reports whether the machine is in the tailnet and up to date.
	Ready bool `json:"ready"`

	// Failed reports whether the provider cannot prepare the machine. Message describes the
	// cause.
	// +optional
	Failed bool `json:"failed,omitempty"`

	// LoginError is what the machine's agent reports about a login that fails. Empty if the machine
	// is ready.
	// +optional
	LoginError string `json:"loginError,omitempty"`

	// Message describes what the machine is waiting for. Empty if it is ready.
	// +optional
	Message string `json:"message,omitempty"`

	// Warning describes what a machine that may be ready does not do as tested.
	// +optional
	Warning string `json:"warning,omitempty"`

	// NodeID is the device's stable node ID.
	// +optional
	NodeID string `json:"nodeID,omitempty"`

	// DNSName is the device's DNS name in the tailnet.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

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
	Online bool `json:"online,omitempty"`

	// LastSeen is the time at which an offline device was last connected.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// PodIP of the pod that runs the machine. Absent until its agent has reported.
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// Ports at which the pod hosts services, and ports that lead into the tailnet, as tcp:PORT,
	// udp:PORT or do-not-validate for all ports, according to its agent. The lowest 32 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Ports []string `json:"ports,omitempty"`

	// EgressConfig is the revision of the egress ConfigMap that the ports belong to.
	// +optional
	EgressConfig string `json:"egressConfig,omitempty"`

	// Network is a problem of the pod's Kernel networking. Absent means that none is known.
	// +optional
	Network *NetworkProblem `json:"network,omitempty"`
}

// A MachineSetEgressPort is a port that leads to one target at least at one machine of a set.
type MachineSetEgressPort struct {
	// Port of the pods.
	Port int32 `json:"port"`

	// Protocol is TCP or UDP.
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol corev1.Protocol `json:"protocol"`

	// Target of the port, by its key in the egress ConfigMap. The port cannot be given to
	// another target while a machine reports it.
	Target string `json:"target"`

	// ReadyMachines is the number of listed machines that reach the target.
	// +optional
	ReadyMachines int32 `json:"readyMachines,omitempty"`

	// Message describes why the first machine that does not reach the target does not, or a
	// warning if all machines reach it. It is truncated if there are many.
	// +optional
	Message string `json:"message,omitempty"`
}

// A StatefulSetSummary is the state of the StatefulSet of a set.
type StatefulSetSummary struct {
	// Replicas of the StatefulSet, as applied.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is the number of ready pods.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// UpdatedReplicas is the number of pods with the latest template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// Observed reports whether Kubernetes has observed the latest generation of the
	// StatefulSet. Until then, the counts belong to an older generation.
	// +optional
	Observed bool `json:"observed,omitempty"`

	// CreatedAt is the time at which the StatefulSet was created.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// Message describes why the StatefulSet or its PodDisruptionBudget differs from the spec.
	// Empty if neither does.
	// +optional
	Message string `json:"message,omitempty"`
}

// A MachineSetStatus is the state of the Machines of a set and of the pods that run them. The
// controller writes it once changes have settled, so that one update covers many changes.
// Failures are written immediately.
type MachineSetStatus struct {
	// ObservedGeneration is the generation of the set when the status was written.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ReadyMachines is the number of listed machines that are ready.
	// +optional
	ReadyMachines int32 `json:"readyMachines,omitempty"`

	// Machines by name, including machines that are being deleted.
	// +listType=map
	// +listMapKey=name
	// +optional
	Machines []MachineSummary `json:"machines,omitempty"`

	// Egress lists the ports of the pods that lead into the tailnet, by port, protocol and
	// target, merged over all machines.
	// +listType=atomic
	// +optional
	Egress []MachineSetEgressPort `json:"egress,omitempty"`

	// StatefulSet that runs the pods.
	// +optional
	StatefulSet *StatefulSetSummary `json:"statefulSet,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyMachines"
// +kubebuilder:printcolumn:name="PODS",type="integer",JSONPath=".status.statefulSet.readyReplicas"
// +kubebuilder:printcolumn:name="DEVICES",type="string",JSONPath=".status.machines[*].hostname"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={tailscale}

// A MachineSet is one proxy StatefulSet and its Machines. Crossplane watches the set instead of
// its members and pods, so the cost of a change to a composite does not grow with the replicas.
type MachineSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineSetSpec   `json:"spec"`
	Status MachineSetStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// MachineSetList is a list of MachineSet.
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}

// MachineSetKind is the kind of a MachineSet.
const MachineSetKind = "MachineSet"

// MachineSetGroupVersionKind is the GroupVersionKind of the kind.
var MachineSetGroupVersionKind = SchemeGroupVersion.WithKind(MachineSetKind)

func init() {
	register(&MachineSet{}, &MachineSetList{})
}
