// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ReportedBackend is a Service behind a route.
type ReportedBackend struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Port      int32  `json:"port"`

	// ProtectedBy is the first policy, as kind, namespace and name, that applies to requests to
	// the Service by any route of the Gateway, or what else of the Gateway or of a route protects
	// it. Empty if there is none.
	// +optional
	ProtectedBy string `json:"protectedBy,omitempty"`
}

// A ReportedRoute is a route that the Gateway has accepted.
type ReportedRoute struct {
	// Kind is HTTPRoute, GRPCRoute, TCPRoute, TLSRoute or UDPRoute.
	// +kubebuilder:validation:Enum=HTTPRoute;GRPCRoute;TCPRoute;TLSRoute;UDPRoute
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`

	// Created is the creation time of the route. Where routes exceed a limit, those that serve
	// and then the oldest stay.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`

	// UID of the route.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	UID string `json:"uid,omitempty"`

	// Ports of the listeners that the route is attached to, in ascending order.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Ports []int32 `json:"ports,omitempty"`

	// Hostnames of the route at these listeners, in order: its hostnames as far as the
	// listeners accept them, or those of the listeners. Listed only if a tailnet resolves them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Hostnames []string `json:"hostnames,omitempty"`

	// Backends that are Services, by namespace, name and port.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Backends []ReportedBackend `json:"backends,omitempty"`
}

// A GeneratedRouteState is the state of a generated route.
// +kubebuilder:validation:Enum=Accepted;Pending;Refused;Conflict
type GeneratedRouteState string

// States of generated routes.
const (
	// GeneratedRouteAccepted means that the route works.
	GeneratedRouteAccepted GeneratedRouteState = "Accepted"
	// GeneratedRoutePending means that the route exists, and Envoy Gateway has not reported
	// about it.
	GeneratedRoutePending GeneratedRouteState = "Pending"
	// GeneratedRouteRefused means that the route exists, and Envoy Gateway does not accept it.
	GeneratedRouteRefused GeneratedRouteState = "Refused"
	// GeneratedRouteConflict means that the route was not created: another route has its host
	// and path.
	GeneratedRouteConflict GeneratedRouteState = "Conflict"
)

// A ReportedGeneratedRoute is a route that is generated for a service.
type ReportedGeneratedRoute struct {
	// Kind is HTTPRoute or GRPCRoute.
	// +kubebuilder:validation:Enum=HTTPRoute;GRPCRoute
	// +kubebuilder:default=HTTPRoute
	// +optional
	Kind string `json:"kind,omitempty"`

	Namespace string `json:"namespace"`

	// Name of the route. Empty if it was not created.
	// +optional
	Name string `json:"name,omitempty"`

	// Tailnet is the name of the tailnet in the TailscaleGateway.
	Tailnet string `json:"tailnet"`

	Direction Direction `json:"direction"`

	// Service that receives the requests.
	Service string `json:"service"`

	// Hostname of the route; * means any.
	Hostname   string              `json:"hostname"`
	PathPrefix string              `json:"pathPrefix"`
	State      GeneratedRouteState `json:"state"`

	// ConflictsWithGenerated reports whether a route in conflict has the host and path of another
	// service's generated route, rather than those of a user's route.
	// +optional
	ConflictsWithGenerated bool `json:"conflictsWithGenerated,omitempty"`

	// Message describes why the route does not work. It is constant for the same cause.
	// +optional
	Message string `json:"message,omitempty"`
}

// ReportedHooks counts the calls of Envoy Gateway to all replicas.
type ReportedHooks struct {
	Total  int64 `json:"total"`
	Failed int64 `json:"failed"`

	// LastCall is the time of the last call.
	// +optional
	LastCall *metav1.Time `json:"lastCall,omitempty"`
}

// A ReportedExtension describes the extension that reports.
type ReportedExtension struct {
	Version string `json:"version"`

	// Hooks counts the calls for the Gateway since the report was created. Each replica adds
	// its calls at most every 30 seconds.
	// +optional
	Hooks *ReportedHooks `json:"hooks,omitempty"`
}

// ReportedOmissions counts the entries that exceed the size limits of a report.
type ReportedOmissions struct {
	// Routes is the number of omitted routes: the newest that were not reported before.
	// +optional
	Routes int32 `json:"routes,omitempty"`

	// TruncatedRoutes is the number of listed routes without some of their ports, hostnames or
	// backends: those that were not reported before.
	// +optional
	TruncatedRoutes int32 `json:"truncatedRoutes,omitempty"`

	// GeneratedRoutes is the number of omitted generated routes. Those that were reported before,
	// and then those that do not work, are listed first.
	// +optional
	GeneratedRoutes int32 `json:"generatedRoutes,omitempty"`
}

// A GatewayReportSpec is the extension's information about a Gateway.
type GatewayReportSpec struct {
	// Gateway is the name of the TailscaleGateway, in the same namespace.
	Gateway string `json:"gateway"`

	Extension ReportedExtension `json:"extension"`

	// Routes that the Gateway has accepted, by kind, namespace and name, without generated
	// routes.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	// +optional
	Routes []ReportedRoute `json:"routes,omitempty"`

	// GeneratedRoutes by tailnet, direction, service and namespace.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	// +optional
	GeneratedRoutes []ReportedGeneratedRoute `json:"generatedRoutes,omitempty"`

	// Omitted counts omitted entries. Absent if there are none.
	// +optional
	Omitted *ReportedOmissions `json:"omitted,omitempty"`

	// PoliciesKnown reports whether all policies of Envoy Gateway could be read, so that backends
	// without protection are known. The extension reads them only if the TailscaleGateway needs
	// them.
	// +optional
	PoliciesKnown bool `json:"policiesKnown,omitempty"`

	// ListenersWithoutIdentity lists the listeners with identity Headers that do not receive the
	// headers, because no ReferenceGrant of the Gateway's namespace permits the TailscaleGateway to
	// set them.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	ListenersWithoutIdentity []string `json:"listenersWithoutIdentity,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="GATEWAY",type="string",JSONPath=".spec.gateway"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".spec.extension.version"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={tailscale}

// A GatewayReport holds the extension's information about the Gateway of a TailscaleGateway:
// its routes, and the routes that were generated for it. Only the extension writes it, when the
// information changes. It is deleted with the TailscaleGateway. It has no status, because
// functions that require it run for each change.
type GatewayReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GatewayReportSpec `json:"spec"`
}

// +kubebuilder:object:root=true

// GatewayReportList is a list of GatewayReport.
type GatewayReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayReport `json:"items"`
}

// GatewayReportKind is the kind of a GatewayReport.
const GatewayReportKind = "GatewayReport"

func init() {
	register(&GatewayReport{}, &GatewayReportList{})
}
