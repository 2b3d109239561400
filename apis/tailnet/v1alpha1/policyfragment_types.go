// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A PolicyObject is an entry of a policy file, in the policy file's syntax.
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:Schemaless
type PolicyObject struct {
	runtime.RawExtension `json:",inline"`
}

// PolicyAutoApprovers configure automatic approvals.
type PolicyAutoApprovers struct {
	// Services maps a service (svc:web) or a service tag (tag:web) to the tags of hosts that
	// are approved for it.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Services map[string][]string `json:"services,omitempty"`

	// Routes maps a subnet to the tags, groups and users whose routes in it are
	// approved.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Routes map[string][]string `json:"routes,omitempty"`

	// ExitNode are the tags, groups and users whose exit nodes are approved.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	ExitNode []string `json:"exitNode,omitempty"`
}

// PolicyFragmentParameters are a part of a tailnet's policy file. The sections are those of
// https://tailscale.com/kb/1337/policy-syntax.
// +kubebuilder:validation:XValidation:rule="has(self.grants) || has(self.acls) || has(self.ssh) || has(self.nodeAttrs) || has(self.tests) || has(self.sshTests) || has(self.tagOwners) || has(self.groups) || has(self.hosts) || has(self.postures) || has(self.autoApprovers)",message="at least one section must be set"
type PolicyFragmentParameters struct {
	// Grants give access to devices and services.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Grants []PolicyObject `json:"grants,omitempty"`

	// ACLs are the older form of grants.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	ACLs []PolicyObject `json:"acls,omitempty"`

	// SSH rules.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	SSH []PolicyObject `json:"ssh,omitempty"`

	// NodeAttrs give devices attributes.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	NodeAttrs []PolicyObject `json:"nodeAttrs,omitempty"`

	// Tests that the policy file must pass.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Tests []PolicyObject `json:"tests,omitempty"`

	// SSHTests that the policy file must pass.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	SSHTests []PolicyObject `json:"sshTests,omitempty"`

	// TagOwners maps a tag to the users, groups and tags that may assign it.
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.matches('^tag:[a-zA-Z][a-zA-Z0-9-]*$'))",message="keys must be tags: tag: followed by a letter, then letters, digits and dashes"
	// +optional
	TagOwners map[string][]string `json:"tagOwners,omitempty"`

	// Groups maps group:NAME to its users.
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(g, g.startsWith('group:'))",message="keys must begin with group:"
	// +optional
	Groups map[string][]string `json:"groups,omitempty"`

	// Hosts maps a name to an address or a subnet.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Hosts map[string]string `json:"hosts,omitempty"`

	// Postures maps posture:NAME to its conditions.
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.startsWith('posture:'))",message="keys must begin with posture:"
	// +optional
	Postures map[string][]string `json:"postures,omitempty"`

	// AutoApprovers configure automatic approvals.
	// +optional
	AutoApprovers *PolicyAutoApprovers `json:"autoApprovers,omitempty"`

	// AdoptionPolicy decides about existing entries with another value and without an owner.
	// Refuse reports an error, Adopt takes them over.
	// +kubebuilder:default=Refuse
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// A PolicyConflict is an entry of the policy file that this object does not own.
type PolicyConflict struct {
	// Path of the entry, such as tagOwners["tag:web"].
	Path string `json:"path"`

	// Owner of the entry, according to its comment: CLUSTER-ID/NAMESPACE/NAME. Empty for an
	// entry that a person wrote.
	// +optional
	Owner string `json:"owner,omitempty"`
}

// A PolicyFragmentObservation is the state of the fragment in the policy file.
type PolicyFragmentObservation struct {
	// Owner is the mark of the object's entries in the policy file: CLUSTER-ID/NAMESPACE/NAME.
	// +optional
	Owner string `json:"owner,omitempty"`

	// Entries of the policy file that this object owns.
	// +optional
	Entries *int32 `json:"entries,omitempty"`

	// Conflicts are the entries that keep entries of the fragment out of the policy file.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Conflicts []PolicyConflict `json:"conflicts,omitempty"`
}

// A PolicyFragmentSpec is the desired state of a PolicyFragment.
type PolicyFragmentSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider PolicyFragmentParameters `json:"forProvider"`
}

// A PolicyFragmentStatus is the observed state of a PolicyFragment.
type PolicyFragmentStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider PolicyFragmentObservation `json:"atProvider,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="ENTRIES",type="integer",JSONPath=".status.atProvider.entries"
// +kubebuilder:printcolumn:name="CONFLICT",type="string",JSONPath=".status.atProvider.conflicts[0].path"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,tailscale}

// A PolicyFragment is a part of a tailnet's policy file that one object owns. The rest of the
// file, including comments, is not changed.
type PolicyFragment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PolicyFragmentSpec   `json:"spec"`
	Status PolicyFragmentStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// PolicyFragmentList is a list of PolicyFragment.
type PolicyFragmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PolicyFragment `json:"items"`
}

// PolicyFragmentKind is the kind of a PolicyFragment.
const PolicyFragmentKind = "PolicyFragment"

// PolicyFragmentGroupVersionKind is the GroupVersionKind of the kind.
var PolicyFragmentGroupVersionKind = SchemeGroupVersion.WithKind(PolicyFragmentKind)

func init() {
	register(&PolicyFragment{}, &PolicyFragmentList{})
}
