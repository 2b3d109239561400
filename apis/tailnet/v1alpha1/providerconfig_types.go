// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A ProviderConfigSpec configures the provider's access to one tailnet.
type ProviderConfigSpec struct {
	// Tailnet is the name of the tailnet in Tailscale's API. "-" is the tailnet that owns the
	// credential.
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// APIURL is the base URL of Tailscale's API, without /api/v2.
	// +kubebuilder:default="https://api.tailscale.com"
	// +kubebuilder:validation:Pattern=`^https?://[^/\s]+/?$`
	// +optional
	APIURL string `json:"apiURL,omitempty"`

	// ControlURL is the URL of the control server that nodes log in to. Absent means
	// Tailscale's control server.
	// +kubebuilder:validation:Pattern=`^https?://[^/\s]+/?$`
	// +optional
	ControlURL string `json:"controlURL,omitempty"`

	// Credentials for Tailscale's API.
	Credentials Credentials `json:"credentials"`

	// Tags of every auth key that is created with this config.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// ClusterID distinguishes this cluster's objects in the tailnet from those of other
	// clusters. Do not change it while objects exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// ClusterSet is the set of clusters to which this cluster belongs. Clusters of one set share the
	// VIPServices that have sharing ClusterSet, and the same name and namespace in each of them.
	// Absent means that this cluster belongs to no set.
	// +optional
	ClusterSet ClusterSetName `json:"clusterSet,omitempty"`

	// Drain hands the services of all TailscaleServices and TailscaleGateways that use this config, and
	// share them, to other clusters. A VIPService without a TailscaleServices has a separate field.
	// +optional
	Drain bool `json:"drain,omitempty"`

	// TailnetLock makes the tailnet's lock trust the proxies. Absent means that a person signs the
	// key of each proxy, if the tailnet has a lock.
	// +optional
	TailnetLock *TailnetLock `json:"tailnetLock,omitempty"`

	// AllowedNamespaces selects the namespaces that may use this config. Absent means all.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// A ClusterSetName is the name of a set of clusters, as in the Multi-Cluster Services API (KEP-1645).
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
type ClusterSetName string

// TailnetLock lets the provider sign the auth keys of Machines with a trusted key of the tailnet's
// lock.
type TailnetLock struct {
	// SigningKeySecretRef references a Secret with a private key of tailnet lock, nlpriv: followed
	// by hexadecimal digits. In a ProviderConfig, it must be in the namespace of the
	// ProviderConfig. A client that can read it can add any node that control lets in.
	SigningKeySecretRef SigningKeySecretReference `json:"signingKeySecretRef"`
}

// A SigningKeySecretReference references a key of a Secret that holds a signing key.
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

// NamespacesFrom selects how the allowed namespaces are determined.
// +kubebuilder:validation:Enum=All;List;Selector;Grants
type NamespacesFrom string

// Ways to determine the allowed namespaces.
const (
	NamespacesFromAll      NamespacesFrom = "All"
	NamespacesFromList     NamespacesFrom = "List"
	NamespacesFromSelector NamespacesFrom = "Selector"
	NamespacesFromGrants   NamespacesFrom = "Grants"
)

// AllowedNamespaces selects the namespaces that may use a provider config or a tailnet.
// +kubebuilder:validation:XValidation:rule="has(self.selector) == (self.from == 'Selector')",message="selector must be set when from is Selector, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.grants) == (self.from == 'Grants')",message="grants must be set when from is Grants, and only then"
type AllowedNamespaces struct {
	// From is All, List for the namespaces in names, Selector for namespaces whose labels match
	// selector, or Grants for namespaces that match an entry of grants. The first three allow
	// all uses of the credential.
	// +kubebuilder:default=All
	// +optional
	From NamespacesFrom `json:"from,omitempty"`

	// Names of the namespaces, when from is List.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Names []string `json:"names,omitempty"`

	// Selector selects namespaces by label, when from is Selector. The provider must be allowed
	// to read namespaces; the chart tailscale-gateway permits it.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Grants limit the use of the tailnet by namespace, when from is Grants. The first entry
	// that matches a namespace applies. A namespace without a matching entry may not use the
	// tailnet.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Grants []NamespaceGrant `json:"grants,omitempty"`

	// Domains, with all names below them, that TailscaleGateways may have the tailnet resolve by
	// splitDNS: those of all allowed namespaces, except namespaces whose entry of grants has
	// separate domains. Absent means none.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Domains []GrantedDomain `json:"domains,omitempty"`
}

// A NamespaceGrant limits the use of a tailnet by the namespaces that it matches. Only the
// first matching entry applies to a namespace. Absent limits allow everything that the
// credential can do: an entry with only names or a selector allows all uses of the credential.
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.selector)",message="names or selector must be set; an empty selector matches every namespace"
type NamespaceGrant struct {
	// Names of the namespaces. If selector is also set, both must match.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Names []string `json:"names,omitempty"`

	// Selector selects namespaces by label. An empty selector, {}, matches all: use it in the
	// last entry.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Kinds of managed resources that may act on the tailnet, such as VIPService and Machine.
	// Absent means all kinds, or, if tags, services or domains is set, the kinds that these can
	// limit: AuthKey, Device, Discovery, Machine, SplitDNS and VIPService. The other kinds act
	// on the whole tailnet: a PolicyFragment or an OAuthClient can bypass the other limits of
	// the entry.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Kinds []ManagedKind `json:"kinds,omitempty"`

	// Tags that machines, auth keys and services may have, in addition to the tailnet's default
	// tags, and that managed devices must have. Absent means all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Services are names of Tailscale Services without svc:, such as shop-*, where * matches
	// any characters. Absent means all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Services []ServicePattern `json:"services,omitempty"`

	// Domains that proxies may resolve for the tailnet, with all names below them. Absent means
	// all for objects of the kinds SplitDNS and DNS, and allowedNamespaces.domains for the splitDNS
	// of TailscaleGateways.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Domains []GrantedDomain `json:"domains,omitempty"`

	// Images are repositories that spec.proxy.image may use, with any tag or digest, such as
	// registry.example.com/tailscale. A repository that ends in /* matches all below that path.
	// Absent means Tailscale's repositories: docker.io/tailscale/tailscale and
	// ghcr.io/tailscale/tailscale. The default image is always allowed.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Images []ImageRepository `json:"images,omitempty"`

	// ExtensionImages are repositories that spec.extensionServer.image of a TailscaleGateway may
	// use, with any tag or digest, in the same form as images. Absent means none: a dedicated
	// extension has the image of the installation, in contrast to the other limits.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	ExtensionImages []ImageRepository `json:"extensionImages,omitempty"`

	// Networking modes that proxies may use. Absent means Userspace and Kernel. Pods with
	// Kernel networking also need a PodSecurity level that allows them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +optional
	Networking []Networking `json:"networking,omitempty"`

	// PrivilegedContainers allows kernel.privileged of proxies. A user who can run a command in
	// such a container can take over its node. Absent means false, in contrast to the other limits,
	// and also for namespaces without an entry.
	// +optional
	PrivilegedContainers *bool `json:"privilegedContainers,omitempty"`

	// EnvFromSecrets allows environment variables of proxies to use Secrets of the namespace: a
	// user who can write a TailscaleEndpoints can then learn what is in each of them. Absent means
	// false, in contrast to the other limits, and also for namespaces without an entry.
	// +optional
	EnvFromSecrets *bool `json:"envFromSecrets,omitempty"`

	// StaticEndpoints allows proxies to have a port on the cluster's nodes, and to announce the
	// nodes' addresses to the tailnet. Absent means false, also for a namespace that may use the
	// whole credential.
	// +optional
	StaticEndpoints *bool `json:"staticEndpoints,omitempty"`
}

// A ManagedKind is a kind of managed resource that acts on a tailnet.
// +kubebuilder:validation:Enum=AuthKey;Contacts;DNS;Device;Discovery;FederatedIdentity;LogstreamConfiguration;Machine;OAuthClient;PolicyFragment;PostureIntegration;SplitDNS;Tailnet;VIPService;Webhook
type ManagedKind string

// A ServicePattern matches names of Tailscale Services.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9*-]+$`
type ServicePattern string

// A GrantedDomain is a domain with all names below it. It has at least two labels.
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)+$`
type GrantedDomain string

// An ImageRepository is a repository of images, without tag and digest, or a path that ends in
// /* and includes all repositories below it.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-zA-Z0-9.]*)(:[0-9]+)?(/[a-z0-9]([-a-z0-9._]*[a-z0-9])?)*(/\*)?$`
type ImageRepository string

// A ProviderConfigStatus is the observed state of a provider config.
type ProviderConfigStatus struct {
	xpv2.ProviderConfigStatus `json:",inline"`
}

// A Tag is a tag of the tailnet's policy file, such as tag:k8s.
// +kubebuilder:validation:MaxLength=54
// +kubebuilder:validation:XValidation:rule="self.matches('^tag:[a-zA-Z][a-zA-Z0-9-]*$')",message="must be tag: followed by a letter, then letters, digits and dashes"
type Tag string

// Credentials reference a credential for Tailscale's API: an OAuth client, a workload identity
// or an API key.
// +kubebuilder:validation:XValidation:rule="[has(self.oauthSecretRef), has(self.workloadIdentity), has(self.apiKeySecretRef)].filter(x, x).size() == 1",message="exactly one of oauthSecretRef, workloadIdentity and apiKeySecretRef must be set"
type Credentials struct {
	// OAuthSecretRef references a Secret with the keys client_id and client_secret of an OAuth
	// client with the scopes devices:core, auth_keys and services.
	// +optional
	OAuthSecretRef *xpv2.SecretReference `json:"oauthSecretRef,omitempty"`

	// WorkloadIdentity authenticates with a token of a Kubernetes service account, so that no
	// secret is stored.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`

	// APIKeySecretRef references a Secret with an API access token. The token has all rights of
	// the user who created it, and expires after 90 days at most: prefer the other credentials.
	// +optional
	APIKeySecretRef *APIKeySecretReference `json:"apiKeySecretRef,omitempty"`
}

// A WorkloadIdentity is a federated identity of the tailnet for a Kubernetes service account:
// its issuer is this cluster's issuer, its subject is system:serviceaccount:NAMESPACE:NAME.
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

	// ServiceAccountRef references the service account that authenticates. Absent means the
	// provider's service account, which only a ClusterProviderConfig may use. The provider must
	// be allowed to create its serviceaccounts/token.
	// +optional
	ServiceAccountRef *ServiceAccountReference `json:"serviceAccountRef,omitempty"`

	// ExpirationSeconds is how long a token of the service account is valid. The provider uses
	// it immediately, so a short time is enough; the minimum of Kubernetes is 600.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// A ServiceAccountReference references a service account.
type ServiceAccountReference struct {
	// Namespace of the service account. In a ProviderConfig, it must be the namespace of the
	// ProviderConfig.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name of the service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// An APIKeySecretReference references a key of a Secret that holds an API access token.
type APIKeySecretReference struct {
	xpv2.SecretReference `json:",inline"`

	// Key of the Secret's data.
	// +kubebuilder:default=api_key
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// SecretReference returns a reference to the Secret with the credentials, or nil for a workload
// identity, which needs none.
func (c Credentials) SecretReference() *xpv2.SecretReference {
	switch {
	case c.OAuthSecretRef != nil:
		return c.OAuthSecretRef
	case c.APIKeySecretRef != nil:
		return &c.APIKeySecretRef.SecretReference
	}
	return nil
}

// Namespace returns the namespace of the credentials: that of the Secret or of the service
// account. It is empty for the provider's service account.
func (c Credentials) Namespace() string {
	if s := c.SecretReference(); s != nil {
		return s.Namespace
	}
	if w := c.WorkloadIdentity; w != nil && w.ServiceAccountRef != nil {
		return w.ServiceAccountRef.Namespace
	}
	return ""
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TAILNET",type="string",JSONPath=".spec.tailnet"
// +kubebuilder:printcolumn:name="SECRET-NAME",type="string",JSONPath=".spec.credentials.oauthSecretRef.name",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Cluster,categories={crossplane,provider,tailscale}

// A ClusterProviderConfig configures the provider for managed resources of any
// namespace.
type ClusterProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderConfigSpec   `json:"spec"`
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ClusterProviderConfigList is a list of ClusterProviderConfig.
type ClusterProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProviderConfig `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TAILNET",type="string",JSONPath=".spec.tailnet"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,provider,tailscale}

// A ProviderConfig configures the provider for managed resources in its namespace. Its Secret
// or service account must be in that namespace.
// +kubebuilder:validation:XValidation:rule="!has(self.spec.credentials.workloadIdentity) || has(self.spec.credentials.workloadIdentity.serviceAccountRef)",message="a ProviderConfig's workloadIdentity needs a serviceAccountRef of the same namespace"
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderConfigSpec   `json:"spec"`
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ProviderConfigList is a list of ProviderConfig.
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="CONFIG-KIND",type="string",JSONPath=".providerConfigRef.kind"
// +kubebuilder:printcolumn:name="CONFIG-NAME",type="string",JSONPath=".providerConfigRef.name"
// +kubebuilder:printcolumn:name="RESOURCE-KIND",type="string",JSONPath=".resourceRef.kind"
// +kubebuilder:printcolumn:name="RESOURCE-NAME",type="string",JSONPath=".resourceRef.name"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,provider,tailscale}

// A ProviderConfigUsage records that a managed resource uses a provider config.
type ProviderConfigUsage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	xpv2.TypedProviderConfigUsage `json:",inline"`
}

// +kubebuilder:object:root=true

// ProviderConfigUsageList is a list of ProviderConfigUsage.
type ProviderConfigUsageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfigUsage `json:"items"`
}

// Kinds of this file, and their GroupVersionKinds.
const (
	ClusterProviderConfigKind = "ClusterProviderConfig"
	ProviderConfigKind        = "ProviderConfig"
	ProviderConfigUsageKind   = "ProviderConfigUsage"
)

// GroupVersionKinds of the kinds.
var (
	ClusterProviderConfigGroupVersionKind   = SchemeGroupVersion.WithKind(ClusterProviderConfigKind)
	ProviderConfigGroupVersionKind          = SchemeGroupVersion.WithKind(ProviderConfigKind)
	ProviderConfigUsageGroupVersionKind     = SchemeGroupVersion.WithKind(ProviderConfigUsageKind)
	ProviderConfigUsageListGroupVersionKind = SchemeGroupVersion.WithKind("ProviderConfigUsageList")
)

func init() {
	register(&ClusterProviderConfig{}, &ClusterProviderConfigList{}, &ProviderConfig{}, &ProviderConfigList{}, &ProviderConfigUsage{}, &ProviderConfigUsageList{})
}
