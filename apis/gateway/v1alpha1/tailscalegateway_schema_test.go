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
			reason: "Which Gateway must be said.",
			spec:   "{gatewayRef: {namespace: infra}}",
			want:   "spec.gatewayRef.name: Required value",
		},
		"NoRef": {
			reason: "Which Gateway must be said.",
			spec:   "{}",
			want:   "spec.gatewayRef: Required value",
		},
		"OtherKind": {
			reason: "Only Gateways have what we look for.",
			spec:   "{gatewayRef: {kind: Service, name: eg}}",
			want:   "spec.gatewayRef.kind: Unsupported value",
		},
		"OtherGroup": {
			reason: "Only Gateways have what we look for.",
			spec:   "{gatewayRef: {group: networking.istio.io, name: eg}}",
			want:   "spec.gatewayRef.group: Unsupported value",
		},
		"Namespace": {
			reason: "A namespace is a DNS label.",
			spec:   "{gatewayRef: {namespace: a.b, name: eg}}",
			want:   "spec.gatewayRef.namespace",
		},
		"Sharing": {
			reason: "What is shared is one of three.",
			spec:   "{gatewayRef: {name: eg}, routeSharing: Listener}",
			want:   "spec.routeSharing: Unsupported value",
		},
		"SplitDNS": {
			reason: "Hostnames are resolved as they are, or below domains.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {}}, {name: partner, splitDNS: {domains: [shop.example.com, corp.internal]}}]}",
		},
		"SplitDNSNoDomain": {
			reason: "An empty list would say nothing.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: []}}]}",
			want:   "spec.tailnets[0].splitDNS.domains",
		},
		"SplitDNSWildcard": {
			reason: "A domain has all names below it anyway.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: ['*.example.com']}}]}",
			want:   "spec.tailnets[0].splitDNS.domains[0]",
		},
		"SplitDNSUpperCase": {
			reason: "Names are the same in any case, so one is enough.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: [Example.com]}}]}",
			want:   "spec.tailnets[0].splitDNS.domains[0]",
		},
		"SplitDNSSingleLabel": {
			reason: "One label alone would take all names below it.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: [internal]}}]}",
			want:   "one label alone would take all names below it",
		},
		"SplitDNSTailnet": {
			reason: "A tailnet resolves its own names.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, splitDNS: {domains: [tail1.ts.net]}}]}",
			want:   "names below ts.net are the tailnet's own",
		},
		"TailnetTwice": {
			reason: "A name stands for one tailnet.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp}, {name: corp}]}",
			want:   "spec.tailnets[1]: Duplicate value",
		},
		"TailnetName": {
			reason: "The name of a tailnet stands in host names.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: Corp}]}",
			want:   "spec.tailnets[0].name",
		},
		"TailnetKind": {
			reason: "Only TailscaleTailnets are tailnets.",
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
			reason: "Patterns are one's own to choose.",
			tailnet: `{name: corp, serviceDiscovery: {patterns: ["api-*"]}, routeGeneration: {
				ingress: {hostPattern: "{service}.internal.company.com", pathPrefix: /inbound/, protocol: HTTPS},
				egress: {hostPattern: "{service}.internal.company.com", pathPrefix: "/custom-api/{service}/", protocol: HTTP}}}`,
		},
		"AllVariables": {
			reason:  "All variables may stand in a host and in a path.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "*.{service}.{tailnet}.{domain}.{namespace}.example.com", pathPrefix: "/{namespace}/{tailnet}/{domain}/{service}"}}}`,
		},
		"AnyHost": {
			reason:  "A star alone stands for any host, and the path tells services apart.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "*", pathPrefix: "/tailscale/{service}/"}}}`,
		},
		"AnyHostByDefaultPath": {
			reason:  "The default path of egress routes tells services apart, too.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "*"}}}`,
		},
		"AnyHostAndPath": {
			reason:  "Any host and one path would be one address for all services.",
			tailnet: `{name: corp, routeGeneration: {ingress: {hostPattern: "*"}}}`,
			want:    "must have {service}",
		},
		"StarInside": {
			reason:  "A star is the whole pattern, or its first label.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "{service}.*.local"}}}`,
			want:    "must be * for any host",
		},
		"Selector": {
			reason:  "A selector picks what somebody wrote.",
			tailnet: `{name: corp, routeGeneration: {egress: {selector: {matchLabels: {expose: web}}}}}`,
		},
		"Adopts": {
			reason:  "Services that are there may be taken over.",
			tailnet: `{name: corp, vipService: {adoptionPolicy: Adopt}}`,
		},
		"AdoptsMaybe": {
			reason:  "They are taken over, or not.",
			tailnet: `{name: corp, vipService: {adoptionPolicy: Ask}}`,
			want:    "adoptionPolicy: Unsupported value",
		},
		"UnknownVariable": {
			reason:  "A variable that is not known would stay as it is.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "{service}.{cluster}.local"}}}`,
			want:    "hostPattern: Invalid value",
		},
		"HostUpperCase": {
			reason:  "A host of a route is in lower case.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: "{service}.Example.com"}}}`,
			want:    "a DNS name in lower case",
		},
		"PathWithoutSlash": {
			reason:  "A path begins with a slash.",
			tailnet: `{name: corp, routeGeneration: {egress: {pathPrefix: "api/{service}/"}}}`,
			want:    "must begin with / and be a path",
		},
		"DoubleSlash": {
			reason:  "The Gateway API takes no empty segments.",
			tailnet: `{name: corp, routeGeneration: {egress: {pathPrefix: "/api//{service}/"}}}`,
			want:    "must begin with / and be a path",
		},
		"OneAddressForAll": {
			reason:  "Services that have one address cannot be told apart.",
			tailnet: `{name: corp, routeGeneration: {egress: {hostPattern: tailscale.local, pathPrefix: /}}}`,
			want:    "must have {service}",
		},
		"OneAddressForAllIngress": {
			reason:  "Services that have one address cannot be told apart.",
			tailnet: `{name: corp, routeGeneration: {ingress: {hostPattern: "{tailnet}.local"}}}`,
			want:    "must have {service}",
		},
		"ServiceInPath": {
			reason:  "The path alone may tell services apart.",
			tailnet: `{name: corp, routeGeneration: {ingress: {hostPattern: tailscale.local, pathPrefix: "/{service}"}}}`,
		},
		"RouteProtocol": {
			reason:  "Routes are HTTPRoutes.",
			tailnet: `{name: corp, routeGeneration: {egress: {protocol: TCP}}}`,
			want:    "protocol: Unsupported value",
		},
		"ServiceName": {
			reason:  "The name of a Tailscale Service has a form.",
			tailnet: `{name: corp, vipService: {name: public}}`,
			want:    "must be svc: followed by a DNS label",
		},
		"ListenerTwice": {
			reason:  "A listener has one port in a tailnet.",
			tailnet: `{name: corp, listeners: [{name: http}, {name: http, vipPort: 8080}]}`,
			want:    "Duplicate value",
		},
		"Identity": {
			reason:  "There are two ways to tell who asks.",
			tailnet: `{name: corp, listeners: [{name: http, identity: mTLS}]}`,
			want:    "identity: Unsupported value",
		},
		"FindsAll": {
			reason:  "All of a tailnet should not be reachable through the Gateway unless somebody says so.",
			tailnet: `{name: corp, serviceDiscovery: {}}`,
			want:    "set patterns or tags",
		},
		"FindsAllOfDevices": {
			reason:  "Sources and what is left out say of nothing that it is to be reachable.",
			tailnet: `{name: corp, serviceDiscovery: {sources: [Devices], excludePatterns: ["proxy-*"], patterns: [], tags: []}}`,
			want:    "set patterns or tags",
		},
		"FindsAllKnowingly": {
			reason:  "Somebody says so.",
			tailnet: `{name: corp, serviceDiscovery: {patterns: ["*"]}}`,
		},
		"FindsTagged": {
			reason:  "Tags are given by the owners of the tailnet.",
			tailnet: `{name: corp, serviceDiscovery: {tags: ["tag:web"]}}`,
		},
		"FindsNothing": {
			reason:  "What is turned off finds nothing.",
			tailnet: `{name: corp, serviceDiscovery: {enabled: false}}`,
		},
		"TooOften": {
			reason:  "Tailscale's API is not to be asked all the time.",
			tailnet: `{name: corp, serviceDiscovery: {patterns: ["*"], interval: 1s}}`,
			want:    "must be at least 5s",
		},
		"Source": {
			reason:  "Only devices and services are found.",
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
			reason: "A Tailscale Service keeps its name.",
			from:   `{name: "svc:a"}`, to: `{name: "svc:b"}`,
			want: "is immutable",
		},
		"NameSet": {
			reason: "It has the name of the object until then.",
			from:   `{}`, to: `{name: "svc:b"}`,
			want: "cannot be set or removed later",
		},
		"NameRemoved": {
			reason: "It would get the name of the object.",
			from:   `{name: "svc:a"}`, to: `{}`,
			want: "cannot be set or removed later",
		},
		"Shared": {
			reason: "A service can be shared later.",
			from:   `{}`, to: `{sharing: Shared}`,
		},
		"Unshared": {
			reason: "Others may depend on it then.",
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
		"Found":  {reason: "Without tailnets nothing is called after the object.", spec: "{gatewayRef: {name: eg}}"},
		"Joined": {reason: "A Tailscale Service has a DNS label.", spec: "{gatewayRef: {name: eg}, tailnets: [{name: corp}]}", want: "metadata.name must be a DNS label"},
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
			reason: "Who only wants the Gateway found writes a name.",
			spec:   "{gatewayRef: {name: eg}}",
			want:   map[string]any{"gatewayRef": ref, "routeSharing": "Gateway", "publishBackends": "Unprotected"},
		},
		"Tailnet": {
			reason: "A tailnet needs a name, and what is found there gets routes.",
			spec:   "{gatewayRef: {name: eg}, tailnets: [{name: corp, serviceDiscovery: {tags: ['tag:web']}, routeGeneration: {ingress: {}}, listeners: [{name: http}]}]}",
			want: map[string]any{
				"gatewayRef": ref, "routeSharing": "Gateway", "publishBackends": "Unprotected",
				"tailnets": []any{map[string]any{
					"name":             "corp",
					"proxy":            map[string]any{"replicas": int64(2), "networking": "Userspace", "forwarding": "InitContainer"},
					"vipService":       map[string]any{"autoApprove": true, "sharing": "Exclusive"},
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
