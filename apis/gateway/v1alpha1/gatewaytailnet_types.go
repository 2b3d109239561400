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

// A ClientIdentity is the way in which a listener learns the identity of the client.
// +kubebuilder:validation:Enum=None;ProxyProtocol;Headers
type ClientIdentity string

// Ways to pass the client's identity.
const (
	// ClientIdentityNone passes no identity: Envoy sees the proxy as the client.
	ClientIdentityNone ClientIdentity = "None"
	// ClientIdentityProxyProtocol passes the client's address in the tailnet with the PROXY
	// protocol, version 2. The listener must accept it.
	ClientIdentityProxyProtocol ClientIdentity = "ProxyProtocol"
	// ClientIdentityHeaders passes the client's device, and its user or tags, in headers of
	// each request.
	ClientIdentityHeaders ClientIdentity = "Headers"
)

// A SharedListener is a listener of the Gateway that clients in the tailnet can reach.
type SharedListener struct {
	// Name of the listener.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// VIPPort is the port of the Tailscale Service that leads to the listener. Absent means the
	// listener's port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	VIPPort *int32 `json:"vipPort,omitempty"`

	// Identity is how the listener learns which client sends a request. With ProxyProtocol, a
	// ClientTrafficPolicy must enable the PROXY protocol on the listener. Headers is for
	// listeners of protocol HTTP: the proxy sets X-Forwarded-For and Tailscale-Device-Name; for
	// a user also Tailscale-User-Login, Tailscale-User-Name and Tailscale-User-Profile-Pic; for
	// a tagged device also Tailscale-Device-Tags. The proxy removes these headers from the
	// client's request. At the Gateway's other listeners, the extension configures Envoy to
	// remove all of them except X-Forwarded-For.
	// +kubebuilder:default=None
	// +optional
	Identity ClientIdentity `json:"identity,omitempty"`
}

// A GatewayProxy configures the proxies of a Gateway.
type GatewayProxy struct {
	// Replicas of each proxy StatefulSet.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	ProxyPods `json:",inline"`
}

// A GatewayVIPService holds settings that the Tailscale Services of a Gateway share.
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name)",message="name cannot be set or removed later; create another TailscaleGateway instead"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.sharing) || oldSelf.sharing != 'Shared' || (has(self.sharing) && self.sharing == 'Shared')",message="sharing cannot go back from Shared to Exclusive; create another TailscaleGateway instead"
type GatewayVIPService struct {
	// Name of the Gateway's Tailscale Service. Absent means svc: followed by the name of the
	// TailscaleGateway. Used only when routeSharing is Gateway.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another TailscaleGateway instead"
	// +optional
	Name ServiceName `json:"name,omitempty"`

	// Tags of the services, for grants and for auto-approval.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Comment is the comment that Tailscale's admin console shows.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Comment string `json:"comment,omitempty"`

	// AutoApprove approves the proxies as hosts of the services through Tailscale's API.
	// +kubebuilder:default=true
	// +optional
	AutoApprove *bool `json:"autoApprove,omitempty"`

	// AdoptionPolicy decides about existing services with these names that this object did not
	// create, for example after the cluster was rebuilt. Refuse reports an error. Adopt takes
	// the services over, unless they belong to another object of this cluster. Absent means
	// Refuse.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// DeletionPolicy decides what happens to the services when their routes or this object are
	// deleted. Delete deletes them, unless other clusters share them. Retain keeps them with their
	// names and addresses. Absent means Delete.
	// +optional
	DeletionPolicy VIPServiceDeletionPolicy `json:"deletionPolicy,omitempty"`

	// Sharing is Exclusive for services that belong to this cluster alone, or Shared for
	// services that several clusters define together under the same names. Absent means shared with
	// the clusters of the clusterSet of the TailscaleTailnet, by the TailscaleGateways that have this
	// namespace and name there; without a clusterSet, the services belong to this cluster alone.
	// +optional
	Sharing Sharing `json:"sharing,omitempty"`
}

// A GatewayDiscovery selects services and devices of a tailnet that clients of the Gateway can
// reach.
// +kubebuilder:validation:XValidation:rule="has(self.enabled) && !self.enabled || has(self.patterns) && size(self.patterns) > 0 || has(self.tags) && size(self.tags) > 0",message="set patterns or tags, because all clients of the Gateway can reach the discovered services; the pattern * matches all"
type GatewayDiscovery struct {
	// Enabled turns discovery on.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Sources to search. The default is Services alone, because users choose the names of their
	// devices.
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=Devices;Services
	// +kubebuilder:default={Services}
	// +optional
	Sources []string `json:"sources,omitempty"`

	// Patterns for the name or the DNS name: * matches any characters, ? matches one. A service
	// or device must match one of them. Absent means any name, if tags is set. If neither
	// patterns nor tags is set, nothing is discovered.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Patterns []string `json:"patterns,omitempty"`

	// ExcludePatterns exclude services and devices that match one of them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	ExcludePatterns []string `json:"excludePatterns,omitempty"`

	// Tags of which a service or device must have one. Absent means that tags do not matter, if
	// patterns is set. If neither patterns nor tags is set, nothing is discovered.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Port on which the Gateway connects to the discovered services and devices.
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// Protocol of the port. With HTTPS, the certificates must be valid for the DNS name in the
	// tailnet.
	// +kubebuilder:default=HTTP
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	// +optional
	Protocol EndpointProtocol `json:"protocol,omitempty"`

	// Interval between two searches, at least 5s. It grows while they fail.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="must be at least 5s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// Narrowed reports whether patterns or tags select something. The schema requires one of them,
// but stored objects can be older than that rule.
func (d *GatewayDiscovery) Narrowed() bool { return len(d.Patterns) > 0 || len(d.Tags) > 0 }

// A HostPattern is a host name with the variables {service}, {tailnet}, {domain} and
// {namespace}. The pattern * matches any host.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^([*][.])?([a-z0-9-]|[{](service|tailnet|domain|namespace)[}])+([.]([a-z0-9-]|[{](service|tailnet|domain|namespace)[}])+)*$')",message="must be * for any host, or a DNS name in lower case that may contain {service}, {tailnet}, {domain} and {namespace}"
type HostPattern string

// A PathPattern is a path prefix with the same variables as a HostPattern.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self.matches('^/(([A-Za-z0-9._~!$&()*+,;=:@%-]|[{](service|tailnet|domain|namespace)[}])+/?)*$')",message="must be a path that begins with / and may contain {service}, {tailnet}, {domain} and {namespace}"
type PathPattern string

// IngressRoutes configures generated routes for the Services behind the Gateway's routes, so
// that clients in the tailnet reach each Service by a separate host name or path. For a Service
// behind a GRPCRoute, a GRPCRoute is generated, which supports only the pathPrefix /.
// +kubebuilder:validation:XValidation:rule="!has(self.hostPattern) || self.hostPattern.contains('{service}') || has(self.pathPrefix) && self.pathPrefix.contains('{service}')",message="hostPattern or pathPrefix must contain {service}, so that each service has a different address"
type IngressRoutes struct {
	// HostPattern is the host of a service's route; * matches any host.
	// +kubebuilder:default="{service}.{tailnet}.gateway.local"
	// +optional
	HostPattern HostPattern `json:"hostPattern,omitempty"`

	// PathPrefix of the route. The Gateway removes it before it forwards the request.
	// +kubebuilder:default="/"
	// +optional
	PathPrefix PathPattern `json:"pathPrefix,omitempty"`

	// Protocol of the listeners that the routes attach to.
	// +kubebuilder:default=HTTPS
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	// +optional
	Protocol EndpointProtocol `json:"protocol,omitempty"`
}

// EgressRoutes configures generated routes for services that serviceDiscovery finds in the
// tailnet, and for objects that selector selects.
// +kubebuilder:validation:XValidation:rule="!has(self.hostPattern) || self.hostPattern.contains('{service}') || has(self.pathPrefix) && self.pathPrefix.contains('{service}')",message="hostPattern or pathPrefix must contain {service}, so that each service has a different address"
type EgressRoutes struct {
	// Selector selects TailscaleEndpoints and TailscaleServices of this namespace and tailnet
	// by label. Each entry of endpoints with protocol HTTP, HTTPS or GRPC gets a route, and so
	// does each TailscaleServices. Absent selects none. An empty selector selects all, except
	// objects that a TailscaleGateway composed. All clients of the Gateway can reach the
	// selected objects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// HostPattern is the host of a service's route; * matches any host.
	// +kubebuilder:default="{service}.tailscale.local"
	// +optional
	HostPattern HostPattern `json:"hostPattern,omitempty"`

	// PathPrefix of the route. The Gateway removes it before it forwards the request.
	// +kubebuilder:default="/tailscale/{service}/"
	// +optional
	PathPrefix PathPattern `json:"pathPrefix,omitempty"`

	// Protocol of the listeners that the routes attach to.
	// +kubebuilder:default=HTTP
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	// +optional
	Protocol EndpointProtocol `json:"protocol,omitempty"`
}

// A RouteGeneration configures the routes that are generated for services.
type RouteGeneration struct {
	// Ingress generates routes for the Services behind the Gateway's existing routes. Absent
	// generates none.
	// +optional
	Ingress *IngressRoutes `json:"ingress,omitempty"`

	// Egress generates routes for services that serviceDiscovery finds, and for objects that
	// its selector selects.
	// +kubebuilder:default={}
	// +optional
	Egress *EgressRoutes `json:"egress,omitempty"`
}

// A DomainName is a DNS name in lower case that is not already in use by a tailnet.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`
// +kubebuilder:validation:XValidation:rule="self != 'ts.net' && !self.endsWith('.ts.net')",message="names below ts.net are reserved for tailnets"
// +kubebuilder:validation:XValidation:rule="self.contains('.')",message="a single label would capture all names below it; use a domain of two or more labels"
type DomainName string

// GatewaySplitDNS makes the tailnet's devices resolve hostnames of the Gateway to the addresses
// of its Tailscale Services. The Gateway's proxies answer the queries on port 53 of their
// addresses in the tailnet. The tailnet's policy must grant clients access to that port. Only
// names within allowedNamespaces.domains of the TailscaleTailnet resolve, or within domains of the
// namespace's entry of allowedNamespaces.grants.
type GatewaySplitDNS struct {
	// Domains that the proxies resolve, with all names below them. Names below a domain that no
	// route has do not resolve. Absent means that each hostname is a separate domain. A
	// hostname with a wildcard resolves only below one of these domains.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Domains []DomainName `json:"domains,omitempty"`
}

// A GatewayTailnet connects a Gateway to a tailnet.
type GatewayTailnet struct {
	// Name of the tailnet within this object. It is the value of {tailnet} in patterns and part
	// of the names of composed resources.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// TailscaleTailnetRef references the TailscaleTailnet. Absent means the one with the same
	// name as this entry.
	// +optional
	TailscaleTailnetRef *TailscaleTailnetRef `json:"tailscaleTailnetRef,omitempty"`

	// Proxy configures the proxies that carry traffic between the tailnet and the Gateway.
	// +kubebuilder:default={}
	// +optional
	Proxy GatewayProxy `json:"proxy,omitempty"`

	// Tags of the proxies' machines, in addition to those of the TailscaleTailnet.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// VIPService holds settings that the Tailscale Services share.
	// +kubebuilder:default={}
	// +optional
	VIPService GatewayVIPService `json:"vipService,omitempty"`

	// Listeners that clients in the tailnet can reach. Absent means all listeners that a
	// Tailscale Service can have a port for, including those of ListenerSets, but not UDP
	// listeners. For Gateways that Envoy Gateway merges, listeners of ListenerSets are not
	// included.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Listeners []SharedListener `json:"listeners,omitempty"`

	// ServiceDiscovery discovers services and devices in the tailnet for clients of the
	// Gateway. Absent discovers none.
	// +optional
	ServiceDiscovery *GatewayDiscovery `json:"serviceDiscovery,omitempty"`

	// RouteGeneration configures the routes that are generated for services.
	// +kubebuilder:default={}
	// +optional
	RouteGeneration RouteGeneration `json:"routeGeneration,omitempty"`

	// SplitDNS makes hostnames of routes and listeners resolve in the tailnet. If it is absent,
	// only the names of Tailscale Services resolve. Only hostnames within
	// allowedNamespaces.domains of the TailscaleTailnet resolve, or within domains of the
	// namespace's grant. The tailnet's credential needs the scope dns.
	// +optional
	SplitDNS *GatewaySplitDNS `json:"splitDNS,omitempty"`
}
