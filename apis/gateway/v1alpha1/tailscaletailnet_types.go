// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A Tag is a tag of the tailnet's policy file, such as tag:k8s.
// +kubebuilder:validation:MaxLength=54
// +kubebuilder:validation:XValidation:rule="self.matches('^tag:[a-zA-Z][a-zA-Z0-9-]*$')",message="must be tag: followed by a letter, then letters, digits and dashes"
type Tag string

// A ServiceAccountReference references a service account.
type ServiceAccountReference struct {
	// Namespace of the service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name of the service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// A WorkloadIdentity is a federated identity of the tailnet for a Kubernetes service account:
// its issuer is this cluster's issuer, its subject is system:serviceaccount:NAMESPACE:NAME.
// +kubebuilder:validation:XValidation:rule="has(self.serviceAccountRef) != has(self.namespace)",message="exactly one of serviceAccountRef and namespace must be set"
type WorkloadIdentity struct {
	// ClientID of the federated identity, from its page in the admin console.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	ClientID string `json:"clientID"`

	// Audience of the tokens, from the page of the federated identity in the admin console.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Audience string `json:"audience"`

	// ServiceAccountRef references the service account that authenticates. The provider must be
	// allowed to create its serviceaccounts/token. Absent means the provider's service account;
	// namespace must be set then.
	// +optional
	ServiceAccountRef *ServiceAccountReference `json:"serviceAccountRef,omitempty"`

	// Namespace of the Tailnet object that watches the tailnet, when the provider's service
	// account authenticates. Otherwise, the Tailnet object is in the namespace of the service
	// account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// An APIKeySecretReference references a key of a Secret that holds an API access token.
type APIKeySecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Key of the Secret's data.
	// +kubebuilder:default=api_key
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// A SigningKeySecretReference references a key of a Secret that holds a private key of tailnet
// lock, nlpriv: followed by hexadecimal digits.
type SigningKeySecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Key of the Secret's data.
	// +kubebuilder:default=signing_key
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// A TailscaleTailnetSpec holds the credential and defaults of a tailnet. The credential is an
// OAuth client, a workload identity or an API access token, and can be replaced by another
// type.
// +kubebuilder:validation:XValidation:rule="[has(self.oauthSecretName), has(self.workloadIdentity), has(self.apiKeySecret)].filter(x, x).size() == 1",message="exactly one of oauthSecretName, workloadIdentity and apiKeySecret must be set"
// +kubebuilder:validation:XValidation:rule="has(self.oauthSecretName) == has(self.oauthSecretNamespace)",message="oauthSecretName and oauthSecretNamespace must be set together"
// +kubebuilder:validation:XValidation:rule="!has(self.workloadIdentity) || !has(self.workloadIdentity.namespace) || !has(self.allowedNamespaces) || self.allowedNamespaces.from != 'List' || !has(self.allowedNamespaces.names) || self.workloadIdentity.namespace in self.allowedNamespaces.names",message="allowedNamespaces.names must list workloadIdentity.namespace"
type TailscaleTailnetSpec struct {
	// OAuthSecretName is the name of the Secret with the keys client_id and client_secret of an
	// OAuth client. The client must have the scopes devices:core, auth_keys and services, and
	// own the tags that it assigns.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	OAuthSecretName string `json:"oauthSecretName,omitempty"`

	// OAuthSecretNamespace is the Secret's namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; make another TailscaleTailnet instead"
	// +optional
	OAuthSecretNamespace string `json:"oauthSecretNamespace,omitempty"`

	// WorkloadIdentity authenticates with a token of a Kubernetes service account, so that no
	// secret is stored.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`

	// APIKeySecret references a Secret with an API access token. The token has all rights of
	// the user who created it, and expires after 90 days at most: prefer the other credentials.
	// +optional
	APIKeySecret *APIKeySecretReference `json:"apiKeySecret,omitempty"`

	// Tailnet is the name of the tailnet in Tailscale's API. "-" is the tailnet that owns the
	// credential.
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// Tags of every proxy of this tailnet. A proxy must have a tag.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// TailnetLockSigningKeySecret references a Secret with a private key of the tailnet's lock, with
	// which the provider signs the keys of proxies. A client that can read it can add any node to
	// the tailnet that control lets in. Absent means that a person signs the key of each proxy, if the
	// tailnet has a lock.
	// +optional
	TailnetLockSigningKeySecret *SigningKeySecretReference `json:"tailnetLockSigningKeySecret,omitempty"`

	// APIURL is the base URL of Tailscale's API, without /api/v2. Absent means Tailscale's API
	// server.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[^/\s]+/?$`
	// +optional
	APIURL string `json:"apiURL,omitempty"`

	// ControlURL is the URL of the control server that proxies log in to. Absent means
	// Tailscale's control server.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[^/\s]+/?$`
	// +optional
	ControlURL string `json:"controlURL,omitempty"`

	// ClusterID distinguishes this cluster's objects in the tailnet from those of other
	// clusters. Absent means the UID of the namespace kube-system, which changes when the
	// cluster is rebuilt: set clusterID so that a rebuilt cluster owns the same objects. Each
	// cluster must have a different ID.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// ClusterSet is the set of clusters to which this cluster belongs. Clusters of one set share the
	// Tailscale Services of each TailscaleServices and TailscaleGateway that has the same namespace
	// and name in them, unless sharing says otherwise. A namespace must therefore belong to the same
	// team in all of them. Absent means that nothing is shared unless sharing is Shared. Services that
	// are shared stay so if clusterSet is changed or removed.
	// +optional
	ClusterSet tailnetv1alpha1.ClusterSetName `json:"clusterSet,omitempty"`

	// Drain hands all services that this cluster shares to other clusters, for maintenance of the
	// cluster. See drain of a TailscaleServices.
	// +optional
	Drain bool `json:"drain,omitempty"`

	// AllowedNamespaces selects the namespaces that may use this tailnet. Absent means all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.from != 'List' || (has(self.names) && size(self.names) > 0)",message="names must list at least one namespace when from is List"
	AllowedNamespaces *tailnetv1alpha1.AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// TailnetInfo is the information about the tailnet that the credential can read.
type TailnetInfo struct {
	// Name is the tailnet's DNS name, such as tail1234.ts.net.
	// +optional
	Name string `json:"name,omitempty"`

	// ID of the tailnet. It requires the scope tailnets:read.
	// +optional
	ID string `json:"id,omitempty"`

	// Organization is the tailnet's display name. It requires the scope tailnets:read.
	// +optional
	Organization string `json:"organization,omitempty"`

	// OrganizationID is the ID of the organization that owns the tailnet. It requires the scope
	// tailnets:read.
	// +optional
	OrganizationID string `json:"organizationID,omitempty"`

	// MagicDNSSuffix is the domain of the names of machines and services.
	// +optional
	MagicDNSSuffix string `json:"magicDNSSuffix,omitempty"`

	// DeviceCount is the number of devices in the tailnet.
	// +optional
	DeviceCount *int64 `json:"deviceCount,omitempty"`

	// ConnectedDevices is the number of devices that are connected to the control server.
	// +optional
	ConnectedDevices *int64 `json:"connectedDevices,omitempty"`

	// ServiceCount is the number of Tailscale Services in the tailnet.
	// +optional
	ServiceCount *int64 `json:"serviceCount,omitempty"`
}

// A TailscaleTailnetStatus is the observed state of a TailscaleTailnet.
type TailscaleTailnetStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// +optional
	TailnetInfo *TailnetInfo `json:"tailnetInfo,omitempty"`

	// CredentialStatus is what Tailscale's API reports about the credential. The condition
	// Authenticated reports whether the credential is accepted.
	// +optional
	CredentialStatus *tailnetv1alpha1.CredentialObservation `json:"credentialStatus,omitempty"`

	// ClusterID is the ID of this cluster's objects in the tailnet.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TAILNET",type="string",JSONPath=".status.tailnetInfo.name"
// +kubebuilder:printcolumn:name="DEVICES",type="integer",JSONPath=".status.tailnetInfo.deviceCount"
// +kubebuilder:printcolumn:name="AUTHENTICATED",type="string",JSONPath=".status.conditions[?(@.type=='Authenticated')].status"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='Authenticated')].reason"
// +kubebuilder:resource:scope=Cluster,path=tailscaletailnets,singular=tailscaletailnet,categories={tailscale,crossplane},shortName=tstailnet

// A TailscaleTailnet holds the credential and defaults of a tailnet.
type TailscaleTailnet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailscaleTailnetSpec   `json:"spec"`
	Status TailscaleTailnetStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// TailscaleTailnetList is a list of TailscaleTailnet.
type TailscaleTailnetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleTailnet `json:"items"`
}

// TailscaleTailnetKind is the kind of a TailscaleTailnet.
const TailscaleTailnetKind = "TailscaleTailnet"

func init() {
	register(&TailscaleTailnet{}, &TailscaleTailnetList{})
}
