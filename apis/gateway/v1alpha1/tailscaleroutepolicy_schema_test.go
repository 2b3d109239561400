// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

func TestTailscaleRoutePolicySchema(t *testing.T) {
	const (
		web  = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}"
		deny = "{type: Deny}"
	)
	policySpec := func(refs, rules string) string { return "{targetRefs: [" + refs + "], rules: [" + rules + "]}" }
	actionSpec := func(actions string) string { return policySpec(web, "{name: a, actions: ["+actions+"]}") }
	meets := func(match string) string {
		return policySpec(web, "{name: a, matches: ["+match+"], actions: ["+deny+"]}")
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Deny":       {reason: "A rule can match all requests.", spec: actionSpec(deny)},
		"EachTarget": {reason: "A policy may have several targets.", spec: policySpec(web+", {group: gateway.networking.k8s.io, kind: Gateway, name: gw, sectionName: http}, {group: gateway.networking.k8s.io, kind: GRPCRoute, name: web}", "{name: a, actions: ["+deny+"]}")},
		"NoTarget":   {reason: "A policy must be attached to something.", spec: policySpec("", "{name: a, actions: ["+deny+"]}"), want: "spec.targetRefs"},
		"Service":    {reason: "A Service has no routes.", spec: policySpec("{group: '', kind: Service, name: web}", "{name: a, actions: ["+deny+"]}"), want: "targetRefs must name Gateways, HTTPRoutes or GRPCRoutes"},
		"TwiceThere": {reason: "Targets are unique.", spec: policySpec(web+", "+web, "{name: a, actions: ["+deny+"]}"), want: "must not name one target twice"},
		"NoRule":     {reason: "A policy needs rules.", spec: policySpec(web, ""), want: "spec.rules"},
		"SameName":   {reason: "The status identifies rules by name.", spec: policySpec(web, "{name: a, actions: ["+deny+"]}, {name: a, actions: ["+deny+"]}"), want: "Duplicate value"},
		"Priority":   {reason: "Priorities are limited.", spec: policySpec(web, "{name: a, priority: 1001, actions: ["+deny+"]}"), want: "priority"},
		"NoAction":   {reason: "A rule needs an action.", spec: actionSpec(""), want: "actions"},
		"TwoDenies":  {reason: "Action types are unique.", spec: actionSpec(deny + ", " + deny), want: "an action type may occur only once"},
		"DenyAndMore": {
			reason: "A denied request has no other action.",
			spec:   actionSpec(deny + ", {type: Timeouts, timeouts: {request: 3s}}"),
			want:   "Deny cannot be combined",
		},
		"RouteAndRedirect": {
			reason: "A request has one destination.",
			spec:   actionSpec("{type: Route, route: {backendRefs: [{name: web, port: 80}]}}, {type: Redirect, redirect: {path: /}}"),
			want:   "only one of Route, Redirect and Deny is allowed",
		},
		"Route": {
			reason: "A route action can be combined with header changes and timeouts.",
			spec:   actionSpec("{type: Route, route: {backendRefs: [{name: web, port: 80, weight: 9}, {kind: TailscaleEndpoints, name: edge, port: 80}]}}, {type: Timeouts, timeouts: {request: 3s}}, {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x, value: v}], remove: [z]}}"),
		},
		"RouteToRule": {
			reason: "A route action with a rule can be combined with header changes and timeouts.",
			spec:   actionSpec("{type: Route, route: {rule: {name: strict, sectionName: careful}}}, {type: Timeouts, timeouts: {request: 3s}}, {type: BackendTLS, backendTLS: {clientCertificateRef: {name: client}}}"),
		},
		"RouteToGRPCRule":    {reason: "The rule can belong to a GRPCRoute.", spec: actionSpec("{type: Route, route: {rule: {kind: GRPCRoute, name: strict, sectionName: careful}}}")},
		"RouteToTCPRule":     {reason: "Only HTTPRoutes and GRPCRoutes have requests.", spec: actionSpec("{type: Route, route: {rule: {kind: TCPRoute, name: strict, sectionName: careful}}}"), want: "Unsupported value"},
		"RouteToWholeRoute":  {reason: "The section name selects a rule.", spec: actionSpec("{type: Route, route: {rule: {name: strict}}}"), want: "sectionName"},
		"RouteToBoth":        {reason: "A request has one destination.", spec: actionSpec("{type: Route, route: {rule: {name: strict, sectionName: careful}, backendRefs: [{name: web, port: 80}]}}"), want: "set exactly one of backendRefs and rule"},
		"RouteToNeither":     {reason: "A route action needs a destination.", spec: actionSpec("{type: Route, route: {}}"), want: "set exactly one of backendRefs and rule"},
		"RouteToService":     {reason: "Envoy Gateway creates clusters for Services of routes only.", spec: actionSpec("{type: Route, route: {backendRefs: [{kind: Service, name: web, port: 80}]}}"), want: "Unsupported value"},
		"RouteNowhere":       {reason: "A route action needs a destination.", spec: actionSpec("{type: Route}"), want: "route is for type Route, which needs it"},
		"OtherMember":        {reason: "The field of another type has no effect.", spec: actionSpec("{type: Timeouts, timeouts: {request: 3s}, redirect: {path: /}}"), want: "redirect is for type Redirect"},
		"Redirect":           {reason: "A redirect can change all parts of a URL.", spec: actionSpec("{type: Redirect, redirect: {scheme: https, hostname: www.example.com, port: 8443, path: /new, statusCode: 301}}")},
		"RedirectToNothing":  {reason: "A redirect to the same URL is an endless loop.", spec: actionSpec("{type: Redirect, redirect: {statusCode: 301}}"), want: "must change scheme, hostname, port or path"},
		"OtherStatus":        {reason: "A redirect is 301 or 302.", spec: actionSpec("{type: Redirect, redirect: {path: /, statusCode: 307}}"), want: "Unsupported value"},
		"RateLimit":          {reason: "A rate limit can be combined with other actions.", spec: actionSpec("{type: RateLimit, rateLimit: {requests: 10, unit: Second}}, {type: Timeouts, timeouts: {request: 3s}}")},
		"NoRate":             {reason: "Zero requests would be Deny.", spec: actionSpec("{type: RateLimit, rateLimit: {requests: 0, unit: Second}}"), want: "requests"},
		"DenyAndRate":        {reason: "A denied request has no other action.", spec: actionSpec(deny + ", {type: RateLimit, rateLimit: {requests: 10, unit: Second}}"), want: "Deny cannot be combined"},
		"BackendTLS":         {reason: "A client certificate can be combined with other backends.", spec: actionSpec("{type: BackendTLS, backendTLS: {clientCertificateRef: {name: client}}}, {type: Route, route: {backendRefs: [{name: web, port: 443}]}}")},
		"OtherCertificate":   {reason: "A certificate is in a Secret.", spec: actionSpec("{type: BackendTLS, backendTLS: {clientCertificateRef: {kind: ConfigMap, name: client}}}"), want: "must name a Secret"},
		"NoCertificate":      {reason: "The action needs a certificate.", spec: actionSpec("{type: BackendTLS, backendTLS: {}}"), want: "clientCertificateRef"},
		"RedirectAndTLS":     {reason: "A redirected request reaches no backend.", spec: actionSpec("{type: BackendTLS, backendTLS: {clientCertificateRef: {name: client}}}, {type: Redirect, redirect: {path: /}}"), want: "Redirect can be combined only"},
		"Host":               {reason: "Envoy refuses to change Host with a header modifier.", spec: actionSpec("{type: RequestHeaderModifier, requestHeaderModifier: {remove: [Host]}}"), want: "cannot change Host"},
		"Path":               {reason: "A path may be a regular expression.", spec: meets("{path: {type: RegularExpression, value: '/v[0-9]+/.*'}}")},
		"BadPath":            {reason: "Invalid expressions are refused.", spec: meets("{path: {type: RegularExpression, value: '/v[0-9'}}"), want: "path"},
		"BadHeader":          {reason: "Invalid expressions are refused.", spec: meets("{headers: [{name: x, type: RegularExpression, value: '('}]}"), want: "headers"},
		"LongPath":           {reason: "The length of expressions is limited.", spec: meets("{path: {type: RegularExpression, value: '/" + strings.Repeat("a", 1024) + "'}}"), want: "Too long"},
		"EmptyMatch":         {reason: "An empty match is refused.", spec: meets("{}"), want: "matches"},
		"Addresses":          {reason: "Addresses and ranges of both families are valid.", spec: meets("{tailnetDevice: {addresses: [100.64.0.7, 100.65.0.0/16, 'fd7a:115c:a1e0::7', 'fd7a:115c:a1e0::/48']}}")},
		"Devices":            {reason: "Tags, names, users and addresses can select a device.", spec: meets("{tailnetDevice: {tailnet: corp, tags: ['tag:ci'], hostnames: ['build-*'], users: [amelie@example.com], addresses: [100.64.0.0/16]}}")},
		"HostnamesAlone":     {reason: "Any user of the tailnet can give a device that name.", spec: meets("{tailnetDevice: {tailnet: corp, hostnames: ['build-*']}}"), want: "hostnames need tags or users"},
		"HostnamesNearby":    {reason: "A range of addresses does not identify the owner of a device.", spec: meets("{tailnetDevice: {tailnet: corp, hostnames: ['build-*'], addresses: [100.64.0.0/10]}}"), want: "hostnames need tags or users"},
		"HostnamesOfUsers":   {reason: "A user has more than one device.", spec: meets("{tailnetDevice: {tailnet: corp, hostnames: ['laptop-*'], users: [amelie@example.com]}}")},
		"NoTailnet":          {reason: "Tags need a tailnet.", spec: meets("{tailnetDevice: {tags: ['tag:ci']}}"), want: "need the tailnet"},
		"TailnetAlone":       {reason: "A tailnet alone selects no device.", spec: meets("{tailnetDevice: {tailnet: corp}}"), want: "need the tailnet"},
		"NoTag":              {reason: "A tag is a tag.", spec: meets("{tailnetDevice: {tailnet: corp, tags: [ci]}}"), want: "must be tag: followed by a letter"},
		"Word":               {reason: "Addresses must be valid.", spec: meets("{tailnetDevice: {addresses: [laptop]}}"), want: "must be IP addresses"},
		"MethodAndMore":      {reason: "A match can combine all fields.", spec: meets("{method: POST, path: {value: /a}, headers: [{name: x, value: v}], tailnetDevice: {addresses: [100.64.0.7]}}")},
		"NoDuration":         {reason: "A timeout is a duration.", spec: actionSpec("{type: Timeouts, timeouts: {request: soon}}"), want: "timeouts.request"},
		"EmptyTailnetDevice": {reason: "An empty device match is refused.", spec: meets("{tailnetDevice: {}}"), want: "tailnetDevice"},
	}
	s := serve(t, ofExtension(t, "gateway.tailscale.com_tailscaleroutepolicies.yaml"))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, s.create(t, tc.spec), tc.want)
		})
	}
}
