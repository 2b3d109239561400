// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A GatewayService is the Service in front of a Gateway's proxies.
type GatewayService struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// A GatewayListener is a listener of a Gateway.
type GatewayListener struct {
	Name string `json:"name"`

	// Port of the listener, and of the Service.
	Port int32 `json:"port"`

	// Protocol of the listener, such as HTTP, HTTPS, TLS, TCP or UDP.
	Protocol string `json:"protocol"`

	// Hostname of the listener. Absent means any.
	// +optional
	Hostname string `json:"hostname,omitempty"`
}

// A FoundGateway is a Gateway of the object's namespace.
type FoundGateway struct {
	// Name of the Gateway.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// A GatewayStatus describes the Gateway.
type GatewayStatus struct {
	// Service that Envoy Gateway created in front of the Gateway's proxies.
	Service GatewayService `json:"service"`

	// ClusterIP of the Service, if it has one.
	// +optional
	ClusterIP string `json:"clusterIP,omitempty"`

	// Listeners of the Gateway for which the Service has a port, in the Gateway's order.
	// Listeners of ListenerSets are not included.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Listeners []GatewayListener `json:"listeners,omitempty"`
}

// A GatewayServicePort is a port of a Tailscale Service that belongs to a Gateway.
type GatewayServicePort struct {
	// Port that clients in the tailnet connect to.
	Port int32 `json:"port"`

	// Protocol that the proxies forward: TCP, or HTTP with headers that identify the client.
	Protocol string `json:"protocol"`

	// TargetPort is the port of the listener or of the Service that receives the traffic.
	TargetPort int32 `json:"targetPort"`
}

// A GatewayServiceInfo is a Tailscale Service that belongs to a Gateway.
type GatewayServiceInfo struct {
	// Name of the TailscaleServices.
	Name string `json:"name"`

	// Tailnet is the name of the tailnet in spec.tailnets.
	Tailnet string `json:"tailnet"`

	// Target is the destination of the traffic: Gateway/NAMESPACE/NAME, KIND/NAMESPACE/NAME of a
	// route, or Service/NAMESPACE/NAME.
	Target string `json:"target"`

	// ServiceName is the name of the Tailscale Service. Absent when none can exist.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// DNSName is the DNS name of the service in the tailnet.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Addresses of the service, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// Ports of the service, in ascending order. At most 16 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Ports []GatewayServicePort `json:"ports,omitempty"`

	// LastUpdated is the time at which the service last reached or left its desired state in
	// the tailnet.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// Ready reports whether a proxy hosts the service.
	Ready bool `json:"ready"`

	// Message describes the problem when the service is not ready or does not exist.
	// +optional
	Message string `json:"message,omitempty"`
}

// A GatewaySplitDNSStatus lists the names that a tailnet resolves through a Gateway's proxies.
type GatewaySplitDNSStatus struct {
	// Domains for which the tailnet's devices query the proxies.
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Domains []string `json:"domains,omitempty"`

	// Nameservers are the proxies' addresses in the tailnet.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`
}

// A GatewayTailnetStatus is the state of one tailnet of a Gateway.
type GatewayTailnetStatus struct {
	// Name of the tailnet in spec.tailnets.
	Name string `json:"name"`

	// Ready reports whether the namespace may use the tailnet and the proxies are in it.
	Ready bool `json:"ready"`

	// Message describes the problem when the tailnet is not ready.
	// +optional
	Message string `json:"message,omitempty"`

	// Endpoints are the TailscaleEndpoints whose proxies carry the traffic.
	// +listType=atomic
	// +optional
	Endpoints []string `json:"endpoints,omitempty"`

	// DiscoveredServices is the number of services and devices that serviceDiscovery found.
	// +optional
	DiscoveredServices *int32 `json:"discoveredServices,omitempty"`

	// LastSync is the time at which the discovered services last changed, by the clock of
	// Tailscale's API.
	// +optional
	LastSync *metav1.Time `json:"lastSync,omitempty"`

	// SplitDNS lists the names that the tailnet resolves through the proxies.
	// +optional
	SplitDNS *GatewaySplitDNSStatus `json:"splitDNS,omitempty"`
}

// A GeneratedRoute is a route that was generated for a service.
type GeneratedRoute struct {
	// Kind is HTTPRoute or GRPCRoute.
	// +optional
	Kind string `json:"kind,omitempty"`

	// Namespace and name of the route. The name is empty when no route was generated.
	Namespace string `json:"namespace"`
	// +optional
	Name string `json:"name,omitempty"`

	// Tailnet is the name of the tailnet in spec.tailnets.
	Tailnet string `json:"tailnet"`

	// Direction is Ingress or Egress.
	Direction string `json:"direction"`

	// Service that receives the requests.
	Service string `json:"service"`

	// Hostname and path prefix of the route. The hostname * means any.
	Hostname   string `json:"hostname"`
	PathPrefix string `json:"pathPrefix"`

	// State is Accepted, Pending, Refused by the Gateway, or Conflict.
	State string `json:"state"`

	// Message describes the problem when the route is not accepted.
	// +optional
	Message string `json:"message,omitempty"`
}

// HookCallMetrics counts the calls of Envoy Gateway to the extension for the Gateway.
type HookCallMetrics struct {
	Total      int64 `json:"total"`
	Successful int64 `json:"successful"`
	Failed     int64 `json:"failed"`

	// LastCall is the time of the last call.
	// +optional
	LastCall *metav1.Time `json:"lastCall,omitempty"`
}

// An ExtensionServerStatus is the state of the extension.
type ExtensionServerStatus struct {
	// Version of the extension.
	// +optional
	Version string `json:"version,omitempty"`

	// Address, as HOST:PORT, of the Gateway's dedicated extension, which the configuration of
	// Envoy Gateway must name. Absent for the extension that is installed for the cluster.
	// +optional
	Address string `json:"address,omitempty"`

	// ReadyReplicas is the number of ready replicas of the extension, and of desired ones.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// HookCallMetrics is the total of all replicas since the extension first reported about the
	// Gateway. Each replica adds its calls at most every 30 seconds.
	// +optional
	HookCallMetrics *HookCallMetrics `json:"hookCallMetrics,omitempty"`
}

// A DependencyStatus is the state of an object that a TailscaleGateway depends on.
type DependencyStatus struct {
	Kind string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`

	// Message describes the problem when the object is not ready.
	// +optional
	Message string `json:"message,omitempty"`
}

// A TailscaleGatewayStatus is the observed state of a TailscaleGateway.
type TailscaleGatewayStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// GatewayRef is the Gateway of the namespace that the object shares because spec.gatewayRef is
	// absent. Absent if spec.gatewayRef is set, or no Gateway is found.
	// +optional
	GatewayRef *FoundGateway `json:"gatewayRef,omitempty"`

	// Gateway describes the Gateway and its Service. Absent unless the condition GatewayValid
	// is True.
	// +optional
	Gateway *GatewayStatus `json:"gateway,omitempty"`

	// Services are the Tailscale Services of the Gateway: first that of the Gateway itself,
	// then those of routes, then those of the Services behind the routes. At most 256 are
	// listed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Services []GatewayServiceInfo `json:"services,omitempty"`

	// TailnetStatus is the state of each tailnet.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TailnetStatus []GatewayTailnetStatus `json:"tailnetStatus,omitempty"`

	// GeneratedRouteCount is the number of generated routes.
	// +optional
	GeneratedRouteCount *int32 `json:"generatedRouteCount,omitempty"`

	// GeneratedRoutes lists the generated routes. Routes that could not be generated come
	// first. At most 256 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	GeneratedRoutes []GeneratedRoute `json:"generatedRoutes,omitempty"`

	// ExtensionServerStatus is the state of the extension. Absent until the extension has
	// reported.
	// +optional
	ExtensionServerStatus *ExtensionServerStatus `json:"extensionServerStatus,omitempty"`

	// DependencyStatus is the state of the objects that this object depends on, by kind and
	// name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	DependencyStatus []DependencyStatus `json:"dependencyStatus,omitempty"`
}
