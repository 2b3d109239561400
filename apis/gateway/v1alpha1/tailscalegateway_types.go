// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A GatewayRef references a Gateway.
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

	// Namespace of the Gateway. Absent means the namespace of the object. A Gateway of another
	// namespace needs a ReferenceGrant in that namespace, from TailscaleGateways of this
	// namespace: without it, the Gateway is not shared.
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

// RouteSharing selects the parts of a Gateway that become Tailscale Services.
// +kubebuilder:validation:Enum=Gateway;Route;None
type RouteSharing string

// Ways to share routes.
const (
	// RouteSharingGateway creates one Tailscale Service for the Gateway, which serves all its
	// routes.
	RouteSharingGateway RouteSharing = "Gateway"
	// RouteSharingRoute creates one Tailscale Service for each route.
	RouteSharingRoute RouteSharing = "Route"
	// RouteSharingNone creates none.
	RouteSharingNone RouteSharing = "None"
)

// PublishBackends selects the backends of routes that become Tailscale Services.
// +kubebuilder:validation:Enum=Unprotected;All;None
type PublishBackends string

// Backends that become Tailscale Services.
const (
	// PublishBackendsUnprotected selects backends that no policy of the Gateway protects.
	PublishBackendsUnprotected PublishBackends = "Unprotected"
	// PublishBackendsAll also selects backends that policies protect. Clients of their
	// Tailscale Services bypass these policies.
	PublishBackendsAll  PublishBackends = "All"
	PublishBackendsNone PublishBackends = "None"
)

// GatewayFailover lets routes to Services fail over to other clusters. It has no fields.
type GatewayFailover struct{}

// An ExtensionServer is a dedicated Envoy Gateway extension for one Gateway.
type ExtensionServer struct {
	// Image of the extension. Absent means the image of the installation. Another image must be
	// in a repository that extensionImages of the namespace's entry in allowedNamespaces.grants
	// names, of one of the tailnets.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// Replicas of the extension.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Resources of the extension. The default is requests of 100m CPU and 128Mi memory, and a
	// limit of 512Mi memory.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// TLS configures the server certificate that the extension presents to Envoy Gateway and
	// Envoy. If it is absent, the extension creates one. The extension requires client
	// certificates in both cases and creates them; the condition ExtensionServerReady names the
	// Secret that Envoy Gateway's configuration must reference.
	// +optional
	TLS *ExtensionServerTLS `json:"tls,omitempty"`
}

// ExtensionServerTLS is the certificate that the extension presents to Envoy Gateway and Envoy.
type ExtensionServerTLS struct {
	// CertificateRef references the Secret that holds the certificate: tls.crt, tls.key, and in
	// ca.crt the issuing CA. Nothing else of the Secret reaches the extension, which does not start
	// without these keys. The certificate must be valid for NAME-extension.NAMESPACE.svc and
	// NAME-extension-eds.NAMESPACE.svc of this object.
	CertificateRef CertificateRef `json:"certificateRef"`
}

// A TailscaleGatewaySpec selects a Gateway and the tailnets to share it with.
type TailscaleGatewaySpec struct {
	// GatewayRef references a Gateway of Envoy Gateway. Absent means the only Gateway of the
	// namespace; status.gatewayRef has its name. If there are several, none is shared, and the
	// condition GatewayValid lists them. A Gateway that was found stays while it exists.
	// +optional
	GatewayRef *GatewayRef `json:"gatewayRef,omitempty"`

	// Tailnets to connect the Gateway to. An empty list only looks up the Gateway, for
	// TailscaleServices that have this object as their backend.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Tailnets []GatewayTailnet `json:"tailnets,omitempty"`

	// RouteSharing selects what becomes a Tailscale Service in each tailnet: the Gateway, each
	// of its routes, or nothing. The Tailscale Service of a route is called
	// svc:route-ROUTE-NAMESPACE and has the ports of the route's listeners.
	// +kubebuilder:default=Gateway
	// +optional
	RouteSharing RouteSharing `json:"routeSharing,omitempty"`

	// PublishBackends selects the Services behind the Gateway's routes that become Tailscale
	// Services, too. They are called svc:SERVICE-NAMESPACE and have the ports that routes
	// reference. Requests to them do not pass through the Gateway and bypass its policies.
	// Unprotected therefore excludes each Service that something protects there: a
	// TailscaleRoutePolicy, a SecurityPolicy, an EnvoyExtensionPolicy, an EnvoyPatchPolicy, a
	// ClientTrafficPolicy or BackendTrafficPolicy with settings that check or limit clients, of
	// any route to it, of that route's rule, or of the route's listener or Gateway; client
	// certificates that the Gateway requires; or a filter ExternalAuth or ExtensionRef.
	// status.services lists the excluded Services. All excludes none. Services of other
	// namespaces also need a ReferenceGrant there, from TailscaleServices to Service. If
	// routeSharing is None, no Services are published.
	// +kubebuilder:default=Unprotected
	// +optional
	PublishBackends PublishBackends `json:"publishBackends,omitempty"`

	// Drain hands the Tailscale Services of this object to the other clusters that share them, for
	// maintenance. See drain of a TailscaleServices.
	// +optional
	Drain bool `json:"drain,omitempty"`

	// Failover sends requests for the Services behind the Gateway's routes to other clusters while this
	// cluster has no healthy endpoint for them, or too few. It applies to each Service that a
	// TailscaleServices of the same namespace shares with other clusters and that is the only backend of
	// a port there, and to rules that name no TailscaleServices or TailscaleEndpoints. Envoy
	// Gateway's own cluster for the Service stays and comes first, with all of its policies. Absent means
	// that such routes stay as Envoy Gateway makes them.
	// +optional
	Failover *GatewayFailover `json:"failover,omitempty"`

	// ExtensionServer runs a dedicated extension for this Gateway in this namespace, which must
	// also be the Gateway's. It runs while the Gateway exists, and starts once one of the tailnets,
	// if there are any, allows the namespace. The extension reads nothing in other namespaces. The configuration
	// of the Envoy Gateway that runs the Gateway must name the address in
	// status.extensionServerStatus.address. Absent means the extension that is installed for
	// the cluster.
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

// A TailscaleGateway connects a Gateway of Envoy Gateway to tailnets: clients in the tailnets
// reach its routes, and its clients reach services of the tailnets. It finds the Service in
// front of the Gateway's proxies. TailscaleServices of the same namespace can have it as a
// backend.
type TailscaleGateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TailscaleGatewaySpec   `json:"spec"`
	Status TailscaleGatewayStatus `json:"status,omitempty"`
}

// GatewayName returns the Gateway of the object. The name is empty if the spec names none, and none is
// found. A status is only a hint, because its writer may have no right to the Gateway: it cannot lead
// to another namespace, and the caller must look whether the Gateway exists.
func (g *TailscaleGateway) GatewayName() types.NamespacedName {
	n := types.NamespacedName{Namespace: g.Namespace}
	switch {
	case g.Spec.GatewayRef != nil:
		n.Namespace, n.Name = cmp.Or(g.Spec.GatewayRef.Namespace, g.Namespace), g.Spec.GatewayRef.Name
	case g.Status.GatewayRef != nil:
		n.Name = g.Status.GatewayRef.Name
	}
	return n
}

// +kubebuilder:object:root=true

// TailscaleGatewayList is a list of TailscaleGateways.
type TailscaleGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleGateway `json:"items"`
}

// TailscaleGatewayKind is the kind of a TailscaleGateway.
const TailscaleGatewayKind = "TailscaleGateway"

func init() {
	register(&TailscaleGateway{}, &TailscaleGatewayList{})
}
