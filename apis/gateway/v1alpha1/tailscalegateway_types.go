// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A GatewayRef names a Gateway.
type GatewayRef struct {
	// Group of the Gateway.
	// +kubebuilder:default=gateway.networking.k8s.io
	// +kubebuilder:validation:Enum=gateway.networking.k8s.io
	// +optional
	Group string `json:"group,omitempty"`

	// Kind of the Gateway.
	// +kubebuilder:default=Gateway
	// +kubebuilder:validation:Enum=Gateway
	// +optional
	Kind string `json:"kind,omitempty"`

	// Namespace of the Gateway. Absent means the object's own. In another one a
	// ReferenceGrant has to permit it, from TailscaleGateways of this namespace: without it
	// nothing of the Gateway is shared.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the Gateway.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
}

// RouteSharing is what of a Gateway becomes a Tailscale Service.
// +kubebuilder:validation:Enum=Gateway;Route;None
type RouteSharing string

// Ways to share routes.
const (
	// RouteSharingGateway makes one Tailscale Service of the Gateway, at which all
	// its routes answer.
	RouteSharingGateway RouteSharing = "Gateway"
	// RouteSharingRoute makes one of each route.
	RouteSharingRoute RouteSharing = "Route"
	// RouteSharingNone makes none.
	RouteSharingNone RouteSharing = "None"
)

// PublishBackends is which backends of routes become Tailscale Services.
// +kubebuilder:validation:Enum=Unprotected;All;None
type PublishBackends string

// Which backends become Tailscale Services.
const (
	// PublishBackendsUnprotected are those that no policy of the Gateway protects.
	PublishBackendsUnprotected PublishBackends = "Unprotected"
	// PublishBackendsAll are those that policies protect, too. Clients of their Tailscale
	// Services passes these policies by.
	PublishBackendsAll  PublishBackends = "All"
	PublishBackendsNone PublishBackends = "None"
)

// An ExtensionServer is the extension of Envoy Gateway, for one Gateway alone.
type ExtensionServer struct {
	// Image of the extension. Absent means that of this version.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// Replicas of the extension.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Resources of the extension. Requests of 100m CPU and 128Mi memory, and a
	// limit of 512Mi memory, by default.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// TLS is what the extension shows Envoy Gateway and Envoys. Absent has it make a
	// certificate of its own. It answers nobody without a client certificate in either
	// case: it makes those, and condition ExtensionServerReady names the Secret that Envoy
	// Gateway's configuration is to name.
	// +optional
	TLS *ExtensionServerTLS `json:"tls,omitempty"`
}

// ExtensionServerTLS is the certificate that the extension shows Envoy Gateway and Envoys.
type ExtensionServerTLS struct {
	// CertificateRef names the Secret that holds it, in tls.crt and tls.key, and in ca.crt
	// what it chains to. It is for NAME-extension.NAMESPACE.svc and
	// NAME-extension-eds.NAMESPACE.svc, of this object.
	CertificateRef CertificateRef `json:"certificateRef"`
}

// A TailscaleGatewaySpec says which Gateway to share, and with which tailnets.
type TailscaleGatewaySpec struct {
	// GatewayRef names a Gateway that Envoy Gateway runs.
	GatewayRef GatewayRef `json:"gatewayRef"`

	// Tailnets that the Gateway is joined to. None only finds the Gateway, for
	// TailscaleServices that have this object as their backend.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Tailnets []GatewayTailnet `json:"tailnets,omitempty"`

	// RouteSharing is what becomes a Tailscale Service in each tailnet: the
	// Gateway, each of its routes, or nothing. That of a route is called
	// svc:route-ROUTE-NAMESPACE, and has the ports of the route's listeners.
	// +kubebuilder:default=Gateway
	// +optional
	RouteSharing RouteSharing `json:"routeSharing,omitempty"`

	// PublishBackends says which Services behind the Gateway's routes become
	// Tailscale Services, too, called svc:SERVICE-NAMESPACE, at the ports that routes
	// ask for. Requests to these do not come by the Gateway, and pass its policies by.
	// So Unprotected leaves out each that a SecurityPolicy or a TailscaleRoutePolicy
	// is for, by any route to it, that route's rule, or the route's listener or Gateway;
	// status.services says which. All does not. With routeSharing None there are none.
	// +kubebuilder:default=Unprotected
	// +optional
	PublishBackends PublishBackends `json:"publishBackends,omitempty"`

	// ExtensionServer runs an extension for this Gateway alone, in this namespace, which
	// must be the Gateway's. It reads nothing outside of it. The configuration of the
	// Envoy Gateway that runs the Gateway must name status.extensionServerStatus.address.
	// Absent uses the extension that is installed for the cluster.
	// +optional
	ExtensionServer *ExtensionServer `json:"extensionServer,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="GATEWAY",type="string",JSONPath=".spec.gatewayRef.name"
// +kubebuilder:printcolumn:name="SERVICE",type="string",JSONPath=".status.gateway.service.name"
// +kubebuilder:printcolumn:name="TAILNETS",type="string",JSONPath=".spec.tailnets[*].name"
// +kubebuilder:printcolumn:name="VIP",type="string",JSONPath=".status.services[0].addresses[0]"
// +kubebuilder:printcolumn:name="VALID",type="string",JSONPath=".status.conditions[?(@.type=='GatewayValid')].status"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='GatewayValid')].reason"
// +kubebuilder:printcolumn:name="DNS-NAME",type="string",JSONPath=".status.services[0].dnsName",priority=1
// +kubebuilder:printcolumn:name="ROUTES",type="integer",JSONPath=".status.generatedRouteCount",priority=1
// +kubebuilder:resource:scope=Namespaced,path=tailscalegateways,singular=tailscalegateway,categories={tailscale,crossplane},shortName=tsgw
// +kubebuilder:validation:XValidation:rule="!has(self.spec.tailnets) || size(self.spec.tailnets) == 0 || self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label when spec.tailnets is set: it names the Tailscale Service"

// A TailscaleGateway joins a Gateway of Envoy Gateway to tailnets: its routes answer
// there, and what is found there answers through it. It finds the Service in front of
// the Gateway's proxies, and TailscaleServices of the same namespace may have it as
// their backend.
type TailscaleGateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailscaleGatewaySpec   `json:"spec"`
	Status TailscaleGatewayStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// TailscaleGatewayList is a list of TailscaleGateways.
type TailscaleGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleGateway `json:"items"`
}
