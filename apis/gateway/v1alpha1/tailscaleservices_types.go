// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A ServiceName is the name of a Tailscale Service: svc: and a DNS label
// (tailcfg.ServiceName).
// +kubebuilder:validation:MaxLength=67
// +kubebuilder:validation:XValidation:rule="self.matches('^svc:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="must be svc: followed by a DNS label of lower-case letters, digits and dashes"
// +kubebuilder:validation:XValidation:rule="!(self in ['svc:localhost', 'svc:wpad', 'svc:autoconfig', 'svc:isatap', 'svc:teredo', 'svc:autorouter'])",message="is a reserved name with a special meaning for resolvers or clients; choose another"
type ServiceName string

// A ServicePort is a TCP port of a Tailscale Service, tcp:PORT, or
// do-not-validate for all ports.
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:XValidation:rule="self == 'do-not-validate' || (self.matches('^tcp:[1-9][0-9]{0,4}$') && int(self.substring(4)) <= 65535)",message="must be tcp:PORT with PORT from 1 to 65535, or do-not-validate; Tailscale Services support only TCP ports"
type ServicePort string

// ServicePortAll stands for all ports of all protocols.
const ServicePortAll ServicePort = "do-not-validate"

// Sharing decides whether several clusters may define one Tailscale Service.
// +kubebuilder:validation:Enum=Exclusive;Shared
type Sharing string

// Sharing modes.
const (
	SharingExclusive Sharing = "Exclusive"
	SharingShared    Sharing = "Shared"
)

// A VIPServiceTemplate configures the Tailscale Service to create.
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || size(self.ports) == 1 || !('do-not-validate' in self.ports)",message="do-not-validate means all ports; remove the other entries"
type VIPServiceTemplate struct {
	// Name of the service in the tailnet. Absent means svc: followed by the object's name.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another TailscaleServices instead"
	// +optional
	Name ServiceName `json:"name,omitempty"`

	// DisplayName is the name that Tailscale's admin console shows instead of the service's
	// name.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// Enabled creates the Tailscale Service; absent means true. If it is false, there is no
	// Tailscale Service and no proxies for it: the object is only a backend for routes of
	// Gateways.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Ports of the service, each as tcp:PORT. The single entry do-not-validate means all ports,
	// including UDP: packets go to the same port of the one backend, and the proxies need
	// networking Kernel. Absent means the ports that backends set; without backends, the TCP
	// ports of the Service with the object's name.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Ports []ServicePort `json:"ports,omitempty"`

	// Tags of the service, for grants and for auto-approval.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Comment is the comment that Tailscale's admin console shows.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Comment string `json:"comment,omitempty"`

	// Annotations to set on the service. Other annotations of the service are kept.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && !k.startsWith('gateway.tailscale.com/') && k != 'tailscale.com/owner-references')",message="keys must be at most 128 characters long, not begin with gateway.tailscale.com/ and not be tailscale.com/owner-references: the provider manages those"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// RecordTags are the tags of this cluster's service, which represents the cluster among the
	// clusters that share the service. Absent means tags. Used only when sharing is Shared.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	RecordTags []Tag `json:"recordTags,omitempty"`

	// Routes that lead to the service, as KIND/NAMESPACE/NAME. They are part of this cluster's
	// record, which other clusters that share the service can read, together with the routes of
	// status.routes, at most 64 in all. Used only when the service is shared. A TailscaleGateway sets it
	// for services that it creates.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=336
	// +optional
	Routes []string `json:"routes,omitempty"`

	// Export describes the Service of this cluster in its record, for the clusters of the set that import
	// it by the Multi-Cluster Services API. The controller of ServiceExports sets it. Used only when the
	// service is shared.
	// +optional
	Export *tailnetv1alpha1.ExportedService `json:"export,omitempty"`

	// AutoApprove approves the selected proxies as hosts of the service through Tailscale's
	// API.
	// +kubebuilder:default=true
	// +optional
	AutoApprove *bool `json:"autoApprove,omitempty"`

	// AdoptionPolicy decides about an existing service with this name that this object did not
	// create, for example after the cluster was rebuilt. Refuse reports an error. Adopt takes
	// the service over, unless it belongs to another object of this cluster. Absent means
	// Refuse.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// DeletionPolicy decides what happens to the Tailscale Service when this object is deleted.
	// Delete deletes it, unless other clusters share it. Retain keeps it with its name and
	// addresses, without hosts: the same object of the same cluster ID gets it back, and another
	// one takes it over with adoptionPolicy Adopt. Absent means Delete.
	// +optional
	DeletionPolicy VIPServiceDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// A VIPServiceDeletionPolicy decides what happens to a Tailscale Service when its object is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type VIPServiceDeletionPolicy string

// Deletion policies of Tailscale Services.
const (
	VIPServiceDelete VIPServiceDeletionPolicy = "Delete"
	VIPServiceRetain VIPServiceDeletionPolicy = "Retain"
)

// An AdoptionPolicy decides about an existing service that the object did not create.
// +kubebuilder:validation:Enum=Refuse;Adopt
type AdoptionPolicy string

// Adoption policies.
const (
	AdoptionPolicyRefuse AdoptionPolicy = "Refuse"
	AdoptionPolicyAdopt  AdoptionPolicy = "Adopt"
)

// An EndpointTemplate creates a TailscaleEndpoints when the selector matches none.
// +kubebuilder:validation:XValidation:rule="!has(self.proxy.connectionType) || self.proxy.connectionType != 'egress'",message="proxy.connectionType must be ingress or bidirectional, or absent: egress proxies host no service"
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || (has(self.proxy.networking) && self.proxy.networking == 'Kernel') || !self.ports.exists(p, has(p.protocol) && p.protocol == 'UDP')",message="ports with protocol UDP need proxy.networking Kernel"
type EndpointTemplate struct {
	// Tailnet is the name of the TailscaleTailnet to join.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Tailnet string `json:"tailnet"`

	// Tags of the machines, in addition to those of the TailscaleTailnet.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Proxy configures the pods.
	// +kubebuilder:default={}
	// +optional
	Proxy Proxy `json:"proxy,omitempty"`

	// Ports of the TailscaleEndpoints. If it has some, its proxies host only services all of whose
	// ports are among them.
	// +optional
	Ports EndpointsPorts `json:"ports,omitempty"`

	// Labels of the TailscaleEndpoints, in addition to those of the selector.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// A ServiceDiscovery selects services of the tailnet to list.
type ServiceDiscovery struct {
	// TagSelectors are requirements that a service must all meet.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TagSelectors []EndpointTagSelector `json:"tagSelectors,omitempty"`

	// Names are patterns for the service's name, with or without svc:, or its DNS name: *
	// matches any characters, ? matches one. A service must match one of them. Absent means
	// all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Names []string `json:"names,omitempty"`

	// ExcludeNames exclude services that match one of them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	ExcludeNames []string `json:"excludeNames,omitempty"`
}

// A TailscaleServicesSpec describes a Tailscale Service, the proxies that host it, and its
// backends.
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.endpointTemplate) || has(self.vipService.enabled) && !self.vipService.enabled",message="selector or endpointTemplate is required to select the proxies that host the service; set vipService.enabled to false for an object without a Tailscale Service"
// +kubebuilder:validation:XValidation:rule="!has(self.endpointTemplate) || !has(self.selector) || has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0",message="selector.matchLabels must have a label when endpointTemplate is set: endpoints created from the template get it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.sharing) || oldSelf.sharing != 'Shared' || (has(self.sharing) && self.sharing == 'Shared')",message="sharing cannot go back from Shared to Exclusive; delete this TailscaleServices and create another"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.enabled) || self.vipService.enabled || (!has(self.endpointTemplate) && !has(self.serviceDiscovery) && (!has(self.sharing) || self.sharing != 'Shared'))",message="vipService.enabled false leaves no Tailscale Service: remove endpointTemplate, serviceDiscovery and sharing Shared"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.ports) || !('do-not-validate' in self.vipService.ports) || (has(self.backends) && size(self.backends) == 1 && !has(self.backends[0].vipPort))",message="vipService.ports do-not-validate needs exactly one backend, without vipPort"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.ports) || !('do-not-validate' in self.vipService.ports) || (!has(self.tls) && (!has(self.backends) || self.backends.all(b, !has(b.proxyProtocol) && (!has(b.protocol) || b.protocol == 'TCP'))))",message="vipService.ports do-not-validate forwards packets unchanged: remove tls, proxyProtocol and protocol HTTP or HTTPS, or name ports"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.ports) || !('do-not-validate' in self.vipService.ports) || !has(self.endpointTemplate) || (has(self.endpointTemplate.proxy.networking) && self.endpointTemplate.proxy.networking == 'Kernel')",message="vipService.ports do-not-validate needs endpointTemplate.proxy.networking Kernel"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.ports) || !('do-not-validate' in self.vipService.ports) || !has(self.backends) || self.backends.all(b, has(b.port))",message="vipService.ports do-not-validate needs the port of the backend, to probe it"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancing) || !has(self.loadBalancing.weights) || !has(self.backends) || self.backends.all(b, !has(b.weight))",message="set weights either in backends or in loadBalancing.weights"
type TailscaleServicesSpec struct {
	// Selector selects TailscaleEndpoints of the same namespace by label. Absent means those
	// that endpointTemplate creates.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitempty"`

	// VIPService configures the Tailscale Service to create.
	// +kubebuilder:default={}
	// +optional
	VIPService VIPServiceTemplate `json:"vipService,omitempty"`

	// Backends of the service. Several backends of one port share its traffic: up to 16, with the
	// same protocol and proxyProtocol, unless only Gateways use them. Absent means the Service with
	// the object's name in its namespace: a port goes to the Service's port of the same number, or
	// to its only TCP port.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Backends []Backend `json:"backends,omitempty"`

	// LoadBalancing distributes traffic over backends.
	// +optional
	LoadBalancing *LoadBalancing `json:"loadBalancing,omitempty"`

	// Sharing is Exclusive for a service that belongs to this cluster alone, or Shared for a
	// service that several clusters define together, each with a TailscaleServices of the same
	// vipService.name. Absent means shared with the clusters of the clusterSet of the
	// TailscaleTailnet, by the TailscaleServices that have this namespace and name there; without a
	// clusterSet, the service belongs to this cluster alone. A service that is shared stays so:
	// Shared cannot be removed, and Exclusive has no effect on a service that a set shares.
	// +optional
	Sharing Sharing `json:"sharing,omitempty"`

	// Drain hands the service to the other clusters that share it, for maintenance: Gateways of this
	// cluster send requests to other clusters first, and proxies of this cluster withdraw the service
	// once a proxy of another cluster, which does not drain, is known to serve all ports. They serve
	// again when there is no such proxy, and when Drain is removed. The condition Drained reports the
	// progress.
	// +optional
	Drain bool `json:"drain,omitempty"`

	// Fencing withdraws the approval of a proxy that a majority of other proxies has lost, so that
	// Tailscale moves the service to another proxy within seconds, instead of minutes, after a node
	// failed. Proxies on other Kubernetes nodes, and those of other clusters that share the service and
	// have fencing, watch each proxy. The condition FencingReady reports whether they can.
	// Experimental, and not yet measured in a real tailnet.
	// +optional
	Fencing bool `json:"fencing,omitempty"`

	// EndpointTemplate creates a TailscaleEndpoints when the selector matches none, or is
	// absent.
	// +optional
	EndpointTemplate *EndpointTemplate `json:"endpointTemplate,omitempty"`

	// TLS configures TLS termination and its certificate. Absent forwards connections
	// unchanged, including TLS.
	// +optional
	TLS *ServiceTLS `json:"tls,omitempty"`

	// ServiceDiscovery lists services of the tailnet in status.discoveredServices. It has no
	// other effect.
	// +optional
	ServiceDiscovery *ServiceDiscovery `json:"serviceDiscovery,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="VIP",type="string",JSONPath=".status.vipServiceStatus.addresses[0]"
// +kubebuilder:printcolumn:name="DNS-NAME",type="string",JSONPath=".status.vipServiceStatus.dnsName"
// +kubebuilder:printcolumn:name="HOSTS",type="integer",JSONPath=".status.healthyBackends"
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.totalBackends"
// +kubebuilder:printcolumn:name="ADVERTISED",type="string",JSONPath=".status.conditions[?(@.type=='Advertised')].status"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='Advertised')].reason"
// +kubebuilder:printcolumn:name="CLUSTERS",type="integer",JSONPath=".status.clusterCount",priority=1
// +kubebuilder:resource:scope=Namespaced,path=tailscaleservices,singular=tailscaleservice,categories={tailscale,crossplane},shortName=tssvc
// +kubebuilder:validation:XValidation:rule="has(self.spec.vipService.name) || has(self.spec.vipService.enabled) && !self.spec.vipService.enabled || self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label when spec.vipService.name is absent: it names the Tailscale Service"
// +kubebuilder:validation:XValidation:rule="has(self.spec.vipService.name) || has(self.spec.vipService.enabled) && !self.spec.vipService.enabled || !(self.metadata.name in ['localhost', 'wpad', 'autoconfig', 'isatap', 'teredo', 'autorouter'])",message="metadata.name is the name of the Tailscale Service, and has a special meaning for resolvers or clients; set spec.vipService.name"

// A TailscaleServices is a Tailscale Service: a name and a virtual IP address in the tailnet,
// which the selected proxies host and backends serve.
type TailscaleServices struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailscaleServicesSpec   `json:"spec"`
	Status TailscaleServicesStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// TailscaleServicesList is a list of TailscaleServices.
type TailscaleServicesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleServices `json:"items"`
}

// TailscaleServicesKind is the kind of a TailscaleServices.
const TailscaleServicesKind = "TailscaleServices"

func init() {
	register(&TailscaleServices{}, &TailscaleServicesList{})
}
