// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TailscaleRoutePolicySpec configures how Gateways handle requests.
type TailscaleRoutePolicySpec struct {
	// TargetRefs are the Gateways, HTTPRoutes and GRPCRoutes of the same namespace that the
	// policy is attached to. A sectionName is a listener of a Gateway, or a rule of a route.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.group == 'gateway.networking.k8s.io' && r.kind in ['Gateway', 'HTTPRoute', 'GRPCRoute'])",message="targetRefs must name Gateways, HTTPRoutes or GRPCRoutes"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.kind == b.kind && a.name == b.name && (has(a.sectionName) ? a.sectionName : '') == (has(b.sectionName) ? b.sectionName : '')))",message="targetRefs must not name one target twice"
	// +listType=atomic
	TargetRefs []gwapiv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs"`

	// Rules of the policy. The first rule that matches a request applies, and no other. Rules
	// with a higher priority come first. Rules attached to a rule of a route come before those
	// attached to the route, then those of a listener, then those of a Gateway. For equal
	// rules, the order is: the older policy, the policy name, the position in the policy.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Rules []RoutePolicyRule `json:"rules"`
}

// A RoutePolicyRule applies actions to matching requests.
// +kubebuilder:validation:XValidation:rule="self.actions.all(a, self.actions.exists_one(b, a.type == b.type))",message="an action type may occur only once"
// +kubebuilder:validation:XValidation:rule="self.actions.filter(a, a.type in ['Route', 'Redirect', 'Deny']).size() <= 1",message="only one of Route, Redirect and Deny is allowed"
// +kubebuilder:validation:XValidation:rule="self.actions.exists(a, a.type == 'Deny') ? self.actions.size() == 1 : true",message="Deny cannot be combined with other actions"
// +kubebuilder:validation:XValidation:rule="self.actions.exists(a, a.type == 'Redirect') ? self.actions.all(a, a.type in ['Redirect', 'ResponseHeaderModifier', 'RateLimit']) : true",message="Redirect can be combined only with ResponseHeaderModifier and RateLimit"
type RoutePolicyRule struct {
	// Name of the rule, which the status uses to identify it.
	Name gwapiv1.SectionName `json:"name"`

	// Priority among the rules of one level. Rules with a higher priority come first.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Matches of which a request must meet one, in addition to the matches of the route. Absent
	// means all requests of the target.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Matches []RoutePolicyMatch `json:"matches,omitempty"`

	// Actions to apply.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=atomic
	Actions []RoutePolicyAction `json:"actions"`
}

// A RoutePolicyMatch selects requests that meet all its requirements.
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

	// TailnetDevice is the device that sends the request. The address of the connection alone
	// identifies it, and the listener must learn that address from the PROXY protocol. Headers
	// do not count.
	// +optional
	TailnetDevice *TailnetDeviceMatch `json:"tailnetDevice,omitempty"`
}

// A TailnetDeviceMatch selects devices that meet all its requirements.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="(has(self.tags) || has(self.hostnames) || has(self.users)) == has(self.tailnet)",message="tags, hostnames and users need the tailnet, and the tailnet needs one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.hostnames) || has(self.tags) || has(self.users)",message="hostnames need tags or users, because users choose the names of their devices"
type TailnetDeviceMatch struct {
	// Tailnet of the device: the name of a TailscaleTailnet, which must allow the namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Tailnet string `json:"tailnet,omitempty"`

	// Tags of which the device must have one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Tags []Tag `json:"tags,omitempty"`

	// Hostnames are patterns for the device's name or DNS name: * matches any characters, ?
	// matches one. The device must match one of them. Users choose the names of their devices,
	// so hostnames only narrow tags or users and cannot be set without them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Hostnames []string `json:"hostnames,omitempty"`

	// Users of whom one must own the device, by login name. Tagged devices have no owner.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=254
	// +listType=set
	// +optional
	Users []string `json:"users,omitempty"`

	// Addresses of which the device must have one: IP addresses, or ranges such as
	// 100.64.0.0/16.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a) || isCIDR(a))",message="must be IP addresses, or ranges such as 100.64.0.0/16"
	// +listType=set
	// +optional
	Addresses []string `json:"addresses,omitempty"`
}

// A RoutePolicyActionType is the type of an action.
// +kubebuilder:validation:Enum=Route;Redirect;Deny;RequestHeaderModifier;ResponseHeaderModifier;Timeouts;RateLimit;BackendTLS
type RoutePolicyActionType string

// Types of actions.
const (
	// ActionRoute sends requests to other backends, or to another rule.
	ActionRoute RoutePolicyActionType = "Route"
	// ActionRedirect redirects clients.
	ActionRedirect RoutePolicyActionType = "Redirect"
	// ActionDeny responds with 403, or PERMISSION_DENIED for gRPC.
	ActionDeny RoutePolicyActionType = "Deny"
	// ActionRequestHeaderModifier changes the headers that backends receive.
	ActionRequestHeaderModifier RoutePolicyActionType = "RequestHeaderModifier"
	// ActionResponseHeaderModifier changes the headers that clients receive.
	ActionResponseHeaderModifier RoutePolicyActionType = "ResponseHeaderModifier"
	// ActionTimeouts replaces timeouts of the route.
	ActionTimeouts RoutePolicyActionType = "Timeouts"
	// ActionRateLimit responds with 429 to requests above the limit.
	ActionRateLimit RoutePolicyActionType = "RateLimit"
	// ActionBackendTLS presents a client certificate to backends.
	ActionBackendTLS RoutePolicyActionType = "BackendTLS"
)

// A RoutePolicyAction is one action. The field of the same name as its type configures it.
// +kubebuilder:validation:XValidation:rule="(self.type == 'Route') == has(self.route)",message="route is for type Route, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Redirect') == has(self.redirect)",message="redirect is for type Redirect, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'RequestHeaderModifier') == has(self.requestHeaderModifier)",message="requestHeaderModifier is for type RequestHeaderModifier, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ResponseHeaderModifier') == has(self.responseHeaderModifier)",message="responseHeaderModifier is for type ResponseHeaderModifier, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Timeouts') == has(self.timeouts)",message="timeouts is for type Timeouts, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'RateLimit') == has(self.rateLimit)",message="rateLimit is for type RateLimit, which needs it"
// +kubebuilder:validation:XValidation:rule="(self.type == 'BackendTLS') == has(self.backendTLS)",message="backendTLS is for type BackendTLS, which needs it"
type RoutePolicyAction struct {
	Type RoutePolicyActionType `json:"type"`

	// Route sends requests to other backends instead of the route's backends, or to another
	// rule instead of the route's.
	// +optional
	Route *RoutePolicyRoute `json:"route,omitempty"`

	// Redirect redirects clients.
	// +optional
	Redirect *RoutePolicyRedirect `json:"redirect,omitempty"`

	// RequestHeaderModifier changes headers of requests, after the route's filters.
	// +kubebuilder:validation:XValidation:rule="[has(self.set) ? self.set.map(h, h.name) : [], has(self.add) ? self.add.map(h, h.name) : [], has(self.remove) ? self.remove : []].all(of, of.all(n, n.lowerAscii() != 'host'))",message="cannot change Host; use a URLRewrite filter of the route"
	// +optional
	RequestHeaderModifier *gwapiv1.HTTPHeaderFilter `json:"requestHeaderModifier,omitempty"`

	// ResponseHeaderModifier changes headers of responses, after the route's filters.
	// +optional
	ResponseHeaderModifier *gwapiv1.HTTPHeaderFilter `json:"responseHeaderModifier,omitempty"`

	// Timeouts replaces the route's timeouts.
	// +optional
	Timeouts *RoutePolicyTimeouts `json:"timeouts,omitempty"`

	// RateLimit limits the requests that the rule applies to.
	// +optional
	RateLimit *RoutePolicyRateLimit `json:"rateLimit,omitempty"`

	// BackendTLS configures TLS between Envoy and the backends of the requests that the rule
	// applies to.
	// +optional
	BackendTLS *RoutePolicyBackendTLS `json:"backendTLS,omitempty"`
}

// A RoutePolicyBackendTLS configures TLS between Envoy and backends. A BackendTLSPolicy enables
// TLS and selects the trusted CAs.
type RoutePolicyBackendTLS struct {
	// ClientCertificateRef references the Secret of type kubernetes.io/tls whose certificate
	// Envoy presents, instead of the Gateway's certificate. The extension must be allowed to
	// read it. A Secret of another namespace needs a ReferenceGrant in that namespace. If the
	// Secret cannot be used, or the backend does not use TLS, Envoy forwards no request and
	// responds with 503.
	// +kubebuilder:validation:XValidation:rule="(!has(self.group) || self.group == '') && (!has(self.kind) || self.kind == 'Secret')",message="clientCertificateRef must name a Secret"
	ClientCertificateRef gwapiv1.SecretObjectReference `json:"clientCertificateRef"`
}

// A RateUnit is the period of a rate limit.
// +kubebuilder:validation:Enum=Second;Minute;Hour
type RateUnit string

// Units of rates.
const (
	RatePerSecond RateUnit = "Second"
	RatePerMinute RateUnit = "Minute"
	RatePerHour   RateUnit = "Hour"
)

// A RoutePolicyRateLimit is the number of requests that are allowed per unit. Each Envoy counts
// separately, and each match of the rule has a separate count on each route that it is attached
// to.
type RoutePolicyRateLimit struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Requests int32 `json:"requests"`

	Unit RateUnit `json:"unit"`
}

// A RoutePolicyRoute is the destination of requests.
// +kubebuilder:validation:XValidation:rule="has(self.backendRefs) != has(self.rule)",message="set exactly one of backendRefs and rule"
type RoutePolicyRoute struct {
	// BackendRefs are backends of the same namespace. Requests to a backend that does not exist
	// receive 500.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	BackendRefs []RoutePolicyBackendRef `json:"backendRefs,omitempty"`

	// Rule of a route that handles the requests, even if they do not match it. Its filters and
	// backends apply, and the Envoy Gateway policies for it instead of those for the original
	// route. It must be attached to the same listener. If the rule does not exist, requests
	// receive 500.
	// +optional
	Rule *RoutePolicyRouteRule `json:"rule,omitempty"`
}

// A RoutePolicyRouteRule references a rule of a route of the same namespace.
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
	// Kind of the backend. To use a Service, make it a backend of a TailscaleServices.
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

// A RoutePolicyRedirect is the destination of a redirect. Absent fields keep the value of the
// request.
// +kubebuilder:validation:XValidation:rule="has(self.scheme) || has(self.hostname) || has(self.port) || has(self.path)",message="a redirect must change scheme, hostname, port or path"
type RoutePolicyRedirect struct {
	// +kubebuilder:validation:Enum=http;https
	// +optional
	Scheme *string `json:"scheme,omitempty"`

	// +optional
	Hostname *gwapiv1.PreciseHostname `json:"hostname,omitempty"`

	// +optional
	Port *gwapiv1.PortNumber `json:"port,omitempty"`

	// Path replaces the whole path. The query is kept.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9/\-._~%!$&'()*+,;=:@]*$`
	// +optional
	Path *string `json:"path,omitempty"`

	// StatusCode of the response.
	// +kubebuilder:validation:Enum=301;302
	// +kubebuilder:default=302
	// +optional
	StatusCode int32 `json:"statusCode,omitempty"`
}

// RoutePolicyTimeouts replace the timeouts of a route.
type RoutePolicyTimeouts struct {
	// Request is the maximum duration of a request, including its retries. 0s means no limit.
	Request gwapiv1.Duration `json:"request"`
}

// A RoutePolicyConflictType is the type of a conflict between two rules.
// +kubebuilder:validation:Enum=OverlappingRule;ConflictingAction;PriorityConflict
type RoutePolicyConflictType string

// Types of conflicts.
const (
	// OverlappingRule means that both rules have the same actions for all requests that the
	// rule matches.
	OverlappingRule RoutePolicyConflictType = "OverlappingRule"
	// ConflictingAction means that the other rule has other actions, and a higher priority or a
	// more specific target.
	ConflictingAction RoutePolicyConflictType = "ConflictingAction"
	// PriorityConflict means that the other rule has other actions, with the same priority at
	// the same level: age and name decide.
	PriorityConflict RoutePolicyConflictType = "PriorityConflict"
)

// A RoutePolicyConflict reports a rule that never applies, because another rule comes first and
// matches the same requests.
type RoutePolicyConflict struct {
	Type RoutePolicyConflictType `json:"type"`

	// Rule of this policy.
	Rule string `json:"rule"`

	// TakesPrecedence reports whether the rule of this policy is the one that applies.
	// +optional
	TakesPrecedence bool `json:"takesPrecedence,omitempty"`

	// ConflictingPolicy is NAMESPACE/NAME of the policy that has the other rule.
	ConflictingPolicy string `json:"conflictingPolicy"`

	ConflictingRule string `json:"conflictingRule"`
}

// A RoutePolicyRuleStatus is the state of a rule.
type RoutePolicyRuleStatus struct {
	Name string `json:"name"`

	// Active reports whether the rule applies to the requests that it matches.
	Active bool `json:"active"`

	// Message describes why the rule does not apply, or not as specified.
	// +optional
	Message string `json:"message,omitempty"`

	// Devices is the number of devices in tailnets that the rule's matches select.
	// +optional
	Devices *int32 `json:"devices,omitempty"`
}

// A TailscaleRoutePolicyStatus is the observed state of a TailscaleRoutePolicy.
type TailscaleRoutePolicyStatus struct {
	// Ancestors are the Gateways that the policy affects, and targets that do not exist. The
	// condition Accepted reports whether the policy takes effect.
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

	// PolicyConflicts of rules, reported by both policies. At most 64 are listed.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	PolicyConflicts []RoutePolicyConflict `json:"policyConflicts,omitempty"`
}

// A TailscaleRoutePolicy routes, redirects, denies or modifies requests of Gateways and routes,
// by path, headers, method and tailnet device. It is a policy attachment of Gateway API, and
// requires Envoy Gateway and its Tailscale Gateway extension.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:resource:scope=Namespaced,path=tailscaleroutepolicies,categories={tailscale},shortName=tsrp
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

// TailscaleRoutePolicyKind is the kind of a TailscaleRoutePolicy.
const TailscaleRoutePolicyKind = "TailscaleRoutePolicy"

func init() {
	register(&TailscaleRoutePolicy{}, &TailscaleRoutePolicyList{})
}
