// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A TailscaleTailnetRef names a TailscaleTailnet.
type TailscaleTailnetRef struct {
	// Group of the TailscaleTailnet.
	// +kubebuilder:default=gateway.tailscale.com
	// +kubebuilder:validation:Enum=gateway.tailscale.com
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the TailscaleTailnet.
	// +kubebuilder:default=TailscaleTailnet
	// +kubebuilder:validation:Enum=TailscaleTailnet
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name of the TailscaleTailnet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// A ClientIdentity is how a listener is told who of the tailnet asks.
// +kubebuilder:validation:Enum=None;ProxyProtocol;Headers
type ClientIdentity string

// Ways to tell who asks.
const (
	// ClientIdentityNone tells nothing: Envoy sees the proxy as its client.
	ClientIdentityNone ClientIdentity = "None"
	// ClientIdentityProxyProtocol tells the client's address in the tailnet by the
	// PROXY protocol, version 2. The listener must expect it.
	ClientIdentityProxyProtocol ClientIdentity = "ProxyProtocol"
	// ClientIdentityHeaders tells the device, and its user or its tags, by headers of
	// each request.
	ClientIdentityHeaders ClientIdentity = "Headers"
)

// A SharedListener is a listener of the Gateway that the tailnet reaches.
type SharedListener struct {
	// Name of the listener.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// VIPPort is the port of the Tailscale Service that leads to the listener.
	// Absent means the listener's own.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	VIPPort *int32 `json:"vipPort,omitempty"`

	// Identity is how the listener learns which client sends a request. With ProxyProtocol it must
	// expect the header, by a ClientTrafficPolicy. Headers is for listeners of
	// protocol HTTP: the proxy sets X-Forwarded-For, Tailscale-Device-Name, and of
	// a user Tailscale-User-Login, Tailscale-User-Name and
	// Tailscale-User-Profile-Pic, of a tagged device Tailscale-Device-Tags, and
	// drops what a client sends in them. At the Gateway's other listeners the
	// extension has Envoy drop all but the first.
	// +kubebuilder:default=None
	// +optional
	Identity ClientIdentity `json:"identity,omitempty"`
}

// A GatewayProxy says how the proxies of a Gateway look.
type GatewayProxy struct {
	// Replicas of each proxy StatefulSet.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	ProxyPods `json:",inline"`
}

// A GatewayVIPService is what Tailscale Services of a Gateway have in common.
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name)",message="name cannot be set or removed later; make another TailscaleGateway instead"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.sharing) || oldSelf.sharing != 'Shared' || (has(self.sharing) && self.sharing == 'Shared')",message="sharing cannot go back from Shared to Exclusive; make another TailscaleGateway instead"
type GatewayVIPService struct {
	// Name of the Gateway's Tailscale Service. Absent means svc: and the name of
	// the TailscaleGateway. It matters only when routeSharing is Gateway.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; make another TailscaleGateway instead"
	// +optional
	Name ServiceName `json:"name,omitempty"`

	// Tags of the services, for grants and for auto-approval.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Comment is shown in Tailscale's admin console.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Comment string `json:"comment,omitempty"`

	// AutoApprove approves the proxies as hosts through the API.
	// +kubebuilder:default=true
	// +optional
	AutoApprove *bool `json:"autoApprove,omitempty"`

	// AdoptionPolicy says what to do when services of these names exist that were not made
	// for this object, such as after the cluster was built again. Refuse reports them,
	// Adopt takes them over, unless another object of this cluster has them. Absent means
	// Refuse.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// Sharing is Exclusive for services of this cluster alone, or Shared for those
	// that several clusters define together by the same names.
	// +kubebuilder:default=Exclusive
	// +optional
	Sharing Sharing `json:"sharing,omitempty"`
}

// A GatewayDiscovery says which services and devices of a tailnet the Gateway's
// clients reach.
// +kubebuilder:validation:XValidation:rule="has(self.enabled) && !self.enabled || has(self.patterns) && size(self.patterns) > 0 || has(self.tags) && size(self.tags) > 0",message="set patterns or tags: what is found is reachable by all clients of the Gateway. Patterns of * alone stand for all"
type GatewayDiscovery struct {
	// Enabled turns discovery on.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Sources to look in. Services alone are the default: users choose the names of
	// their devices.
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=Devices;Services
	// +kubebuilder:default={Services}
	// +optional
	Sources []string `json:"sources,omitempty"`

	// Patterns of which one must match the name or the DNS name: * stands for any
	// characters, ? for one. Absent means all that has one of the tags. Without patterns
	// and tags nothing is found.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Patterns []string `json:"patterns,omitempty"`

	// ExcludePatterns are patterns of which none may match.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	ExcludePatterns []string `json:"excludePatterns,omitempty"`

	// Tags of which a service or device must have one. Absent means any, or none. Without
	// patterns and tags nothing is found.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Port at which what is found is asked.
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// Protocol that is spoken at the port. Of HTTPS, certificates must be for the
	// DNS name in the tailnet.
	// +kubebuilder:default=HTTP
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	// +optional
	Protocol EndpointProtocol `json:"protocol,omitempty"`

	// Interval between two looks, at least 5s. It grows while they fail.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="must be at least 5s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// Narrowed reports whether patterns or tags say what is to be found. The schema asks for
// them, but not of what was stored before it did.
func (d *GatewayDiscovery) Narrowed() bool { return len(d.Patterns) > 0 || len(d.Tags) > 0 }

// A HostPattern is a host name with variables: {service}, {tailnet}, {domain} and
// {namespace}. A * alone stands for any host.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^([*][.])?([a-z0-9-]|[{](service|tailnet|domain|namespace)[}])+([.]([a-z0-9-]|[{](service|tailnet|domain|namespace)[}])+)*$')",message="must be * for any host, or a DNS name in lower case, in which {service}, {tailnet}, {domain} and {namespace} may stand"
type HostPattern string

// A PathPattern is a path prefix with variables, the same as a HostPattern's.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self.matches('^/(([A-Za-z0-9._~!$&()*+,;=:@%-]|[{](service|tailnet|domain|namespace)[}])+/?)*$')",message="must begin with / and be a path, in which {service}, {tailnet}, {domain} and {namespace} may stand"
type PathPattern string

// IngressRoutes are generated for the Services behind the Gateway's routes, so that
// clients in the tailnet ask for them by a name of their own. A Service behind a GRPCRoute
// has a GRPCRoute, which takes no pathPrefix but /.
// +kubebuilder:validation:XValidation:rule="!has(self.hostPattern) || self.hostPattern.contains('{service}') || has(self.pathPrefix) && self.pathPrefix.contains('{service}')",message="hostPattern or pathPrefix must have {service}: else all services would have one address"
type IngressRoutes struct {
	// HostPattern is the host of the route of a service; * stands for any.
	// +kubebuilder:default="{service}.{tailnet}.gateway.local"
	// +optional
	HostPattern HostPattern `json:"hostPattern,omitempty"`

	// PathPrefix of the route. It is cut off from what the service is asked for.
	// +kubebuilder:default="/"
	// +optional
	PathPrefix PathPattern `json:"pathPrefix,omitempty"`

	// Protocol of the listeners that the routes attach to.
	// +kubebuilder:default=HTTPS
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	// +optional
	Protocol EndpointProtocol `json:"protocol,omitempty"`
}

// EgressRoutes are generated for what serviceDiscovery finds in the tailnet, and for what
// selector picks.
// +kubebuilder:validation:XValidation:rule="!has(self.hostPattern) || self.hostPattern.contains('{service}') || has(self.pathPrefix) && self.pathPrefix.contains('{service}')",message="hostPattern or pathPrefix must have {service}: else all services would have one address"
type EgressRoutes struct {
	// Selector picks TailscaleEndpoints and TailscaleServices of this namespace and
	// tailnet by label: each entry of endpoints that speaks HTTP, HTTPS or GRPC gets a
	// route, and each TailscaleServices. Absent picks none, and an empty one all, but
	// nothing that a TailscaleGateway composed. All clients of the Gateway reach them.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// HostPattern is the host of the route of a service; * stands for any.
	// +kubebuilder:default="{service}.tailscale.local"
	// +optional
	HostPattern HostPattern `json:"hostPattern,omitempty"`

	// PathPrefix of the route. It is cut off from what the service is asked for.
	// +kubebuilder:default="/tailscale/{service}/"
	// +optional
	PathPrefix PathPattern `json:"pathPrefix,omitempty"`

	// Protocol of the listeners that the routes attach to.
	// +kubebuilder:default=HTTP
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	// +optional
	Protocol EndpointProtocol `json:"protocol,omitempty"`
}

// A RouteGeneration says which routes are made for services.
type RouteGeneration struct {
	// Ingress makes routes for the Services behind the Gateway's own routes.
	// Absent makes none.
	// +optional
	Ingress *IngressRoutes `json:"ingress,omitempty"`

	// Egress makes routes for what serviceDiscovery finds, and for what its selector picks.
	// +kubebuilder:default={}
	// +optional
	Egress *EgressRoutes `json:"egress,omitempty"`
}

// A DomainName is a DNS name in lower case that no tailnet has already.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`
// +kubebuilder:validation:XValidation:rule="self != 'ts.net' && !self.endsWith('.ts.net')",message="names below ts.net are the tailnet's own"
// +kubebuilder:validation:XValidation:rule="self.contains('.')",message="one label alone would take all names below it; name a domain of two labels or more"
type DomainName string

// GatewaySplitDNS has the tailnet's devices resolve hostnames of the Gateway to the
// addresses of its Tailscale Services. Its proxies answer, at port 53 of their addresses
// in the tailnet, which clients must be granted.
type GatewaySplitDNS struct {
	// Domains that are asked for at the proxies, with all names below them: those
	// which no route has do not exist then. Absent means each hostname by itself. A
	// hostname with a wildcard is resolved only below one of these.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Domains []DomainName `json:"domains,omitempty"`
}

// A GatewayTailnet is a tailnet that a Gateway is joined to.
type GatewayTailnet struct {
	// Name of the tailnet here: it stands for {tailnet} in patterns, and is part
	// of the names of what is composed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// TailscaleTailnetRef names the TailscaleTailnet. Absent means the one called
	// like this entry.
	// +optional
	TailscaleTailnetRef *TailscaleTailnetRef `json:"tailscaleTailnetRef,omitempty"`

	// Proxy says how the proxies look that carry traffic between the tailnet and
	// the Gateway.
	// +kubebuilder:default={}
	// +optional
	Proxy GatewayProxy `json:"proxy,omitempty"`

	// Tags of the proxies' machines, beside the tailnet's own.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// VIPService is what the Tailscale Services have in common.
	// +kubebuilder:default={}
	// +optional
	VIPService GatewayVIPService `json:"vipService,omitempty"`

	// Listeners that the tailnet reaches. Absent means all that a Tailscale
	// Service can have a port for, those of ListenerSets included: all but those
	// of UDP. Of Gateways that are merged into one, those of ListenerSets are not
	// among them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Listeners []SharedListener `json:"listeners,omitempty"`

	// ServiceDiscovery finds services and devices in the tailnet for the Gateway's
	// clients. Absent finds none.
	// +optional
	ServiceDiscovery *GatewayDiscovery `json:"serviceDiscovery,omitempty"`

	// RouteGeneration says which routes are made for services.
	// +kubebuilder:default={}
	// +optional
	RouteGeneration RouteGeneration `json:"routeGeneration,omitempty"`

	// SplitDNS has hostnames of routes and listeners resolve in the tailnet. Absent,
	// only the names of Tailscale Services do. The tailnet's credential needs the
	// scope dns.
	// +optional
	SplitDNS *GatewaySplitDNS `json:"splitDNS,omitempty"`
}
