// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TailscaleRoutePolicySpec says what happens to requests of Gateways and routes.
type TailscaleRoutePolicySpec struct {
	// TargetRefs are the Gateways, HTTPRoutes and GRPCRoutes of the same namespace
	// that the policy is attached to. A sectionName is a listener of a Gateway, or a
	// rule of a route.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.group == 'gateway.networking.k8s.io' && r.kind in ['Gateway', 'HTTPRoute', 'GRPCRoute'])",message="targetRefs must name Gateways, HTTPRoutes or GRPCRoutes"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.kind == b.kind && a.name == b.name && (has(a.sectionName) ? a.sectionName : '') == (has(b.sectionName) ? b.sectionName : '')))",message="targetRefs must not name one target twice"
	// +listType=atomic
	TargetRefs []gwapiv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs"`

	// Rules, of which the first that matches a request is the only one that acts.
	// Those of higher priority are asked first. Rules attached to a rule of a route go
	// before those of the route, these before those of a listener, and these before
	// those of a Gateway. Of equal rules the older policy's goes first, then the
	// policy that is first by name, then the rule that stands first.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Rules []RoutePolicyRule `json:"rules"`
}

// A RoutePolicyRule does something to the requests that it matches.
// +kubebuilder:validation:XValidation:rule="self.actions.all(a, self.actions.exists_one(b, a.type == b.type))",message="an action may be there once"
// +kubebuilder:validation:XValidation:rule="self.actions.filter(a, a.type in ['Route', 'Redirect', 'Deny']).size() <= 1",message="of Route, Redirect and Deny there may be one"
// +kubebuilder:validation:XValidation:rule="self.actions.exists(a, a.type == 'Deny') ? self.actions.size() == 1 : true",message="Deny stands alone"
// +kubebuilder:validation:XValidation:rule="self.actions.exists(a, a.type == 'Redirect') ? self.actions.all(a, a.type in ['Redirect', 'ResponseHeaderModifier', 'RateLimit']) : true",message="beside Redirect there may be ResponseHeaderModifier and RateLimit"
type RoutePolicyRule struct {
	// Name of the rule, by which the status tells of it.
	Name gwapiv1.SectionName `json:"name"`

	// Priority among the rules of one level: the higher is asked first.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Matches of which one must match, beside those of the route. Absent means all
	// requests of the target.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Matches []RoutePolicyMatch `json:"matches,omitempty"`

	// Actions to take.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=atomic
	Actions []RoutePolicyAction `json:"actions"`
}

// A RoutePolicyMatch is met by a request that meets all of it.
// +kubebuilder:validation:MinProperties=1
type RoutePolicyMatch struct {
	// Path of the request, without its query.
	// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' ? (''.matches(self.value) ? true : true) : true",message="value must be a regular expression"
	// +optional
	Path *gwapiv1.HTTPPathMatch `json:"path,omitempty"`

	// Method of the request.
	// +optional
	Method *gwapiv1.HTTPMethod `json:"method,omitempty"`

	// Headers that must all match.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(h, h.type == 'RegularExpression' ? (''.matches(h.value) ? true : true) : true)",message="value must be a regular expression"
	// +listType=map
	// +listMapKey=name
	// +optional
	Headers []gwapiv1.HTTPHeaderMatch `json:"headers,omitempty"`

	// TailnetDevice that asks. It is known by the address of its connection alone,
	// which the listener must learn by the PROXY protocol: no header counts.
	// +optional
	TailnetDevice *TailnetDeviceMatch `json:"tailnetDevice,omitempty"`
}

// A TailnetDeviceMatch is met by a device that meets all of it.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="(has(self.tags) || has(self.hostnames) || has(self.users)) == has(self.tailnet)",message="tags, hostnames and users need the tailnet, which is for nothing else"
// +kubebuilder:validation:XValidation:rule="!has(self.hostnames) || has(self.tags) || has(self.users)",message="users choose the names of their devices: set tags or users beside hostnames"
type TailnetDeviceMatch struct {
	// Tailnet that has the device: the name of a TailscaleTailnet, which must allow the
	// namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// Tags of which the device has one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Hostnames are patterns of which one matches the device's name, or its DNS name:
	// * stands for any characters, ? for one. Users choose the names of their devices, so
	// they narrow tags or users, and stand beside them alone.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Hostnames []string `json:"hostnames,omitempty"`

	// Users of whom one owns the device, by login name. Tagged devices are nobody's.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=254
	// +listType=set
	// +optional
	Users []string `json:"users,omitempty"`

	// Addresses of which the device has one: IP addresses, and ranges of them such as
	// 100.64.0.0/16.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a) || isCIDR(a))",message="an address is an IP address, or a range such as 100.64.0.0/16"
	// +listType=set
	// +optional
	Addresses []string `json:"addresses,omitempty"`
}

// A RoutePolicyActionType is a kind of action.
// +kubebuilder:validation:Enum=Route;Redirect;Deny;RequestHeaderModifier;ResponseHeaderModifier;Timeouts;RateLimit;BackendTLS
type RoutePolicyActionType string

// Kinds of actions.
const (
	// ActionRoute sends requests to other backends, or has another rule handle them.
	ActionRoute RoutePolicyActionType = "Route"
	// ActionRedirect sends clients elsewhere.
	ActionRedirect RoutePolicyActionType = "Redirect"
	// ActionDeny answers 403, or PERMISSION_DENIED to gRPC.
	ActionDeny RoutePolicyActionType = "Deny"
	// ActionRequestHeaderModifier changes what backends see.
	ActionRequestHeaderModifier RoutePolicyActionType = "RequestHeaderModifier"
	// ActionResponseHeaderModifier changes what clients see.
	ActionResponseHeaderModifier RoutePolicyActionType = "ResponseHeaderModifier"
	// ActionTimeouts replaces timeouts of the route.
	ActionTimeouts RoutePolicyActionType = "Timeouts"
	// ActionRateLimit answers 429 to requests that are too many.
	ActionRateLimit RoutePolicyActionType = "RateLimit"
	// ActionBackendTLS presents a client certificate to backends.
	ActionBackendTLS RoutePolicyActionType = "BackendTLS"
)

// A RoutePolicyAction is one thing to do. The member of its type says how.
// +kubebuilder:validation:XValidation:rule="(self.type == 'Route') == has(self.route)",message="route is for type Route, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Redirect') == has(self.redirect)",message="redirect is for type Redirect, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'RequestHeaderModifier') == has(self.requestHeaderModifier)",message="requestHeaderModifier is for type RequestHeaderModifier, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ResponseHeaderModifier') == has(self.responseHeaderModifier)",message="responseHeaderModifier is for type ResponseHeaderModifier, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Timeouts') == has(self.timeouts)",message="timeouts is for type Timeouts, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'RateLimit') == has(self.rateLimit)",message="rateLimit is for type RateLimit, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'BackendTLS') == has(self.backendTLS)",message="backendTLS is for type BackendTLS, which needs it"
type RoutePolicyAction struct {
	Type RoutePolicyActionType `json:"type"`

	// Route says where requests go instead of the route's own backends, or which rule
	// handles them instead of the route's.
	// +optional
	Route *RoutePolicyRoute `json:"route,omitempty"`

	// Redirect says where clients are sent.
	// +optional
	Redirect *RoutePolicyRedirect `json:"redirect,omitempty"`

	// RequestHeaderModifier changes headers of requests, after the route's own
	// filters.
	// +kubebuilder:validation:XValidation:rule="[has(self.set) ? self.set.map(h, h.name) : [], has(self.add) ? self.add.map(h, h.name) : [], has(self.remove) ? self.remove : []].all(of, of.all(n, n.lowerAscii() != 'host'))",message="Host is not changed here; use a URLRewrite of the route"
	// +optional
	RequestHeaderModifier *gwapiv1.HTTPHeaderFilter `json:"requestHeaderModifier,omitempty"`

	// ResponseHeaderModifier changes headers of responses, after the route's own
	// filters.
	// +optional
	ResponseHeaderModifier *gwapiv1.HTTPHeaderFilter `json:"responseHeaderModifier,omitempty"`

	// Timeouts in place of the route's.
	// +optional
	Timeouts *RoutePolicyTimeouts `json:"timeouts,omitempty"`

	// RateLimit of the requests that the rule acts on.
	// +optional
	RateLimit *RoutePolicyRateLimit `json:"rateLimit,omitempty"`

	// BackendTLS says how Envoy speaks TLS to the backends of the requests that the
	// rule acts on.
	// +optional
	BackendTLS *RoutePolicyBackendTLS `json:"backendTLS,omitempty"`
}

// A RoutePolicyBackendTLS is how Envoy speaks TLS to backends. That it does, and whom it
// trusts, says a BackendTLSPolicy.
type RoutePolicyBackendTLS struct {
	// ClientCertificateRef names the Secret of type kubernetes.io/tls whose certificate
	// Envoy presents, instead of that of the Gateway. The extension must be allowed to
	// read it. One of another namespace needs a ReferenceGrant there. Without it, or to
	// backends that speak no TLS, nothing is sent: such requests are answered 503.
	// +kubebuilder:validation:XValidation:rule="(!has(self.group) || self.group == '') && (!has(self.kind) || self.kind == 'Secret')",message="clientCertificateRef must name a Secret"
	ClientCertificateRef gwapiv1.SecretObjectReference `json:"clientCertificateRef"`
}

// A RateUnit is a time that a rate limit is for.
// +kubebuilder:validation:Enum=Second;Minute;Hour
type RateUnit string

// Units of rates.
const (
	RatePerSecond RateUnit = "Second"
	RatePerMinute RateUnit = "Minute"
	RatePerHour   RateUnit = "Hour"
)

// A RoutePolicyRateLimit is how many requests are let through. Each Envoy counts by
// itself, and each match of the rule for itself on each route that it is attached to.
type RoutePolicyRateLimit struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Requests int32 `json:"requests"`

	Unit RateUnit `json:"unit"`
}

// A RoutePolicyRoute says where requests go.
// +kubebuilder:validation:XValidation:rule="has(self.backendRefs) != has(self.rule)",message="a route has either backendRefs or a rule"
type RoutePolicyRoute struct {
	// BackendRefs of the same namespace. One that does not exist has its share of the
	// requests answered 500.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	BackendRefs []RoutePolicyBackendRef `json:"backendRefs,omitempty"`

	// Rule of a route that requests are handled by, whatever it matches itself: with its
	// filters and backends, and what policies of Envoy Gateway say of it, instead of what
	// they say of the route that was asked for. It must be at the same listener. Without
	// it requests are answered 500.
	// +optional
	Rule *RoutePolicyRouteRule `json:"rule,omitempty"`
}

// A RoutePolicyRouteRule names a rule of a route of the same namespace.
type RoutePolicyRouteRule struct {
	// Kind of the route.
	// +kubebuilder:validation:Enum=HTTPRoute;GRPCRoute
	// +kubebuilder:default=HTTPRoute
	// +optional
	Kind gwapiv1.Kind `json:"kind,omitempty"`

	// Name of the route.
	Name gwapiv1.ObjectName `json:"name"`

	// SectionName is the name of the rule.
	SectionName gwapiv1.SectionName `json:"sectionName"`
}

// A RoutePolicyBackendRef is a backend of a rule.
type RoutePolicyBackendRef struct {
	// Kind of the backend. A Service is a backend of a TailscaleServices.
	// +kubebuilder:validation:Enum=TailscaleServices;TailscaleEndpoints
	// +kubebuilder:default=TailscaleServices
	// +optional
	Kind gwapiv1.Kind `json:"kind,omitempty"`

	Name gwapiv1.ObjectName `json:"name"`

	Port gwapiv1.PortNumber `json:"port"`

	// Weight among the backends.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// A RoutePolicyRedirect says where clients are sent. What it does not say stays as it
// was asked for.
// +kubebuilder:validation:XValidation:rule="has(self.scheme) || has(self.hostname) || has(self.port) || has(self.path)",message="a redirect must change scheme, hostname, port or path"
type RoutePolicyRedirect struct {
	// +kubebuilder:validation:Enum=http;https
	// +optional
	Scheme *string `json:"scheme,omitempty"`

	// +optional
	Hostname *gwapiv1.PreciseHostname `json:"hostname,omitempty"`

	// +optional
	Port *gwapiv1.PortNumber `json:"port,omitempty"`

	// Path in place of the whole path. The query stays.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9/\-._~%!$&'()*+,;=:@]*$`
	// +optional
	Path *string `json:"path,omitempty"`

	// StatusCode of the answer.
	// +kubebuilder:validation:Enum=301;302
	// +kubebuilder:default=302
	// +optional
	StatusCode int32 `json:"statusCode,omitempty"`
}

// RoutePolicyTimeouts are in place of a route's.
type RoutePolicyTimeouts struct {
	// Request is how long a request may take in all, its retries included. 0s means
	// without limit.
	Request gwapiv1.Duration `json:"request"`
}

// A RoutePolicyConflictType says how two rules collide.
// +kubebuilder:validation:Enum=OverlappingRule;ConflictingAction;PriorityConflict
type RoutePolicyConflictType string

// Kinds of conflicts.
const (
	// OverlappingRule has the same actions for all that the rule matches.
	OverlappingRule RoutePolicyConflictType = "OverlappingRule"
	// ConflictingAction has other actions, and a higher priority or a nearer target.
	ConflictingAction RoutePolicyConflictType = "ConflictingAction"
	// PriorityConflict has other actions and the same priority at the same level: age
	// and name decide.
	PriorityConflict RoutePolicyConflictType = "PriorityConflict"
)

// A RoutePolicyConflict tells of a rule that never acts, for another one is asked first
// and matches all that it does.
type RoutePolicyConflict struct {
	Type RoutePolicyConflictType `json:"type"`

	// Rule of this policy.
	Rule string `json:"rule"`

	// Prevails reports that the rule of this policy is the one that acts.
	// +optional
	Prevails bool `json:"prevails,omitempty"`

	// OtherPolicy is NAMESPACE/NAME of the policy that has the other rule.
	OtherPolicy string `json:"otherPolicy"`

	OtherRule string `json:"otherRule"`
}

// A RoutePolicyRuleStatus tells of a rule.
type RoutePolicyRuleStatus struct {
	Name string `json:"name"`

	// Active reports that the rule acts on what it matches.
	Active bool `json:"active"`

	// Message says why it does not, or not as asked for.
	// +optional
	Message string `json:"message,omitempty"`

	// Devices that its matches found in tailnets.
	// +optional
	Devices *int32 `json:"devices,omitempty"`
}

// A TailscaleRoutePolicyStatus is what is known of a policy.
type TailscaleRoutePolicyStatus struct {
	// Ancestors are the Gateways that the policy has an effect on, and targets that
	// are not there. Condition Accepted reports whether it does.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Ancestors []gwapiv1.PolicyAncestorStatus `json:"ancestors,omitempty"`

	// Rules of the spec.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Rules []RoutePolicyRuleStatus `json:"rules,omitempty"`

	// PolicyConflicts of rules, on both sides. No more than 64 are listed.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	PolicyConflicts []RoutePolicyConflict `json:"policyConflicts,omitempty"`
}

// A TailscaleRoutePolicy says what happens to requests of Gateways and routes, by path,
// headers, method, and who in the tailnet asks: they are sent elsewhere, redirected,
// denied, or changed. It is a policy attachment of Gateway API, and works with Envoy
// Gateway and our extension.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:resource:scope=Namespaced,path=tailscaleroutepolicies,categories={tailscale}
// +kubebuilder:printcolumn:name="TARGET",type=string,JSONPath=`.spec.targetRefs[0].name`
// +kubebuilder:printcolumn:name="ACCEPTED",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=='Accepted')].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=='Accepted')].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type TailscaleRoutePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TailscaleRoutePolicySpec `json:"spec"`

	// +optional
	Status TailscaleRoutePolicyStatus `json:"status,omitempty"`
}

// TailscaleRoutePolicyList is a list of TailscaleRoutePolicies.
// +kubebuilder:object:root=true
type TailscaleRoutePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TailscaleRoutePolicy `json:"items"`
}
