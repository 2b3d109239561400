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
	to := func(refs, rules string) string { return "{targetRefs: [" + refs + "], rules: [" + rules + "]}" }
	does := func(actions string) string { return to(web, "{name: a, actions: ["+actions+"]}") }
	meets := func(match string) string { return to(web, "{name: a, matches: ["+match+"], actions: ["+deny+"]}") }
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Deny":       {reason: "A rule for all requests should be taken.", spec: does(deny)},
		"EachTarget": {reason: "A policy may have several targets.", spec: to(web+", {group: gateway.networking.k8s.io, kind: Gateway, name: gw, sectionName: http}, {group: gateway.networking.k8s.io, kind: GRPCRoute, name: web}", "{name: a, actions: ["+deny+"]}")},
		"NoTarget":   {reason: "A policy must be attached to something.", spec: to("", "{name: a, actions: ["+deny+"]}"), want: "spec.targetRefs"},
		"Service":    {reason: "A Service has no routes.", spec: to("{group: '', kind: Service, name: web}", "{name: a, actions: ["+deny+"]}"), want: "targetRefs must name Gateways, HTTPRoutes or GRPCRoutes"},
		"TwiceThere": {reason: "To name a target twice says nothing.", spec: to(web+", "+web, "{name: a, actions: ["+deny+"]}"), want: "must not name one target twice"},
		"NoRule":     {reason: "A policy without rules does nothing.", spec: to(web, ""), want: "spec.rules"},
		"SameName":   {reason: "The status tells of rules by name.", spec: to(web, "{name: a, actions: ["+deny+"]}, {name: a, actions: ["+deny+"]}"), want: "Duplicate value"},
		"Priority":   {reason: "Priorities have bounds.", spec: to(web, "{name: a, priority: 1001, actions: ["+deny+"]}"), want: "priority"},
		"NoAction":   {reason: "A rule must do something.", spec: does(""), want: "actions"},
		"TwoDenies":  {reason: "An action counts once.", spec: does(deny + ", " + deny), want: "an action may be there once"},
		"DenyAndMore": {
			reason: "Who is denied sees nothing else.",
			spec:   does(deny + ", {type: Timeouts, timeouts: {request: 3s}}"),
			want:   "Deny stands alone",
		},
		"RouteAndRedirect": {
			reason: "A request goes one way.",
			spec:   does("{type: Route, route: {backendRefs: [{name: web, port: 80}]}}, {type: Redirect, redirect: {path: /}}"),
			want:   "of Route, Redirect and Deny there may be one",
		},
		"Route": {
			reason: "Requests may go to several backends, changed and for a time.",
			spec:   does("{type: Route, route: {backendRefs: [{name: web, port: 80, weight: 9}, {kind: TailscaleEndpoints, name: edge, port: 80}]}}, {type: Timeouts, timeouts: {request: 3s}}, {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x, value: v}], remove: [z]}}"),
		},
		"RouteToRule": {
			reason: "Requests may be handled by a rule of a route, changed and for a time.",
			spec:   does("{type: Route, route: {rule: {name: strict, sectionName: careful}}}, {type: Timeouts, timeouts: {request: 3s}}, {type: BackendTLS, backendTLS: {clientCertificateRef: {name: client}}}"),
		},
		"RouteToGRPCRule":    {reason: "The rule may be a GRPCRoute's.", spec: does("{type: Route, route: {rule: {kind: GRPCRoute, name: strict, sectionName: careful}}}")},
		"RouteToTCPRule":     {reason: "Other routes have no requests.", spec: does("{type: Route, route: {rule: {kind: TCPRoute, name: strict, sectionName: careful}}}"), want: "Unsupported value"},
		"RouteToWholeRoute":  {reason: "A route is not one rule.", spec: does("{type: Route, route: {rule: {name: strict}}}"), want: "sectionName"},
		"RouteToBoth":        {reason: "A request goes one way.", spec: does("{type: Route, route: {rule: {name: strict, sectionName: careful}, backendRefs: [{name: web, port: 80}]}}"), want: "either backendRefs or a rule"},
		"RouteToNeither":     {reason: "Route must say where.", spec: does("{type: Route, route: {}}"), want: "either backendRefs or a rule"},
		"RouteToService":     {reason: "Envoy Gateway makes clusters of Services for routes alone.", spec: does("{type: Route, route: {backendRefs: [{kind: Service, name: web, port: 80}]}}"), want: "Unsupported value"},
		"RouteNowhere":       {reason: "Route must say where.", spec: does("{type: Route}"), want: "route is for type Route, which needs it"},
		"OtherMember":        {reason: "A member of another type would do nothing.", spec: does("{type: Timeouts, timeouts: {request: 3s}, redirect: {path: /}}"), want: "redirect is for type Redirect"},
		"Redirect":           {reason: "A redirect may change all of a URL.", spec: does("{type: Redirect, redirect: {scheme: https, hostname: www.example.com, port: 8443, path: /new, statusCode: 301}}")},
		"RedirectToNothing":  {reason: "A redirect to the same URL never ends.", spec: does("{type: Redirect, redirect: {statusCode: 301}}"), want: "must change scheme, hostname, port or path"},
		"OtherStatus":        {reason: "A redirect is 301 or 302.", spec: does("{type: Redirect, redirect: {path: /, statusCode: 307}}"), want: "Unsupported value"},
		"RateLimit":          {reason: "Rates may be limited beside other actions.", spec: does("{type: RateLimit, rateLimit: {requests: 10, unit: Second}}, {type: Timeouts, timeouts: {request: 3s}}")},
		"NoRate":             {reason: "A rate of nothing is Deny.", spec: does("{type: RateLimit, rateLimit: {requests: 0, unit: Second}}"), want: "requests"},
		"DenyAndRate":        {reason: "Who is denied sees nothing else.", spec: does(deny + ", {type: RateLimit, rateLimit: {requests: 10, unit: Second}}"), want: "Deny stands alone"},
		"BackendTLS":         {reason: "A certificate may be presented to other backends.", spec: does("{type: BackendTLS, backendTLS: {clientCertificateRef: {name: client}}}, {type: Route, route: {backendRefs: [{name: web, port: 443}]}}")},
		"OtherCertificate":   {reason: "A certificate is in a Secret.", spec: does("{type: BackendTLS, backendTLS: {clientCertificateRef: {kind: ConfigMap, name: client}}}"), want: "must name a Secret"},
		"NoCertificate":      {reason: "An action says what to do.", spec: does("{type: BackendTLS, backendTLS: {}}"), want: "clientCertificateRef"},
		"RedirectAndTLS":     {reason: "Who is sent elsewhere reaches no backend.", spec: does("{type: BackendTLS, backendTLS: {clientCertificateRef: {name: client}}}, {type: Redirect, redirect: {path: /}}"), want: "beside Redirect"},
		"Host":               {reason: "Envoy would refuse to change Host so.", spec: does("{type: RequestHeaderModifier, requestHeaderModifier: {remove: [Host]}}"), want: "Host is not changed here"},
		"Path":               {reason: "A path may be a regular expression.", spec: meets("{path: {type: RegularExpression, value: '/v[0-9]+/.*'}}")},
		"BadPath":            {reason: "What cannot be compiled matches nothing.", spec: meets("{path: {type: RegularExpression, value: '/v[0-9'}}"), want: "path"},
		"BadHeader":          {reason: "What cannot be compiled matches nothing.", spec: meets("{headers: [{name: x, type: RegularExpression, value: '('}]}"), want: "headers"},
		"LongPath":           {reason: "Expressions are bounded.", spec: meets("{path: {type: RegularExpression, value: '/" + strings.Repeat("a", 1024) + "'}}"), want: "Too long"},
		"EmptyMatch":         {reason: "A match that says nothing is a mistake.", spec: meets("{}"), want: "matches"},
		"Addresses":          {reason: "Addresses and ranges of both families should be taken.", spec: meets("{tailnetDevice: {addresses: [100.64.0.7, 100.65.0.0/16, 'fd7a:115c:a1e0::7', 'fd7a:115c:a1e0::/48']}}")},
		"Devices":            {reason: "A device may be told by tag, name and user.", spec: meets("{tailnetDevice: {tailnet: corp, tags: ['tag:ci'], hostnames: ['build-*'], users: [amelie@example.com], addresses: [100.64.0.0/16]}}")},
		"HostnamesAlone":     {reason: "Whoever is in the tailnet may call a device so.", spec: meets("{tailnetDevice: {tailnet: corp, hostnames: ['build-*']}}"), want: "set tags or users beside hostnames"},
		"HostnamesNearby":    {reason: "A range of addresses says of no device whose it is.", spec: meets("{tailnetDevice: {tailnet: corp, hostnames: ['build-*'], addresses: [100.64.0.0/10]}}"), want: "set tags or users beside hostnames"},
		"HostnamesOfUsers":   {reason: "A user has more than one device.", spec: meets("{tailnetDevice: {tailnet: corp, hostnames: ['laptop-*'], users: [amelie@example.com]}}")},
		"NoTailnet":          {reason: "Tags are a tailnet's.", spec: meets("{tailnetDevice: {tags: ['tag:ci']}}"), want: "need the tailnet"},
		"TailnetAlone":       {reason: "A tailnet alone tells no device.", spec: meets("{tailnetDevice: {tailnet: corp}}"), want: "need the tailnet"},
		"NoTag":              {reason: "A tag is a tag.", spec: meets("{tailnetDevice: {tailnet: corp, tags: [ci]}}"), want: "must be tag: followed by a letter"},
		"Word":               {reason: "A name is no address.", spec: meets("{tailnetDevice: {addresses: [laptop]}}"), want: "an address is an IP address"},
		"MethodAndMore":      {reason: "A match may say all at once.", spec: meets("{method: POST, path: {value: /a}, headers: [{name: x, value: v}], tailnetDevice: {addresses: [100.64.0.7]}}")},
		"NoDuration":         {reason: "A timeout is a duration.", spec: does("{type: Timeouts, timeouts: {request: soon}}"), want: "timeouts.request"},
		"EmptyTailnetDevice": {reason: "A device that nothing is said of is anyone.", spec: meets("{tailnetDevice: {}}"), want: "tailnetDevice"},
	}
	s := serve(t, ofExtension(t, "gateway.tailscale.com_tailscaleroutepolicies.yaml"))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, s.create(t, tc.spec), tc.want)
		})
	}
}
