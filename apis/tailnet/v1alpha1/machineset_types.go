// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A MachineSetMember is a Machine that is to be.
type MachineSetMember struct {
	// Name of the Machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Hostname of the machine in the tailnet. The machine asks for a longer one, which
	// begins with it and is unique: NAME-HASH, by the set's UID.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Hostname string `json:"hostname"`
}

// A MachineSetSpec is the Machines that are to be, and the pods that run them.
type MachineSetSpec struct {
	// ProviderConfigReference of the Machines.
	ProviderConfigReference xpv2.ProviderConfigReference `json:"providerConfigRef"`

	// Tags of the machines' auth keys, beside those of the provider config.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// AcceptRoutes has the machines use the routes of subnet routers.
	// +optional
	AcceptRoutes bool `json:"acceptRoutes,omitempty"`

	// Machines that are to be. Those that are not listed any more are deleted,
	// and with them their devices, keys and Secrets, once their pods have gone.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Machines []MachineSetMember `json:"machines,omitempty"`

	// Pods that run the machines, as a StatefulSet of the set's name and under the
	// service account of that name. A StatefulSet of that name that does not belong
	// to the set is left alone. Absent leaves the pods of the set as they are; zero
	// replicas have them go.
	// +optional
	Pods *MachineSetPods `json:"pods,omitempty"`
}

// A MachineSummary is what is known of one Machine of a set.
type MachineSummary struct {
	// Name of the Machine.
	Name string `json:"name"`

	// Ready reports whether the machine is in the tailnet, and as it is wanted.
	Ready bool `json:"ready"`

	// Failed reports that the provider cannot prepare the machine. Message says
	// why.
	// +optional
	Failed bool `json:"failed,omitempty"`

	// Message says what the machine waits for. Empty when it is ready.
	// +optional
	Message string `json:"message,omitempty"`

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

	// LastSeen is when a device that is offline was last connected.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`

	// PodIP of the pod that runs the machine, once its agent has reported.
	// +optional
	PodIP string `json:"podIP,omitempty"`

	// EgressConfig is the revision of the egress ConfigMap that the ports are of.
	// +optional
	EgressConfig string `json:"egressConfig,omitempty"`
}

// A MachineSetEgressPort is a port that leads to one target at one machine of a set at
// least.
type MachineSetEgressPort struct {
	// Port of the pods.
	Port int32 `json:"port"`

	// Protocol is TCP or UDP.
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol corev1.Protocol `json:"protocol"`

	// Target that the port leads to, by its key in the egress ConfigMap. Nobody
	// else may have the port while one machine reports it.
	Target string `json:"target"`

	// ReadyMachines is how many of the machines that are to be reach the target.
	// +optional
	ReadyMachines int32 `json:"readyMachines,omitempty"`

	// Message says why the first machine that does not reach it does not, or what is wrong
	// though all reach it. It is cut where there are many.
	// +optional
	Message string `json:"message,omitempty"`
}

// A StatefulSetSummary is what is known of the StatefulSet of a set.
type StatefulSetSummary struct {
	// Replicas that the StatefulSet asks for, as it was applied.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is how many of its pods are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// UpdatedReplicas is how many of its pods are of its latest template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// Observed reports whether Kubernetes has seen the StatefulSet as it is now.
	// The counts are those of an older one until then.
	// +optional
	Observed bool `json:"observed,omitempty"`

	// CreatedAt is when the StatefulSet was made.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// Message says why the StatefulSet or its PodDisruptionBudget is not as the
	// spec says. Empty when both are.
	// +optional
	Message string `json:"message,omitempty"`
}

// A MachineSetStatus is what is known of the Machines of a set and of the pods
// that run them. It is written once their changes have settled, so that one change
// of it stands for many. What fails is told at once.
type MachineSetStatus struct {
	// ObservedGeneration of the set when the status was written.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ReadyMachines is how many of those that are to be are ready.
	// +optional
	ReadyMachines int32 `json:"readyMachines,omitempty"`

	// Machines by name, those that are to go included as long as they are there.
	// +listType=map
	// +listMapKey=name
	// +optional
	Machines []MachineSummary `json:"machines,omitempty"`

	// Egress are the ports of the pods that lead into the tailnet, by port, protocol
	// and target: those of all machines, so that they are told once.
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

// A MachineSet is one proxy StatefulSet and its Machines. Crossplane watches the
// set, neither its members nor its pods: what it charges a composite for a change
// does not grow with the replicas.
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
