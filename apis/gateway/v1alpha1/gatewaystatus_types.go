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

	// Port of the listener, which is that of the Service too.
	Port int32 `json:"port"`

	// Protocol of the listener, such as HTTP, HTTPS, TLS, TCP or UDP.
	Protocol string `json:"protocol"`

	// Hostname that the listener is for. Absent means any.
	// +optional
	Hostname string `json:"hostname,omitempty"`
}

// A GatewayStatus is what was found of a Gateway.
type GatewayStatus struct {
	// Service that Envoy Gateway made in front of the Gateway's proxies.
	Service GatewayService `json:"service"`

	// ClusterIP of the Service, if it has one.
	// +optional
	ClusterIP string `json:"clusterIP,omitempty"`

	// Listeners of the Gateway that the Service has a port for, in the Gateway's
	// order. Those of ListenerSets are not among them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Listeners []GatewayListener `json:"listeners,omitempty"`
}

// A GatewayServicePort is a port of a Tailscale Service that was made for a Gateway.
type GatewayServicePort struct {
	// Port that clients in the tailnet ask for.
	Port int32 `json:"port"`

	// Protocol that the proxies hand on: TCP, or HTTP with headers that say which client
	// asks.
	Protocol string `json:"protocol"`

	// TargetPort is that of the listener or of the Service that it leads to.
	TargetPort int32 `json:"targetPort"`
}

// A GatewayServiceInfo is a Tailscale Service that was made for a Gateway.
type GatewayServiceInfo struct {
	// Name of the TailscaleServices.
	Name string `json:"name"`

	// Tailnet, by its name in spec.tailnets.
	Tailnet string `json:"tailnet"`

	// For is what it leads to: Gateway/NAMESPACE/NAME, the kind of a route and its
	// namespace and name, or Service/NAMESPACE/NAME.
	For string `json:"for"`

	// ServiceName is the Tailscale Service. Absent where there can be none.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// DNSName of the service in the tailnet.
	// +optional
	DNSName string `json:"dnsName,omitempty"`

	// Addresses of the service, IPv4 first.
	// +listType=atomic
	// +optional
	Addresses []string `json:"addresses,omitempty"`

	// Ports of the service, in order. The first 16 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Ports []GatewayServicePort `json:"ports,omitempty"`

	// LastUpdated is when the service last came to be in the tailnet as it is wanted, or
	// ceased to be.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// Ready reports whether a proxy hosts the service.
	Ready bool `json:"ready"`

	// Message says what is missing when the service is not ready, or why there is
	// none.
	// +optional
	Message string `json:"message,omitempty"`
}

// A GatewaySplitDNSStatus is what of a Gateway is resolved in a tailnet.
type GatewaySplitDNSStatus struct {
	// Domains that the tailnet's devices ask for at the proxies.
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

// A GatewayTailnetStatus is how a tailnet of a Gateway does.
type GatewayTailnetStatus struct {
	// Name of the tailnet in spec.tailnets.
	Name string `json:"name"`

	// Ready reports whether the tailnet may be used and its proxies are in it.
	Ready bool `json:"ready"`

	// Message says what is missing when the tailnet is not ready.
	// +optional
	Message string `json:"message,omitempty"`

	// Endpoints are the TailscaleEndpoints whose proxies carry its traffic.
	// +listType=atomic
	// +optional
	Endpoints []string `json:"endpoints,omitempty"`

	// DiscoveredServices is how many services and devices were found.
	// +optional
	DiscoveredServices *int32 `json:"discoveredServices,omitempty"`

	// LastSync is when what was found last changed, by the clock of Tailscale's API.
	// +optional
	LastSync *metav1.Time `json:"lastSync,omitempty"`

	// SplitDNS is what of the Gateway is resolved in the tailnet.
	// +optional
	SplitDNS *GatewaySplitDNSStatus `json:"splitDNS,omitempty"`
}

// A GeneratedRoute is a route that was made for a service.
type GeneratedRoute struct {
	// Kind is HTTPRoute or GRPCRoute.
	// +optional
	Kind string `json:"kind,omitempty"`

	// Namespace and name of the route. The name is empty when none was made.
	Namespace string `json:"namespace"`
	// +optional
	Name string `json:"name,omitempty"`

	// Tailnet, by its name in spec.tailnets.
	Tailnet string `json:"tailnet"`

	// Direction is Ingress or Egress.
	Direction string `json:"direction"`

	// Service that the route leads to.
	Service string `json:"service"`

	// Hostname and path prefix of the route. The hostname * stands for any.
	Hostname   string `json:"hostname"`
	PathPrefix string `json:"pathPrefix"`

	// State is Accepted, Pending, Refused by the Gateway, or Conflict.
	State string `json:"state"`

	// Message says why the route does not answer.
	// +optional
	Message string `json:"message,omitempty"`
}

// HookCallMetrics count what Envoy Gateway asked the extension of the Gateway.
type HookCallMetrics struct {
	Total      int64 `json:"total"`
	Successful int64 `json:"successful"`
	Failed     int64 `json:"failed"`

	// LastCall is when it asked last.
	// +optional
	LastCall *metav1.Time `json:"lastCall,omitempty"`
}

// An ExtensionServerStatus is how the extension does.
type ExtensionServerStatus struct {
	// Version of the extension.
	// +optional
	Version string `json:"version,omitempty"`

	// Address that the configuration of Envoy Gateway must name, host and port: that of
	// the Gateway's own extension. Absent for the installed one.
	// +optional
	Address string `json:"address,omitempty"`

	// ReadyReplicas of the extension, of those that are wanted.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// HookCallMetrics of all replicas, since the extension first told of the Gateway.
	// Each replica adds to them, at most each 30 seconds.
	// +optional
	HookCallMetrics *HookCallMetrics `json:"hookCallMetrics,omitempty"`
}

// A DependencyStatus is how an object does that a TailscaleGateway rests on.
type DependencyStatus struct {
	Kind string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`

	// Message says what is missing when it is not ready.
	// +optional
	Message string `json:"message,omitempty"`
}

// A TailscaleGatewayStatus is the observed state of a TailscaleGateway.
type TailscaleGatewayStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Gateway is what was found. Absent unless the condition GatewayValid is True.
	// +optional
	Gateway *GatewayStatus `json:"gateway,omitempty"`

	// Services are the Tailscale Services of the Gateway: its own first, then those
	// of routes and of what is behind them. At most 256 are listed.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Services []GatewayServiceInfo `json:"services,omitempty"`

	// TailnetStatus is how each tailnet does.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TailnetStatus []GatewayTailnetStatus `json:"tailnetStatus,omitempty"`

	// GeneratedRouteCount is how many routes were made.
	// +optional
	GeneratedRouteCount *int32 `json:"generatedRouteCount,omitempty"`

	// GeneratedRoutes are the routes that were made, and those that could not be,
	// which come first. At most 256 are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	GeneratedRoutes []GeneratedRoute `json:"generatedRoutes,omitempty"`

	// ExtensionServerStatus is absent until the extension has reported.
	// +optional
	ExtensionServerStatus *ExtensionServerStatus `json:"extensionServerStatus,omitempty"`

	// DependencyStatus is how what this object rests on does, by kind and name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	DependencyStatus []DependencyStatus `json:"dependencyStatus,omitempty"`
}
