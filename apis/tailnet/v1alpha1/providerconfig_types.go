// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A ProviderConfigSpec says how the provider reaches one tailnet.
type ProviderConfigSpec struct {
	// Tailnet is the tailnet's name as Tailscale's API takes it. "-" is the
	// tailnet that owns the credential.
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

	// ControlURL is the control server that nodes log in to. Absent means
	// Tailscale's own.
	// +kubebuilder:validation:Pattern=`^https?://[^/\s]+/?$`
	// +optional
	ControlURL string `json:"controlURL,omitempty"`

	// Credentials to Tailscale's API.
	Credentials Credentials `json:"credentials"`

	// Tags are added to every auth key that is minted with this config.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// ClusterID tells this cluster's objects in the tailnet from those of other
	// clusters. It must not change while objects exist.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// AllowedNamespaces says which namespaces may use this config. Absent means
	// all.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// NamespacesFrom says which namespaces may use a provider config.
// +kubebuilder:validation:Enum=All;List;Selector;Grants
type NamespacesFrom string

// Which namespaces may use a provider config.
const (
	NamespacesFromAll      NamespacesFrom = "All"
	NamespacesFromList     NamespacesFrom = "List"
	NamespacesFromSelector NamespacesFrom = "Selector"
	NamespacesFromGrants   NamespacesFrom = "Grants"
)

// AllowedNamespaces says which namespaces may use a provider config or a tailnet.
// +kubebuilder:validation:XValidation:rule="has(self.selector) == (self.from == 'Selector')",message="selector must be set when from is Selector, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.grants) == (self.from == 'Grants')",message="grants must be set when from is Grants, and only then"
type AllowedNamespaces struct {
	// From is All, List for those in names, Selector for those whose labels match
	// selector, or Grants for those that an entry of grants matches. The first three
	// give the whole credential.
	// +kubebuilder:default=All
	// +optional
	From NamespacesFrom `json:"from,omitempty"`

	// Names of the namespaces, when from is List.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Names []string `json:"names,omitempty"`

	// Selector picks namespaces by label, when from is Selector. The provider must
	// be allowed to read namespaces, by cluster/manifests/rbac.yaml.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Grants say what each namespace may do with the tailnet, when from is Grants. The
	// first entry that matches a namespace counts, and one that none matches may do
	// nothing.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Grants []NamespaceGrant `json:"grants,omitempty"`
}

// A NamespaceGrant is what some namespaces may do with a tailnet. Of the entries that
// match a namespace the first counts, alone. What an entry does not limit is all that
// the credential can do: so one with names or a selector and nothing else gives the
// whole credential.
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.selector)",message="names or selector must be set; an empty selector matches every namespace"
type NamespaceGrant struct {
	// Names of the namespaces. Where selector is set, too, both must match.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Names []string `json:"names,omitempty"`

	// Selector picks namespaces by label. An empty one, {}, matches all: put it into
	// the last entry.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Kinds of managed resources that may act on the tailnet, such as VIPService and
	// Machine. Absent means all, or, where tags, services or domains are set, those
	// that these can hold: AuthKey, Device, Discovery, Machine, SplitDNS and
	// VIPService. The others act on the whole tailnet: a PolicyFragment or an
	// OAuthClient gives what the rest of the entry withholds.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Kinds []ManagedKind `json:"kinds,omitempty"`

	// Tags that machines, auth keys and services may have, beside the tailnet's own
	// tags, and that devices which are managed must have. Absent means all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Services are names of Tailscale Services without svc:, in which * stands for any
	// characters, such as shop-*. Absent means all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Services []ServicePattern `json:"services,omitempty"`

	// Domains that the tailnet may be told to ask proxies for, with all names below
	// them. Absent means all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Domains []GrantedDomain `json:"domains,omitempty"`

	// Images are repositories that spec.proxy.image may name, at any tag or digest,
	// such as registry.example.com/tailscale. One that ends in /* stands for all
	// below. Absent means Tailscale's own: docker.io/tailscale/tailscale and
	// ghcr.io/tailscale/tailscale. The image of who names none is always allowed.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Images []ImageRepository `json:"images,omitempty"`

	// Networking of proxies. Absent means Userspace and Kernel. Pods with Kernel
	// networking also need a PodSecurity level that lets them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +optional
	Networking []Networking `json:"networking,omitempty"`

	// EnvFromSecrets says whether environment variables of proxies may come from
	// Secrets of the namespace. Absent means yes.
	// +optional
	EnvFromSecrets *bool `json:"envFromSecrets,omitempty"`
}

// A ManagedKind is a kind of managed resource that acts on a tailnet.
// +kubebuilder:validation:Enum=AuthKey;Contacts;DNS;Device;Discovery;FederatedIdentity;LogstreamConfiguration;Machine;OAuthClient;PolicyFragment;PostureIntegration;SplitDNS;Tailnet;VIPService;Webhook
type ManagedKind string

// A ServicePattern matches names of Tailscale Services.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9*-]+$`
type ServicePattern string

// A GrantedDomain is a domain with all names below it. A single label is none.
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)+$`
type GrantedDomain string

// An ImageRepository is a repository of images, without tag and digest, or all below
// a path that ends in /*.
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

// Credentials locate what authenticates to Tailscale's API: an OAuth client, a
// workload identity or an API key.
// +kubebuilder:validation:XValidation:rule="[has(self.oauthSecretRef), has(self.workloadIdentity), has(self.apiKeySecretRef)].filter(x, x).size() == 1",message="exactly one of oauthSecretRef, workloadIdentity and apiKeySecretRef must be set"
type Credentials struct {
	// OAuthSecretRef names a Secret with the keys client_id and client_secret
	// of an OAuth client with the scopes devices:core, auth_keys and services.
	// +optional
	OAuthSecretRef *xpv2.SecretReference `json:"oauthSecretRef,omitempty"`

	// WorkloadIdentity logs in with a token of a Kubernetes service account, so
	// that no secret is stored anywhere.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`

	// APIKeySecretRef names a Secret with an API access token. It acts for the
	// user who made it, with all of that user's rights, and ends after 90 days
	// at most: prefer the others.
	// +optional
	APIKeySecretRef *APIKeySecretReference `json:"apiKeySecretRef,omitempty"`
}

// A WorkloadIdentity is a federated identity of the tailnet, made for a
// Kubernetes service account: its issuer is this cluster's, its subject
// system:serviceaccount:NAMESPACE:NAME.
type WorkloadIdentity struct {
	// ClientID of the federated identity, as its page shows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	ClientID string `json:"clientID"`

	// Audience of the tokens, as the federated identity's page shows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Audience string `json:"audience"`

	// ServiceAccountRef names the service account that logs in. Absent means the
	// provider's own, which only a ClusterProviderConfig may use. The provider
	// must be allowed to create serviceaccounts/token of it.
	// +optional
	ServiceAccountRef *ServiceAccountReference `json:"serviceAccountRef,omitempty"`

	// ExpirationSeconds is how long a token of the service account is valid. It
	// is used at once, so little is enough; Kubernetes wants 600 at least.
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// A ServiceAccountReference names a service account.
type ServiceAccountReference struct {
	// Namespace of the service account. That of a ProviderConfig must be its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name of the service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// An APIKeySecretReference names a key of a Secret that holds an API access
// token.
type APIKeySecretReference struct {
	xpv2.SecretReference `json:",inline"`

	// Key of the Secret's data.
	// +kubebuilder:default=api_key
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// SecretReference returns the Secret that the credentials are in, nil for a
// workload identity, which needs none.
func (c Credentials) SecretReference() *xpv2.SecretReference {
	switch {
	case c.OAuthSecretRef != nil:
		return c.OAuthSecretRef
	case c.APIKeySecretRef != nil:
		return &c.APIKeySecretRef.SecretReference
	}
	return nil
}

// Namespace that the credentials are in: that of the Secret or of the service
// account. Empty for the provider's own service account.
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

// A ProviderConfig configures the provider for managed resources of its own
// namespace. Its Secret or service account must be in that namespace.
// +kubebuilder:validation:XValidation:rule="!has(self.spec.credentials.workloadIdentity) || has(self.spec.credentials.workloadIdentity.serviceAccountRef)",message="a ProviderConfig's workloadIdentity must name a serviceAccountRef of its own namespace"
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
