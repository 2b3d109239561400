// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTailscaleGatewaySchema(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Least": {
			reason: "A name is enough.",
			spec:   "{gatewayRef: {name: eg}}",
		},
		"All": {
			reason: "A Gateway of another namespace, whose name has dots.",
			spec:   "{gatewayRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: infra, name: eg.example}}",
		},
		"NoName": {
			reason: "The name of the Gateway is required.",
			spec:   "{gatewayRef: {namespace: infra}}",
			want:   "spec.gatewayRef.name: Required value",
		},
		"NoRef": {
			reason: "The only Gateway of the namespace need not be named.",
			spec:   "{}",
		},
		"OtherKind": {
			reason: "Only Gateways can be referenced.",
			spec:   "{gatewayRef: {kind: Service, name: eg}}",
			want:   "spec.gatewayRef.kind: Unsupported value",
		},
		"OtherGroup": {
			reason: "Only Gateways can be referenced.",
			spec:   "{gatewayRef: {group: networking.istio.io, name: eg}}",
			want:   "spec.gatewayRef.group: Unsupported value",
		},
		"Namespace": {
			reason: "A namespace is a DNS label.",
			spec:   "{gatewayRef: {namespace: a.b, name: eg}}",
			want:   "spec.gatewayRef.namespace",
		},
		"Sharing": {
			reason: "Only three values exist.",
			spec:   "{gatewayRef: {name: eg}, routeSharing: Listener}",
			want:   "spec.routeSharing: Unsupported value",
		},
		"SplitDNS": {
			reason: "Hostnames resolve individually, or below domains.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {}}, {name: partner, splitDNS: {domains: [shop.example.com, corp.internal]}}]}",
		},
		"SplitDNSNoDomain": {
			reason: "An empty list has no meaning.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: []}}]}",
			want:   "spec.tailnets[0].splitDNS.domains",
		},
		"SplitDNSWildcard": {
			reason: "A domain includes all names below it without a wildcard.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: ['*.example.com']}}]}",
			want:   "spec.tailnets[0].splitDNS.domains[0]",
		},
		"SplitDNSUpperCase": {
			reason: "DNS names are case-insensitive, so only lower case is accepted.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: [Example.com]}}]}",
			want:   "spec.tailnets[0].splitDNS.domains[0]",
		},
		"SplitDNSSingleLabel": {
			reason: "A single label would capture all names below it.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: [internal]}}]}",
			want:   "a single label would capture all names below it",
		},
		"SplitDNSTailnet": {
			reason: "Names below ts.net belong to tailnets.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: [tail1.ts.net]}}]}",
			want:   "names below ts.net are reserved for tailnets",
		},
		"TailnetTwice": {
			reason: "Names of tailnets are unique.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp}, {name: corp}]}",
			want:   "spec.tailnets[1]: Duplicate value",
		},
		"TailnetName": {
			reason: "The name of a tailnet is part of host names.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: Corp}]}",
			want:   "spec.tailnets[0].name",
		},
		"TailnetKind": {
			reason: "Only TailscaleTailnets can be referenced.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, tailscaleTailnetRef: {kind: Tailnet, name: corp}}]}",
			want:   "spec.tailnets[0].tailscaleTailnetRef.kind: Unsupported value",
		},
	}
	c := load(t, "tailscalegateways")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.create(t, tc.spec), tc.want)
		})
	}
}

func TestTailscaleGatewayTailnetSchema(t *testing.T) {
	cases := map[string]struct {
		reason  string
		tailnet string
		want    string
	}{
		"OwnPatterns": {
			reason: "Users choose the patterns.",
			tailnet: `{name: corp, serviceDiscovery: {patterns: ["api-*"]}, routeGeneration: {
				ingress: {hostPattern: "{service}.internal.company.com", pathPrefix: /inbound/, protocol: HTTPS},
				egress: {hostPattern: "{service}.internal.company.com", pathPrefix: "/custom-api/{service}/", protocol: HTTP}}}`,
		},
		"AllVariables": {
			reason:  "Hosts and paths may contain all variables.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "*.{service}.{tailnet}.{domain}.{namespace}.example.com", pathPrefix: "/{namespace}/{tailnet}/{domain}/{service}"}}}`,
		},
		"AnyHost": {
			reason:  "A star matches any host, and the path distinguishes services.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "*", pathPrefix: "/tailscale/{service}/"}}}`,
		},
		"AnyHostByDefaultPath": {
			reason:  "The default path of egress routes distinguishes services, too.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "*"}}}`,
		},
		"AnyHostAndPath": {
			reason:  "All services would have the same host and path.",
			tailnet: `{name: corp, routeGeneration: {ingress: {hostPattern: "*"}}}`,
			want:    "must contain {service}",
		},
		"StarInside": {
			reason:  "A star is the whole pattern, or its first label.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "{service}.*.local"}}}`,
			want:    "must be * for any host",
		},
		"Selector": {
			reason:  "A selector selects objects that users created.",
			tailnet: `{name: corp, routeGeneration: {egress: {selector: {matchLabels: {expose: web}}}}}`,
		},
		"Adopts": {
			reason:  "Existing services can be adopted.",
			tailnet: `{name: corp, vipService: {adoptionPolicy: Adopt}}`,
		},
		"AdoptsMaybe": {
			reason:  "Only Adopt and Refuse exist.",
			tailnet: `{name: corp, vipService: {adoptionPolicy: Ask}}`,
			want:    "adoptionPolicy: Unsupported value",
		},
		"UnknownVariable": {
			reason:  "Unknown variables are refused.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "{service}.{cluster}.local"}}}`,
			want:    "hostPattern: Invalid value",
		},
		"HostUpperCase": {
			reason:  "Hosts of routes are in lower case.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "{service}.Example.com"}}}`,
			want:    "a DNS name in lower case",
		},
		"PathWithoutSlash": {
			reason:  "A path begins with a slash.",
			tailnet: `{name: corp, routeGeneration: {egress: {pathPrefix: "api/{service}/"}}}`,
			want:    "must be a path that begins with /",
		},
		"DoubleSlash": {
			reason:  "The Gateway API refuses empty segments.",
			tailnet: `{name: corp, routeGeneration: {egress: {pathPrefix: "/api//{service}/"}}}`,
			want:    "must be a path that begins with /",
		},
		"OneAddressForAll": {
			reason:  "Services need different addresses.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: tailscale.local, pathPrefix: /}}}`,
			want:    "must contain {service}",
		},
		"OneAddressForAllIngress": {
			reason:  "Services need different addresses.",
			tailnet: `{name: corp, routeGeneration: {ingress: {hostPattern: "{tailnet}.local"}}}`,
			want:    "must contain {service}",
		},
		"ServiceInPath": {
			reason:  "The path alone can distinguish services.",
			tailnet: `{name: corp, routeGeneration: {ingress: {hostPattern: tailscale.local, pathPrefix: "/{service}"}}}`,
		},
		"RouteProtocol": {
			reason:  "Routes are HTTPRoutes.",
			tailnet: `{name: corp, routeGeneration: {egress: {protocol: TCP}}}`,
			want:    "protocol: Unsupported value",
		},
		"ServiceName": {
			reason:  "The name of a Tailscale Service has a fixed syntax.",
			tailnet: `{name: corp, vipService: {name: public}}`,
			want:    "must be svc: followed by a DNS label",
		},
		"ListenerTwice": {
			reason:  "A listener has one port in a tailnet.",
			tailnet: `{name: corp, listeners: [{name: http}, {name: http, vipPort: 8080}]}`,
			want:    "Duplicate value",
		},
		"Identity": {
			reason:  "Only None, ProxyProtocol and Headers exist.",
			tailnet: `{name: corp, listeners: [{name: http, identity: mTLS}]}`,
			want:    "identity: Unsupported value",
		},
		"FindsAll": {
			reason:  "Discovery of a whole tailnet must be explicit.",
			tailnet: `{name: corp, serviceDiscovery: {}}`,
			want:    "set patterns or tags",
		},
		"FindsAllOfDevices": {
			reason:  "Sources and exclusions alone select nothing.",
			tailnet: `{name: corp, serviceDiscovery: {sources: [Devices], excludePatterns: ["proxy-*"], patterns: [], tags: []}}`,
			want:    "set patterns or tags",
		},
		"FindsAllKnowingly": {
			reason:  "The pattern * selects the whole tailnet explicitly.",
			tailnet: `{name: corp, serviceDiscovery: {patterns: ["*"]}}`,
		},
		"FindsTagged": {
			reason:  "Tags are assigned by the owners of the tailnet.",
			tailnet: `{name: corp, serviceDiscovery: {tags: ["tag:web"]}}`,
		},
		"FindsNothing": {
			reason:  "Disabled discovery needs no patterns.",
			tailnet: `{name: corp, serviceDiscovery: {enabled: false}}`,
		},
		"TooOften": {
			reason:  "A short interval would overload Tailscale's API.",
			tailnet: `{name: corp, serviceDiscovery: {patterns: ["*"], interval: 1s}}`,
			want:    "must be at least 5s",
		},
		"Source": {
			reason:  "Only devices and services can be discovered.",
			tailnet: `{name: corp, serviceDiscovery: {patterns: ["*"], sources: [Users]}}`,
			want:    "Unsupported value",
		},
	}
	c := load(t, "tailscalegateways")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.create(t, "{gatewayRef: {name: eg}, tailnets: ["+tc.tailnet+"]}"), tc.want)
		})
	}
}

func TestTailscaleGatewayChange(t *testing.T) {
	cases := map[string]struct {
		reason   string
		from, to string
		want     string
	}{
		"NameChanged": {
			reason: "The name of a Tailscale Service is immutable.",
			from:   `{name: "svc:a"}`, to: `{name: "svc:b"}`,
			want: "is immutable",
		},
		"NameSet": {
			reason: "The default name cannot be changed later.",
			from:   `{}`, to: `{name: "svc:b"}`,
			want: "cannot be set or removed later",
		},
		"NameRemoved": {
			reason: "The name cannot be removed later.",
			from:   `{name: "svc:a"}`, to: `{}`,
			want: "cannot be set or removed later",
		},
		"Shared": {
			reason: "Exclusive can be changed to Shared.",
			from:   `{}`, to: `{sharing: Shared}`,
		},
		"Unshared": {
			reason: "Other clusters may depend on a shared service.",
			from:   `{sharing: Shared}`, to: `{}`,
			want: "cannot go back",
		},
	}
	c := load(t, "tailscalegateways")
	gateway := func(vip string) map[string]any {
		return parse(t, "metadata: {name: public, namespace: default}\nspec: {gatewayRef: {name: eg}, tailnets: [{name: corp, vipService: "+vip+"}]}")
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.validate(t, gateway(tc.to), gateway(tc.from)), tc.want)
		})
	}
}

func TestTailscaleGatewayName(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"Found":  {reason: "Without tailnets, the object's name has no other use.", spec: "{gatewayRef: {name: eg}}"},
		"Joined": {reason: "The name of a Tailscale Service is a DNS label.", spec: "{gatewayRef: {name: eg}, tailnets: [{name: corp}]}", want: "metadata.name must be a DNS label"},
	}
	c := load(t, "tailscalegateways")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.validate(t, parse(t, "metadata: {name: eg.example, namespace: default}\nspec: "+tc.spec), nil), tc.want)
		})
	}
}

func TestTailscaleGatewayDefaults(t *testing.T) {
	ref := map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "eg"}
	cases := map[string]struct {
		reason string
		spec   string
		want   map[string]any
	}{
		"Least": {
			reason: "A reference is enough to look up the Gateway.",
			spec:   "{gatewayRef: {name: eg}}",
			want:   map[string]any{"gatewayRef": ref, "routeSharing": "Gateway", "publishBackends": "Unprotected"},
		},
		"Tailnet": {
			reason: "A tailnet needs only a name, and discovered services get routes.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, serviceDiscovery: {tags: ['tag:web']}, routeGeneration: {ingress: {}}, listeners: [{name: http}]}]}",
			want: map[string]any{
				"gatewayRef": ref, "routeSharing": "Gateway", "publishBackends": "Unprotected",
				"tailnets": []any{map[string]any{
					"name":             "corp",
					"proxy":            map[string]any{"replicas": int64(2), "networking": "Userspace", "forwarding": "InitContainer"},
					"vipService":       map[string]any{"autoApprove": true},
					"listeners":        []any{map[string]any{"name": "http", "identity": "None"}},
					"serviceDiscovery": map[string]any{"enabled": true, "sources": []any{"Services"}, "tags": []any{"tag:web"}, "port": int64(80), "protocol": "HTTP", "interval": "30s"},
					"routeGeneration": map[string]any{
						"ingress": map[string]any{"hostPattern": "{service}.{tailnet}.gateway.local", "pathPrefix": "/", "protocol": "HTTPS"},
						"egress":  map[string]any{"hostPattern": "{service}.tailscale.local", "pathPrefix": "/tailscale/{service}/", "protocol": "HTTP"},
					},
				}},
			},
		},
	}
	s := load(t, "tailscalegateways")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := parse(t, "metadata: {name: public, namespace: default}\nspec: "+tc.spec)
			judge(t, tc.reason, s.validate(t, o, nil))
			if diff := cmp.Diff(tc.want, o["spec"]); diff != "" {
				t.Errorf("%s: defaults: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
