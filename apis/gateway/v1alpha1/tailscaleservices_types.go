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
type ServiceName string

// A ServicePort is a TCP port of a Tailscale Service: tcp:PORT.
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:XValidation:rule="self.matches('^tcp:[1-9][0-9]{0,4}$') && int(self.substring(4)) <= 65535",message="must be tcp:PORT with PORT from 1 to 65535; Tailscale Services carry TCP only"
type ServicePort string

// Sharing says whether several clusters may define one Tailscale Service.
// +kubebuilder:validation:Enum=Exclusive;Shared
type Sharing string

// Ways to share.
const (
	SharingExclusive Sharing = "Exclusive"
	SharingShared    Sharing = "Shared"
)

// A VIPServiceTemplate is the Tailscale Service to make.
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

	// Ports of the service, each tcp:PORT.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Ports []ServicePort `json:"ports"`

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

	// AutoApprove approves the selected proxies as hosts through the API.
	// +kubebuilder:default=true
	// +optional
	AutoApprove *bool `json:"autoApprove,omitempty"`
}

// A BackendKind is the kind of a backend.
// +kubebuilder:validation:Enum=Service
type BackendKind string

// Kinds of backends.
const (
	BackendKindService BackendKind = "Service"
)

// A Backend answers one or more ports of the service.
type Backend struct {
	// Kind of the backend: a Service of the same namespace.
	// +kubebuilder:default=Service
	// +optional
	Kind BackendKind `json:"kind,omitempty"`

	// Name of the backend.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// Port of the backend.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// VIPPort is the port of the Tailscale Service that this backend answers.
	// Absent means every port that no other backend names.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	VIPPort *int32 `json:"vipPort,omitempty"`
}

// A HealthCheck says how proxies probe backends.
type HealthCheck struct {
	// Enabled true asks for path by HTTP. False sends nothing to backends: one
	// is healthy while its name is known, so that a Service without ready pods
	// stays advertised. Absent, a TCP connection is enough.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Path of an HTTP GET that must answer 2xx or 3xx.
	// +kubebuilder:default="/health"
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// Interval between two probes of a healthy backend, such as 10s.
	// +kubebuilder:default="10s"
	// +optional
	Interval metav1.Duration `json:"interval,omitempty"`

	// Timeout of a probe, such as 3s.
	// +kubebuilder:default="3s"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`

	// HealthyThreshold is how many answers in a row make a backend healthy.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	HealthyThreshold int32 `json:"healthyThreshold,omitempty"`

	// UnhealthyThreshold is how many failures in a row make it unhealthy.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	UnhealthyThreshold int32 `json:"unhealthyThreshold,omitempty"`
}

// A Strategy says which backend of a port gets a connection.
// +kubebuilder:validation:Enum=round-robin;least-connections;weighted;failover
type Strategy string

// Strategies.
const (
	StrategyRoundRobin       Strategy = "round-robin"
	StrategyLeastConnections Strategy = "least-connections"
	StrategyWeighted         Strategy = "weighted"
	StrategyFailover         Strategy = "failover"
)

// A BackendName is the name of a backend.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
type BackendName string

// A Weight of a backend among those of the same port.
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=1000000
type Weight int32

// A Failover says which backend takes over when another is sick.
// +kubebuilder:validation:XValidation:rule="!(self.primary in self.secondary)",message="secondary must not list primary"
type Failover struct {
	// Primary is the backend that gets all traffic while it is healthy.
	Primary BackendName `json:"primary"`

	// Secondary backends take over, the first that is healthy.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Secondary []BackendName `json:"secondary"`

	// FailbackDelay is how long primary must be healthy again before it gets
	// traffic, such as 60s.
	// +kubebuilder:default="60s"
	// +optional
	FailbackDelay *metav1.Duration `json:"failbackDelay,omitempty"`
}

// LoadBalancing says how traffic is spread over backends.
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || self.strategy == 'weighted'",message="weights need strategy weighted"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'weighted' || has(self.weights) && size(self.weights) > 0",message="strategy weighted needs weights"
// +kubebuilder:validation:XValidation:rule="has(self.failover) == (self.strategy == 'failover')",message="strategy failover needs failover, and no other strategy takes it"
type LoadBalancing struct {
	// Strategy says which backend of a port gets a connection. A proxy hands
	// each port to one Service, whose pods Kubernetes balances: that is
	// round-robin. Any other strategy needs a Gateway as the backend, and shows
	// Accepted=False with the reason Unsupported until there is one.
	// +kubebuilder:default=round-robin
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	// Weights of backends, by name, when strategy is weighted. One that is not
	// named has the weight 1.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Weights map[string]Weight `json:"weights,omitempty"`

	// Failover says which backend takes over, when strategy is failover.
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// HealthCheck says how proxies probe backends. A service whose backends are
	// all unhealthy is not advertised.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
}

// An EndpointTemplate makes a TailscaleEndpoints when the selector matches none.
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

	// Labels of the TailscaleEndpoints, beside those of the selector.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// A TailscaleServicesSpec is a Tailscale Service, the proxies that host it, and
// the backends that answer it.
// +kubebuilder:validation:XValidation:rule="!has(self.endpointTemplate) || has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0",message="selector.matchLabels must have a label when endpointTemplate is set: endpoints made from the template get it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.sharing) || oldSelf.sharing != 'Shared' || (has(self.sharing) && self.sharing == 'Shared')",message="sharing cannot go back from Shared to Exclusive; delete this TailscaleServices and make another"
type TailscaleServicesSpec struct {
	// Selector picks TailscaleEndpoints of the same namespace by label.
	Selector metav1.LabelSelector `json:"selector"`

	// VIPService is the Tailscale Service to make.
	VIPService VIPServiceTemplate `json:"vipService"`

	// Backends that answer. Each port of the service goes to one backend.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Backends []Backend `json:"backends"`

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
	// none.
	// +optional
	EndpointTemplate *EndpointTemplate `json:"endpointTemplate,omitempty"`
}

// SelectedHealth counts machines of a TailscaleEndpoints.
type SelectedHealth struct {
	HealthyMachines   int32 `json:"healthyMachines"`
	UnhealthyMachines int32 `json:"unhealthyMachines"`
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

	// Alive tells whether one of the cluster's machines is online or was so
	// within the last 30 minutes, or it has named none yet.
	Alive bool `json:"alive"`
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
// +kubebuilder:validation:XValidation:rule="has(self.spec.vipService.name) || self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label when spec.vipService.name is absent: it names the Tailscale Service"

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
