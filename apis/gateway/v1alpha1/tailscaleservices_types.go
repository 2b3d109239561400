// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A ServiceName is the name of a Tailscale Service: svc: and a DNS label
// (tailcfg.ServiceName).
// +kubebuilder:validation:MaxLength=67
// +kubebuilder:validation:XValidation:rule="self.matches('^svc:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="must be svc: followed by a DNS label of lower-case letters, digits and dashes"
// +kubebuilder:validation:XValidation:rule="!(self in ['svc:localhost', 'svc:wpad', 'svc:autoconfig', 'svc:isatap', 'svc:teredo', 'svc:autorouter'])",message="is a name that resolvers or clients give a meaning of their own; choose another"
type ServiceName string

// A ServicePort is a TCP port of a Tailscale Service, tcp:PORT, or
// do-not-validate for all ports.
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:XValidation:rule="self == 'do-not-validate' || (self.matches('^tcp:[1-9][0-9]{0,4}$') && int(self.substring(4)) <= 65535)",message="must be tcp:PORT with PORT from 1 to 65535, or do-not-validate; a port of a Tailscale Service is of TCP"
type ServicePort string

// ServicePortAll stands for all ports of all protocols.
const ServicePortAll ServicePort = "do-not-validate"

// Sharing says whether several clusters may define one Tailscale Service.
// +kubebuilder:validation:Enum=Exclusive;Shared
type Sharing string

// Ways to share.
const (
	SharingExclusive Sharing = "Exclusive"
	SharingShared    Sharing = "Shared"
)

// A VIPServiceTemplate is the Tailscale Service to make.
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || size(self.ports) == 1 || !('do-not-validate' in self.ports)",message="do-not-validate stands for all ports; remove the others"
type VIPServiceTemplate struct {
	// Name of the service in the tailnet. Absent means svc: and the object's
	// name.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; make another TailscaleServices instead"
	// +optional
	Name ServiceName `json:"name,omitempty"`

	// DisplayName is shown instead of the name in Tailscale's admin console.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// Enabled makes the Tailscale Service, and so does its absence. When false there is
	// none, nor proxies for it: the object is for routes of Gateways alone, which name it
	// as a backend.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Ports of the service, each tcp:PORT. The one entry do-not-validate means
	// all ports, of UDP too: packets go to the same port of the one backend, and
	// the proxies need networking Kernel. Absent means the ports that backends name;
	// where there are no backends, those of TCP that the Service of the object's name
	// has.
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

	// Comment is shown in Tailscale's admin console.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Comment string `json:"comment,omitempty"`

	// Annotations to set on the service, beside those that others keep there.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && !k.startsWith('gateway.tailscale.com/') && k != 'tailscale.com/owner-references')",message="keys must be at most 128 characters long, not begin with gateway.tailscale.com/ and not be tailscale.com/owner-references: those are kept by the provider"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// RecordTags are the tags of this cluster's own service, which stands for it
	// among the clusters that share the service. Absent means tags. It matters
	// only when sharing is Shared.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	RecordTags []Tag `json:"recordTags,omitempty"`

	// Routes that lead to the service, as KIND/NAMESPACE/NAME, for this cluster's record:
	// other clusters that share the service see them. It matters only when sharing is
	// Shared. A TailscaleGateway fills it in for services that it shares.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=336
	// +optional
	Routes []string `json:"routes,omitempty"`

	// AutoApprove approves the selected proxies as hosts through the API.
	// +kubebuilder:default=true
	// +optional
	AutoApprove *bool `json:"autoApprove,omitempty"`

	// AdoptionPolicy says what to do when a service of this name exists that was not
	// made for this object, such as after the cluster was built again. Refuse reports
	// it, Adopt takes it over, unless another object of this cluster has it. Absent
	// means Refuse.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// An AdoptionPolicy says what to do with a service that exists and is not ours.
// +kubebuilder:validation:Enum=Refuse;Adopt
type AdoptionPolicy string

// Adoption policies.
const (
	AdoptionPolicyRefuse AdoptionPolicy = "Refuse"
	AdoptionPolicyAdopt  AdoptionPolicy = "Adopt"
)

// An EndpointTemplate makes a TailscaleEndpoints when the selector matches none.
// +kubebuilder:validation:XValidation:rule="!has(self.proxy.connectionType) || self.proxy.connectionType != 'egress'",message="proxy.connectionType must be ingress or bidirectional, or absent: egress proxies host no service"
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || (has(self.proxy.networking) && self.proxy.networking == 'Kernel') || !self.ports.exists(p, has(p.protocol) && p.protocol == 'UDP')",message="ports with protocol UDP need proxy.networking Kernel"
type EndpointTemplate struct {
	// Tailnet is the name of the TailscaleTailnet to join.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Tailnet string `json:"tailnet"`

	// Tags of the machines, beside the tailnet's own.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Proxy says how the pods look.
	// +kubebuilder:default={}
	// +optional
	Proxy Proxy `json:"proxy,omitempty"`

	// Ports at which endpoints of the TailscaleEndpoints that name no port of
	// their own are reached.
	// +optional
	Ports EndpointsPorts `json:"ports,omitempty"`

	// Labels of the TailscaleEndpoints, beside those of the selector.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// A ServiceDiscovery says which services of the tailnet to list.
type ServiceDiscovery struct {
	// TagSelectors must all be met.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TagSelectors []EndpointTagSelector `json:"tagSelectors,omitempty"`

	// Names are patterns of which one must match the service's name, with or
	// without svc:, or its DNS name: * stands for any characters, ? for one.
	// Absent means all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Names []string `json:"names,omitempty"`

	// ExcludeNames are patterns of which none may match.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	ExcludeNames []string `json:"excludeNames,omitempty"`
}

// A TailscaleServicesSpec is a Tailscale Service, the proxies that host it, and
// the backends that answer it.
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.endpointTemplate) || has(self.vipService.enabled) && !self.vipService.enabled",message="selector or endpointTemplate is required: it says which proxies host the service; for a service without one set vipService.enabled to false"
// +kubebuilder:validation:XValidation:rule="!has(self.endpointTemplate) || !has(self.selector) || has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0",message="selector.matchLabels must have a label when endpointTemplate is set: endpoints made from the template get it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.sharing) || oldSelf.sharing != 'Shared' || (has(self.sharing) && self.sharing == 'Shared')",message="sharing cannot go back from Shared to Exclusive; delete this TailscaleServices and make another"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.enabled) || self.vipService.enabled || (!has(self.endpointTemplate) && !has(self.serviceDiscovery) && (!has(self.sharing) || self.sharing != 'Shared'))",message="vipService.enabled false leaves no Tailscale Service: remove endpointTemplate, serviceDiscovery and sharing Shared"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.ports) || !('do-not-validate' in self.vipService.ports) || (has(self.backends) && size(self.backends) == 1 && !has(self.backends[0].vipPort))",message="vipService.ports do-not-validate takes one backend, without vipPort"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.ports) || !('do-not-validate' in self.vipService.ports) || (!has(self.tls) && (!has(self.backends) || self.backends.all(b, !has(b.proxyProtocol) && (!has(b.protocol) || b.protocol == 'TCP'))))",message="vipService.ports do-not-validate hands on packets as they come: remove tls, proxyProtocol and protocol HTTP, or name ports"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.ports) || !('do-not-validate' in self.vipService.ports) || !has(self.endpointTemplate) || (has(self.endpointTemplate.proxy.networking) && self.endpointTemplate.proxy.networking == 'Kernel')",message="vipService.ports do-not-validate needs endpointTemplate.proxy.networking Kernel"
// +kubebuilder:validation:XValidation:rule="!has(self.vipService.ports) || !('do-not-validate' in self.vipService.ports) || !has(self.backends) || self.backends.all(b, has(b.port))",message="vipService.ports do-not-validate needs the port of the backend, to probe it"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancing) || !has(self.loadBalancing.weights) || !has(self.backends) || self.backends.all(b, !has(b.weight))",message="set weights either in backends or in loadBalancing.weights"
type TailscaleServicesSpec struct {
	// Selector picks TailscaleEndpoints of the same namespace by label. Absent means
	// those that endpointTemplate makes.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitempty"`

	// VIPService is the Tailscale Service to make.
	// +kubebuilder:default={}
	// +optional
	VIPService VIPServiceTemplate `json:"vipService,omitempty"`

	// Backends that answer. Each port of the service goes to one backend. Absent means
	// the Service of the object's name in its namespace: a port goes to the Service's
	// port of the same number, or to the only port of TCP that it has.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Backends []Backend `json:"backends,omitempty"`

	// LoadBalancing says how traffic is spread over backends.
	// +optional
	LoadBalancing *LoadBalancing `json:"loadBalancing,omitempty"`

	// Sharing is Exclusive for a service of this cluster alone, or Shared for one
	// that several clusters define together, each with a TailscaleServices of the
	// same vipService.name. Exclusive can be changed to Shared, but not back.
	// +kubebuilder:default=Exclusive
	// +optional
	Sharing Sharing `json:"sharing,omitempty"`

	// EndpointTemplate makes a TailscaleEndpoints when the selector matches
	// none, or is absent.
	// +optional
	EndpointTemplate *EndpointTemplate `json:"endpointTemplate,omitempty"`

	// TLS says who ends TLS, and with which certificate. Absent hands on what
	// comes as it is, TLS included.
	// +optional
	TLS *ServiceTLS `json:"tls,omitempty"`

	// ServiceDiscovery lists services of the tailnet in
	// status.discoveredServices. It changes nothing there.
	// +optional
	ServiceDiscovery *ServiceDiscovery `json:"serviceDiscovery,omitempty"`
}

// SelectedHealth counts machines of a TailscaleEndpoints.
type SelectedHealth struct {
	HealthyMachines   int32 `json:"healthyMachines"`
	UnhealthyMachines int32 `json:"unhealthyMachines"`

	// SickWays is how many ways of the TailscaleEndpoints to other clusters Gateways
	// use only when no other is left.
	// +optional
	SickWays int32 `json:"sickWays,omitempty"`
}

// A SelectedEndpoints is a TailscaleEndpoints that the selector picked.
type SelectedEndpoints struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`

	// Machines that are wanted.
	Machines int32 `json:"machines"`

	// Status is Ready when a machine hosts the service, else Pending.
	Status string `json:"status"`

	HealthStatus SelectedHealth `json:"healthStatus"`
}

// A ServiceVIPStatus is the Tailscale Service that was made.
type ServiceVIPStatus struct {
	Created     bool   `json:"created"`
	ServiceName string `json:"serviceName"`

	// Addresses of the service, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName of the service in the tailnet.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// BackendCount is how many machines are to host the service.
	BackendCount int32 `json:"backendCount"`

	// HealthyBackendCount is how many machines host it now.
	HealthyBackendCount int32 `json:"healthyBackendCount"`
}

// RemoteHealth is how the machines of another cluster do that host the service.
type RemoteHealth struct {
	// Ready is how many machines offer the service.
	Ready int32 `json:"ready"`

	// Total is how many machines are to offer it.
	Total int32 `json:"total"`

	// Score is the percentage of backends that answer, from 0 to 100.
	Score int32 `json:"score"`
}

// A RemoteCluster is another cluster that shares the service, as its own record
// in the tailnet says.
type RemoteCluster struct {
	// ClusterID of the cluster.
	ClusterID string `json:"clusterID"`

	// ServiceName is the Tailscale Service that ends in that cluster alone.
	ServiceName string `json:"serviceName"`

	// Addresses of the cluster's own service, IPv4 first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// DNSName of the cluster's own service in the tailnet.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Health of the cluster's machines. Absent while it has none.
	// +optional
	Health *RemoteHealth `json:"health,omitempty"`

	// Alive reports whether one of the cluster's machines is online or was so
	// within the last 30 minutes, or it has named none yet.
	Alive bool `json:"alive"`
}

// A DiscoveredService is a service of the tailnet that serviceDiscovery found.
type DiscoveredService struct {
	// Name of the service, with svc:.
	Name string `json:"name"`

	// DNSName of the service, once the tailnet's domain is known.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Addresses of the service, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// Ports of the service.
	// +listType=atomic
	// +optional
	Ports []string `json:"ports,omitempty"`

	// Tags of the service.
	// +listType=atomic
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// A SickEndpoint is one that Gateways use only when no other is left.
type SickEndpoint struct {
	// Name of its backend, or of the ServiceAttachment that leads to another cluster.
	Name string `json:"name"`

	// Address is host:port.
	Address string `json:"address"`

	// Reason in a few words.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// A FailoverStatus is when requests last went elsewhere, by the clock of the extension.
// It changes only when they do.
type FailoverStatus struct {
	// LastFailover is when local backends last ceased to answer at one of the ports, so
	// that other clusters, or whoever was left, did.
	// +optional
	LastFailover *metav1.Time `json:"lastFailover,omitempty"`

	// LastFailback is when local backends last answered again at all ports.
	// +optional
	LastFailback *metav1.Time `json:"lastFailback,omitempty"`

	// FailoverReason of the last failover: what the first of the endpoints lacked.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	FailoverReason string `json:"failoverReason,omitempty"`
}

// A LoadBalancingStatus is how the endpoints fare that Gateways send requests to, as
// their extension finds out by probes. It changes when one becomes sick or well.
type LoadBalancingStatus struct {
	// ActiveTier is who answers: Local backends, Remote clusters, or whoever is left
	// as the LastResort. Of several ports it is the worst.
	ActiveTier string `json:"activeTier"`

	// Endpoints is how many there are, pods and ways to other clusters, added up over
	// ports that routes name.
	Endpoints int32 `json:"endpoints"`

	// HealthyEndpoints is how many of them are not sick.
	HealthyEndpoints int32 `json:"healthyEndpoints"`

	// SickEndpoints by name and address. At most 16 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	SickEndpoints []SickEndpoint `json:"sickEndpoints,omitempty"`

	// FailoverStatus is absent until a failover.
	// +optional
	FailoverStatus *FailoverStatus `json:"failoverStatus,omitempty"`
}

// A TailscaleServicesStatus is the observed state of a TailscaleServices.
type TailscaleServicesStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// +listType=map
	// +listMapKey=name
	// +optional
	SelectedEndpoints []SelectedEndpoints `json:"selectedEndpoints,omitempty"`

	// +optional
	VIPServiceStatus *ServiceVIPStatus `json:"vipServiceStatus,omitempty"`

	// TotalBackends is how many machines are to host the service.
	// +optional
	TotalBackends *int32 `json:"totalBackends,omitempty"`

	// HealthyBackends is how many machines host it now.
	// +optional
	HealthyBackends *int32 `json:"healthyBackends,omitempty"`

	// LoadBalancingStatus is absent unless routes name the object.
	// +optional
	LoadBalancingStatus *LoadBalancingStatus `json:"loadBalancingStatus,omitempty"`

	// ClusterCount is how many clusters share the service, this one included.
	// Absent unless sharing is Shared.
	// +optional
	ClusterCount *int32 `json:"clusterCount,omitempty"`

	// RemoteClusters are the other clusters that share the service, by cluster
	// ID. At most 64 are listed.
	// +listType=map
	// +listMapKey=clusterID
	// +kubebuilder:validation:MaxItems=64
	// +optional
	RemoteClusters []RemoteCluster `json:"remoteClusters,omitempty"`

	// DiscoveredServices are what serviceDiscovery found, by name. At most 100
	// are listed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	DiscoveredServices []DiscoveredService `json:"discoveredServices,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="VIP",type="string",JSONPath=".status.vipServiceStatus.addresses[0]"
// +kubebuilder:printcolumn:name="DNS-NAME",type="string",JSONPath=".status.vipServiceStatus.dnsName"
// +kubebuilder:printcolumn:name="HEALTHY",type="integer",JSONPath=".status.healthyBackends"
// +kubebuilder:printcolumn:name="BACKENDS",type="integer",JSONPath=".status.totalBackends"
// +kubebuilder:printcolumn:name="ADVERTISED",type="string",JSONPath=".status.conditions[?(@.type=='Advertised')].status"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='Advertised')].reason"
// +kubebuilder:printcolumn:name="CLUSTERS",type="integer",JSONPath=".status.clusterCount",priority=1
// +kubebuilder:resource:scope=Namespaced,path=tailscaleservices,singular=tailscaleservice,categories={tailscale,crossplane},shortName=tssvc
// +kubebuilder:validation:XValidation:rule="has(self.spec.vipService.name) || has(self.spec.vipService.enabled) && !self.spec.vipService.enabled || self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label when spec.vipService.name is absent: it names the Tailscale Service"
// +kubebuilder:validation:XValidation:rule="has(self.spec.vipService.name) || has(self.spec.vipService.enabled) && !self.spec.vipService.enabled || !(self.metadata.name in ['localhost', 'wpad', 'autoconfig', 'isatap', 'teredo', 'autorouter'])",message="metadata.name is one that resolvers or clients give a meaning of their own, and names the Tailscale Service; set spec.vipService.name"

// A TailscaleServices is a Tailscale Service: a name and a virtual IP in the
// tailnet, hosted by the proxies it selects, answered by its backends.
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
