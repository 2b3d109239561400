// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// A ZoneRef references a ConfigMap that holds the names that proxies resolve.
type ZoneRef struct {
	// Name of the ConfigMap, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// EndpointsDNS configures DNS names that proxies resolve.
type EndpointsDNS struct {
	// ZoneRef references the ConfigMap that holds the names. A TailscaleGateway with splitDNS
	// creates one.
	ZoneRef ZoneRef `json:"zoneRef"`
}

// A TailscaleEndpointsSpec is a group of proxies that appear as machines in a
// tailnet.
// +kubebuilder:validation:XValidation:rule="!has(self.dns) || !has(self.proxy.connectionType) || self.proxy.connectionType != 'egress'",message="dns needs proxy.connectionType ingress or bidirectional, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.endpoints) || size(self.endpoints) == 0 || !has(self.proxy.connectionType) || self.proxy.connectionType != 'ingress' || self.endpoints.all(e, has(e.externalTarget))",message="endpoints with tailscaleIP or tailscaleFQDN need proxy.connectionType egress or bidirectional, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.endpoints) || (has(self.proxy.networking) && self.proxy.networking == 'Kernel') || !self.endpoints.exists(e, has(e.protocol) && e.protocol == 'UDP')",message="endpoints with protocol UDP need proxy.networking Kernel"
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || (has(self.proxy.networking) && self.proxy.networking == 'Kernel') || !self.ports.exists(p, has(p.protocol) && p.protocol == 'UDP')",message="ports with protocol UDP need proxy.networking Kernel"
// +kubebuilder:validation:XValidation:rule="!has(self.endpoints) || !has(self.proxy.networkPolicy) || self.proxy.networkPolicy.enabled || !self.endpoints.exists(e, has(e.clients))",message="endpoints with clients need proxy.networkPolicy.enabled"
// +kubebuilder:validation:XValidation:rule="!has(self.autoDiscovery) || !has(self.proxy.connectionType) || self.proxy.connectionType != 'ingress'",message="autoDiscovery needs proxy.connectionType egress or bidirectional, or none"
type TailscaleEndpointsSpec struct {
	// Tailnet is the name of the TailscaleTailnet to join. Absent means the only TailscaleTailnet
	// that allows the namespace; status.tailnet has its name. If several do, none is joined, and
	// the condition TailnetAccepted lists them. Proxies stay in the tailnet that they joined.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another TailscaleEndpoints instead"
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// Tags of the machines, in addition to those of the TailscaleTailnet.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Proxy configures the pods.
	// +kubebuilder:default={}
	// +optional
	Proxy Proxy `json:"proxy,omitempty"`

	// Ports that the proxies serve. Ingress proxies host only services all of whose ports are in
	// the list; absent means all services. Egress proxies use the list for endpoints that set no
	// port, and for discovered endpoints; absent means that discovered endpoints use the ports of
	// the discovered service, or 80 if it has no numeric ports. With both directions, the list
	// has both meanings. name, targetPort and the protocol of an entry are for egress, but an
	// entry of protocol UDP allows no service.
	// +optional
	Ports EndpointsPorts `json:"ports,omitempty"`

	// Endpoints are targets in the tailnet, or behind it, that the cluster reaches through
	// egress proxies. Each target gets a Service in this namespace, called NAME-ENDPOINT with
	// the object's name as NAME. If a Service with that name exists, a hash is appended;
	// status.egressTargets shows the name. Each target can be a backend of a route.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Endpoints []Endpoint `json:"endpoints,omitempty"`

	// AutoDiscovery adds devices and services of the tailnet to endpoints.
	// +optional
	AutoDiscovery *AutoDiscovery `json:"autoDiscovery,omitempty"`

	// DNS makes the ingress proxies resolve names on port 53 of their addresses in the tailnet.
	// +optional
	DNS *EndpointsDNS `json:"dns,omitempty"`
}

// An EndpointProtocol is the protocol of a port.
// +kubebuilder:validation:Enum=TCP;UDP;HTTP;HTTPS;GRPC;TLS
type EndpointProtocol string

// Protocols of ports. All except UDP use TCP.
const (
	EndpointProtocolTCP   EndpointProtocol = "TCP"
	EndpointProtocolUDP   EndpointProtocol = "UDP"
	EndpointProtocolHTTP  EndpointProtocol = "HTTP"
	EndpointProtocolHTTPS EndpointProtocol = "HTTPS"
	EndpointProtocolGRPC  EndpointProtocol = "GRPC"
	EndpointProtocolTLS   EndpointProtocol = "TLS"
)

// EndpointsPorts are the ports of endpoints.
// +listType=map
// +listMapKey=port
// +listMapKey=protocol
// +kubebuilder:validation:MaxItems=16
// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.port == p.port && (has(q.protocol) && q.protocol == 'UDP') == (has(p.protocol) && p.protocol == 'UDP')))",message="two entries have the same port; only TCP and UDP can share one"
// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || self.exists_one(q, has(q.name) && q.name == p.name))",message="two entries have the same name; the name is optional"
type EndpointsPorts []EndpointsPort

// An EndpointsPort is a port of endpoints.
type EndpointsPort struct {
	// Name of the port, unique among the ports that have one. Absent means PROTOCOL-PORT in
	// lower case, such as tcp-5432.
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Name string `json:"name,omitempty"`

	// Port that clients in the cluster connect to.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// Protocol of the port.
	// +kubebuilder:default=TCP
	// +optional
	Protocol EndpointProtocol `json:"protocol,omitempty"`

	// TargetPort is the port of the target. Absent means port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	TargetPort *int32 `json:"targetPort,omitempty"`
}

// An Endpoint is a target in the tailnet, or behind it.
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || !has(self.port) && !has(self.externalTarget)",message="ports replaces port, and an externalTarget has one port; remove ports or the other one"
// +kubebuilder:validation:XValidation:rule="[has(self.externalTarget), has(self.tailscaleCIDR), has(self.tailscaleIP) || has(self.tailscaleFQDN)].filter(x, x).size() == 1",message="set tailscaleIP, tailscaleFQDN or both, or else tailscaleCIDR, or else externalTarget"
// +kubebuilder:validation:XValidation:rule="!has(self.externalTarget) || !has(self.port) || int(self.externalTarget.substring(self.externalTarget.lastIndexOf(':') + 1)) == self.port",message="the port of an externalTarget is part of it; remove port, or set the same"
type Endpoint struct {
	// Name of the endpoint, unique among endpoints.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// TailscaleIP is an address that is reached through the tailnet: that of a device, of a
	// Tailscale Service, or of a host behind a subnet router.
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address; a range goes into tailscaleCIDR"
	// +optional
	TailscaleIP string `json:"tailscaleIP,omitempty"`

	// TailscaleCIDR is a range of addresses that are reached through the tailnet, such as hosts
	// behind a subnet router. Each address becomes an endpoint NAME-ADDRESS, such as
	// plc-10-1-1-7, or NAME-GROUP with the last group of an IPv6 address. It has this endpoint's
	// other fields, and a Service: a connection to a Service does not show which address of a
	// range its client means. The first and the last address of an IPv4 range are left out,
	// unless there are only one or two.
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a range such as 10.1.1.0/28, whose address has no bits beyond the prefix"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self).prefixLength() >= (cidr(self).ip().family() == 4 ? 24 : 120)",message="must have at most 256 addresses: each becomes an endpoint with a Service"
	// +optional
	TailscaleCIDR string `json:"tailscaleCIDR,omitempty"`

	// TailscaleFQDN is the DNS name of a device or of a Tailscale Service in the tailnet, such
	// as db.tail1234.ts.net. If tailscaleIP is also set, proxies connect to the address, TLS
	// uses the name, and the condition EgressReady reports an address that has another name in
	// the tailnet.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+\.?$`
	// +optional
	TailscaleFQDN string `json:"tailscaleFQDN,omitempty"`

	// ExternalTarget is HOST:PORT of any host. If the host is an address or a name of the
	// tailnet, traffic goes through the egress proxies. Otherwise there is no proxy: a Gateway
	// whose route references this object connects to the host directly, once a machine of this
	// object has joined the tailnet and the tailnet's domain is known, and if the value
	// directTargets of the extension's chart permits it. A Service of another namespace, by
	// name or by address, needs a ReferenceGrant in that namespace, from TailscaleEndpoints to
	// Service.
	// +kubebuilder:validation:MaxLength=260
	// +kubebuilder:validation:Pattern=`^(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`
	// +kubebuilder:validation:XValidation:rule="[self.startsWith('[') ? self.substring(1, self.indexOf(']')) : self.split(':')[0]].all(h, isIP(h) ? ip(h).isGlobalUnicast() && (ip(h).family() == 4 ? !cidr('0.0.0.0/8').containsIP(h) : ['64:ff9b::7f00:0/104', '64:ff9b::a9fe:0/112', '64:ff9b::/104', '64:ff9b::e000:0/100', '64:ff9b::ffff:ffff/128', '2002:7f00::/24', '2002:a9fe::/32', '2002::/24', '2002:e000::/20', '2002:ffff:ffff::/48'].all(c, !cidr(c).containsIP(h))) : !h.contains(':') && !h.matches('^([^.]+[.])*[lL][oO][cC][aA][lL][hH][oO][sS][tT][.]?$'))",message="must not be a loopback, unspecified, link-local, multicast or broadcast address, nor another form of one: the connecting machine or its node would answer"
	// +optional
	ExternalTarget string `json:"externalTarget,omitempty"`

	// Port of the target. Absent means each of ports, or, if that is absent too, each of
	// spec.ports. With externalTarget, port can only repeat the target's.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Ports of the target, if it has several. Its Service has all of them.
	// +optional
	Ports EndpointsPorts `json:"ports,omitempty"`

	// Protocol of port, or of the externalTarget.
	// +kubebuilder:default=TCP
	// +optional
	Protocol EndpointProtocol `json:"protocol,omitempty"`

	// Tags that the device with the target's address must have. The proxies refuse a target
	// whose device lacks one of them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Weight among the endpoints of this object when it is a route's backend.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`

	// HealthCheck configures how the proxies probe the target through the tailnet. Absent means
	// that a target is healthy while a device of the tailnet has its address.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`

	// ServiceLabels are labels of the endpoint's Service. Kubernetes copies them to the
	// EndpointSlices of the Service.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !k.startsWith('gateway.tailscale.com/') && !k.startsWith('tailnet.gateway.tailscale.com/') && !k.startsWith('crossplane.io/'))",message="labels of gateway.tailscale.com and crossplane.io are reserved; use another prefix"
	// +optional
	ServiceLabels map[string]tailnetv1alpha1.LabelValue `json:"serviceLabels,omitempty"`

	// Clients that may connect to this endpoint's port of the proxies, instead of
	// proxy.networkPolicy.clients.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Clients []networkingv1.NetworkPolicyPeer `json:"clients,omitempty"`
}

// An EndpointTagSelector is a requirement on the tags of a device or a service.
// +kubebuilder:validation:XValidation:rule="self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 && !has(self.tag) : has(self.tag) && !has(self.values)",message="In and NotIn take values, Exists and DoesNotExist take tag"
type EndpointTagSelector struct {
	// Operator relates tags to values: In requires one of the values, NotIn none of them,
	// Exists the tag, DoesNotExist its absence.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator string `json:"operator"`

	// Tag that must exist, or must not exist.
	// +optional
	Tag Tag `json:"tag,omitempty"`

	// Values are the tags for In and NotIn.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Values []Tag `json:"values,omitempty"`
}

// AutoDiscovery selects devices and services of the tailnet that become endpoints.
// +kubebuilder:validation:XValidation:rule="has(self.tagSelectors) || has(self.names)",message="set tagSelectors, names or both"
type AutoDiscovery struct {
	// Sources to search. The default is both.
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=Devices;Services
	// +kubebuilder:default={Devices,Services}
	// +optional
	Sources []string `json:"sources,omitempty"`

	// TagSelectors are requirements that a device or service must all meet.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TagSelectors []EndpointTagSelector `json:"tagSelectors,omitempty"`

	// Names are patterns for the name or the DNS name: * matches any characters, ? matches one.
	// A device or service must match one of them.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Names []string `json:"names,omitempty"`

	// ExcludeNames exclude devices and services that match one of them. The limit is higher
	// than the 64 of a TailscaleGateway, which adds further patterns.
	// +listType=set
	// +kubebuilder:validation:MaxItems=72
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	ExcludeNames []string `json:"excludeNames,omitempty"`

	// Interval between two searches, at least 5s.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="must be at least 5s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.proxy.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="TAILNET",type="string",JSONPath=".spec.tailnet"
// +kubebuilder:printcolumn:name="HEALTHY",type="integer",JSONPath=".status.healthyEndpoints"
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.totalEndpoints"
// +kubebuilder:printcolumn:name="DEVICES",type="string",JSONPath=".status.devices[*].hostname"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='StatefulSetsReady')].reason"
// +kubebuilder:resource:scope=Namespaced,path=tailscaleendpoints,singular=tailscaleendpoint,categories={tailscale,crossplane},shortName=tsep

// A TailscaleEndpoints is a group of proxies, each a machine in a tailnet.
type TailscaleEndpoints struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailscaleEndpointsSpec   `json:"spec"`
	Status TailscaleEndpointsStatus `json:"status,omitempty"`
}

// TailnetName returns the name of the TailscaleTailnet of the proxies. It is empty until one is found
// if the spec names none.
func (e *TailscaleEndpoints) TailnetName() string { return cmp.Or(e.Spec.Tailnet, e.Status.Tailnet) }

// +kubebuilder:object:root=true

// TailscaleEndpointsList is a list of TailscaleEndpoints.
type TailscaleEndpointsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleEndpoints `json:"items"`
}

// TailscaleEndpointsKind is the kind of a TailscaleEndpoints.
const TailscaleEndpointsKind = "TailscaleEndpoints"

func init() {
	register(&TailscaleEndpoints{}, &TailscaleEndpointsList{})
}
