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

	// ProtectedBy is the first of the policies that are for requests to the Service, by
	// any route of the Gateway: its kind, namespace and name. Empty if there is none.
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

	// Ports of the listeners that it is attached to, in order.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Ports []int32 `json:"ports,omitempty"`

	// Hostnames that it answers for at these listeners, in order: its own, as far as
	// the listeners take them, or theirs. They are told only where a tailnet is to
	// resolve them.
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

// A GeneratedRouteState is what became of a route that is to be made.
// +kubebuilder:validation:Enum=Accepted;Pending;Refused;Conflict
type GeneratedRouteState string

// States of generated routes.
const (
	// GeneratedRouteAccepted routes answer.
	GeneratedRouteAccepted GeneratedRouteState = "Accepted"
	// GeneratedRoutePending routes are written, and Envoy Gateway has not said.
	GeneratedRoutePending GeneratedRouteState = "Pending"
	// GeneratedRouteRefused routes are written, and Envoy Gateway does not take them.
	GeneratedRouteRefused GeneratedRouteState = "Refused"
	// GeneratedRouteConflict routes are not written: another has their host and path.
	GeneratedRouteConflict GeneratedRouteState = "Conflict"
)

// A ReportedGeneratedRoute is a route that is made for a service.
type ReportedGeneratedRoute struct {
	// Kind is HTTPRoute or GRPCRoute.
	// +kubebuilder:validation:Enum=HTTPRoute;GRPCRoute
	// +kubebuilder:default=HTTPRoute
	// +optional
	Kind string `json:"kind,omitempty"`

	Namespace string `json:"namespace"`

	// Name of the route. Empty when none was made.
	// +optional
	Name string `json:"name,omitempty"`

	// Tailnet, by its name in the TailscaleGateway.
	Tailnet string `json:"tailnet"`

	Direction Direction `json:"direction"`

	// Service that the route leads to.
	Service string `json:"service"`

	// Hostname that it is for; * stands for any.
	Hostname   string              `json:"hostname"`
	PathPrefix string              `json:"pathPrefix"`
	State      GeneratedRouteState `json:"state"`

	// Collides tells of a route in conflict that another service has its host and
	// path, and not a route that somebody wrote.
	// +optional
	Collides bool `json:"collides,omitempty"`

	// Message says why the route does not answer. It does not change while the
	// cause does not.
	// +optional
	Message string `json:"message,omitempty"`
}

// ReportedHooks count what Envoy Gateway asked, whichever replica.
type ReportedHooks struct {
	Total  int64 `json:"total"`
	Failed int64 `json:"failed"`

	// Last is when it asked last.
	// +optional
	Last *metav1.Time `json:"last,omitempty"`
}

// A ReportedExtension is the extension that reports.
type ReportedExtension struct {
	Version string `json:"version"`

	// Hooks of the Gateway, since the report was made. Each replica that was asked adds
	// to them, at most each 30 seconds.
	// +optional
	Hooks *ReportedHooks `json:"hooks,omitempty"`
}

// A ReportedLeftOut counts what a report has no room for.
type ReportedLeftOut struct {
	// Routes that come last by kind, namespace and name.
	// +optional
	Routes int32 `json:"routes,omitempty"`

	// RoutesInPart are told of with the first of their ports, hostnames or backends
	// alone.
	// +optional
	RoutesInPart int32 `json:"routesInPart,omitempty"`

	// GeneratedRoutes of which those that do not answer are told of first.
	// +optional
	GeneratedRoutes int32 `json:"generatedRoutes,omitempty"`
}

// A GatewayReportSpec is what the extension knows of a Gateway.
type GatewayReportSpec struct {
	// Gateway is the name of the TailscaleGateway, in the same namespace.
	Gateway string `json:"gateway"`

	Extension ReportedExtension `json:"extension"`

	// Routes that the Gateway has accepted, by kind, namespace and name, without
	// those that were generated.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	// +optional
	Routes []ReportedRoute `json:"routes,omitempty"`

	// GeneratedRoutes by tailnet, direction, service and namespace.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	// +optional
	GeneratedRoutes []ReportedGeneratedRoute `json:"generatedRoutes,omitempty"`

	// LeftOut is what there is beside all that. Absent if that is nothing.
	// +optional
	LeftOut *ReportedLeftOut `json:"leftOut,omitempty"`

	// PoliciesKnown says that SecurityPolicies could be read, so that a backend that
	// nothing protects is known to be one. They are read only where that matters.
	// +optional
	PoliciesKnown bool `json:"policiesKnown,omitempty"`

	// Untold are the listeners that are to be told by headers who asks, and are not: no
	// ReferenceGrant of the Gateway's namespace lets the TailscaleGateway have that.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Untold []string `json:"untold,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="GATEWAY",type="string",JSONPath=".spec.gateway"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".spec.extension.version"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:resource:scope=Namespaced,categories={tailscale}

// A GatewayReport says what the extension knows of the Gateway of a TailscaleGateway:
// its routes, and those that were generated for it. The extension alone writes it, when
// that changes, and it goes with the TailscaleGateway. It has no status: a function that
// requires it runs for each change.
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
