// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTailscaleServicesSchema(t *testing.T) {
	const rest = "\n  selector: {matchLabels: {app: web}}\n  backends: [{name: web, port: 80}]"
	spec := func(lines string) string {
		return "metadata: {name: web}\nspec:\n  " + strings.ReplaceAll(lines, "\n", "\n  ") + rest
	}
	const vip = "vipService: {ports: ['tcp:80']}"

	cases := map[string]struct {
		reason string
		obj    string
		old    string
		want   string
	}{
		"Least": {
			reason: "The required fields are enough.",
			obj:    spec(vip),
		},
		"Shared": {
			reason: "A service may be shared.",
			obj:    spec(vip + "\nsharing: Shared"),
		},
		"BecomesShared": {
			reason: "A service that was exclusive may become shared.",
			obj:    spec(vip + "\nsharing: Shared"),
			old:    spec(vip),
		},
		"NoLongerShared": {
			reason: "Other clusters would lose the service.",
			obj:    spec(vip),
			old:    spec(vip + "\nsharing: Shared"),
			want:   "sharing cannot go back from Shared to Exclusive",
		},
		"SharedByHalves": {
			reason: "Only Exclusive and Shared can be set.",
			obj:    spec(vip + "\nsharing: Half"),
			want:   "spec.sharing: Unsupported value",
		},
		"ReservedAnnotation": {
			reason: "Users cannot set the provider's annotations.",
			obj:    spec("vipService: {ports: ['tcp:80'], annotations: {gateway.tailscale.com/owner: me}}"),
			want:   "not begin with gateway.tailscale.com/",
		},
		"LongDisplayName": {
			reason: "Tailscale allows 64 characters.",
			obj:    spec("vipService: {ports: ['tcp:80'], displayName: " + strings.Repeat("x", 65) + "}"),
			want:   "spec.vipService.displayName: Too long",
		},
		"RecordTag": {
			reason: "A tag is a tag.",
			obj:    spec("vipService: {ports: ['tcp:80'], recordTags: [record]}"),
			want:   "must be tag: followed by a letter",
		},
		"OtherName": {
			reason: "The name is immutable.",
			obj:    spec("vipService: {ports: ['tcp:80'], name: svc:b}"),
			old:    spec("vipService: {ports: ['tcp:80'], name: svc:a}"),
			want:   "is immutable",
		},
		"Weighted": {
			reason: "The schema accepts all settings that a Gateway supports.",
			obj:    spec(vip + "\nloadBalancing: {strategy: weighted, weights: {web: 2}}"),
		},
		"WeightedWithoutWeights": {
			reason: "The strategy weighted needs weights.",
			obj:    spec(vip + "\nloadBalancing: {strategy: weighted}"),
			want:   "strategy weighted needs weights",
		},
		"WeightsWithoutStrategy": {
			reason: "Other strategies have no weights.",
			obj:    spec(vip + "\nloadBalancing: {weights: {web: 2}}"),
			want:   "weights need strategy weighted",
		},
		"NegativeWeight": {
			reason: "A weight is not negative.",
			obj:    spec(vip + "\nloadBalancing: {strategy: weighted, weights: {web: -1}}"),
			want:   "should be greater than or equal to 0",
		},
		"Failover": {
			reason: "The schema accepts all settings that a Gateway supports.",
			obj:    spec(vip + "\nloadBalancing: {strategy: failover, failover: {primary: a, secondary: [b]}}"),
		},
		"FailoverWithoutStrategy": {
			reason: "Other strategies have no failover.",
			obj:    spec(vip + "\nloadBalancing: {failover: {primary: a, secondary: [b]}}"),
			want:   "strategy failover needs failover",
		},
		"FailoverToItself": {
			reason: "A backend cannot take over from itself.",
			obj:    spec(vip + "\nloadBalancing: {strategy: failover, failover: {primary: a, secondary: [a]}}"),
			want:   "secondary must not list primary",
		},
		"NoHealthCheck": {
			reason: "Probes can be turned off.",
			obj:    spec(vip + "\nloadBalancing: {healthCheck: {enabled: false}}"),
		},
		"AllPorts": {
			reason: "All ports go to one backend.",
			obj:    spec("vipService: {ports: [do-not-validate]}"),
		},
		"AllPortsAndOne": {
			reason: "do-not-validate includes all ports.",
			obj:    spec("vipService: {ports: [do-not-validate, 'tcp:80']}"),
			want:   "do-not-validate means all ports",
		},
		"AllPortsTLS": {
			reason: "Packets are forwarded unchanged.",
			obj:    spec("vipService: {ports: [do-not-validate]}\ntls: {}"),
			want:   "do-not-validate forwards packets unchanged",
		},
		"AllPortsUserspace": {
			reason: "Only Kernel networking routes packets.",
			obj:    spec("vipService: {ports: [do-not-validate]}\nendpointTemplate: {tailnet: a}"),
			want:   "do-not-validate needs endpointTemplate.proxy.networking Kernel",
		},
		"AllPortsKernel": {
			reason: "The template can set Kernel networking.",
			obj:    spec("vipService: {ports: [do-not-validate]}\nendpointTemplate: {tailnet: a, proxy: {networking: Kernel}}"),
		},
		"UDPPort": {
			reason: "Tailscale Services support only TCP ports.",
			obj:    spec("vipService: {ports: ['udp:53']}"),
			want:   "must be tcp:PORT with PORT from 1 to 65535, or do-not-validate",
		},
		"HighPort": {
			reason: "A port has 16 bits.",
			obj:    spec("vipService: {ports: ['tcp:65536']}"),
			want:   "must be tcp:PORT with PORT from 1 to 65535, or do-not-validate",
		},
		"TemplatePorts": {
			reason: "A template has the same ports as a TailscaleEndpoints.",
			obj:    spec(vip + "\nendpointTemplate: {tailnet: a, ports: [{name: http, port: 80, protocol: HTTP, targetPort: 8080}]}"),
		},
		"TemplateNamelessPorts": {
			reason: "The name of a port is optional.",
			obj:    spec(vip + "\nendpointTemplate: {tailnet: a, ports: [{port: 80}, {port: 443, protocol: HTTPS}]}"),
		},
		"TemplateSamePort": {
			reason: "The rules of a TailscaleEndpoints apply to a template.",
			obj:    spec(vip + "\nendpointTemplate: {tailnet: a, ports: [{port: 80}, {port: 80, protocol: HTTP}]}"),
			want:   "only TCP and UDP can share one",
		},
		"TemplateUDP": {
			reason: "The rules of a TailscaleEndpoints apply to a template.",
			obj:    spec(vip + "\nendpointTemplate: {tailnet: a, ports: [{name: dns, port: 53, protocol: UDP}]}"),
			want:   "ports with protocol UDP need proxy.networking Kernel",
		},
		"TemplateEgress": {
			reason: "Egress proxies host no service.",
			obj:    spec(vip + "\nendpointTemplate: {tailnet: a, proxy: {connectionType: egress}}"),
			want:   "egress proxies host no service",
		},
		"TLS": {
			reason: "Tailscale's certificate is the default.",
			obj:    spec(vip + "\ntls: {}"),
		},
		"TLSSecret": {
			reason: "A Secret may hold the certificate.",
			obj:    spec(vip + "\ntls: {ports: [80], certificateRef: {name: web.example.com-tls}}"),
		},
		"TLSPassthroughSecret": {
			reason: "Passthrough needs no certificate.",
			obj:    spec(vip + "\ntls: {mode: Passthrough, certificateRef: {name: web-tls}}"),
			want:   "certificateRef needs mode Terminate",
		},
		"TLSMode": {
			reason: "There are two modes.",
			obj:    spec(vip + "\ntls: {mode: Mutual}"),
			want:   "spec.tls.mode: Unsupported value",
		},
		"TLSPort": {
			reason: "A port has 16 bits.",
			obj:    spec(vip + "\ntls: {ports: [65536]}"),
			want:   "should be less than or equal to 65535",
		},
		"TLSNoPorts": {
			reason: "An empty list of ports has no meaning.",
			obj:    spec(vip + "\ntls: {ports: []}"),
			want:   "spec.tls.ports",
		},
		"SecretName": {
			reason: "A Secret's name is a DNS name.",
			obj:    spec(vip + "\ntls: {certificateRef: {name: Web}}"),
			want:   "spec.tls.certificateRef.name",
		},
		"Balancing": {
			reason: "Settings for Gateways have defaults.",
			obj:    spec(vip + "\nloadBalancing: {outlierDetection: {}, failoverPolicy: {}, affinity: Global}"),
		},
		"Affinity": {
			reason: "There are two affinities.",
			obj:    spec(vip + "\nloadBalancing: {affinity: Cookie}"),
			want:   "spec.loadBalancing.affinity: Unsupported value",
		},
		"EjectionPercent": {
			reason: "The percentage is limited to 100.",
			obj:    spec(vip + "\nloadBalancing: {outlierDetection: {maxEjectionPercent: 101}}"),
			want:   "should be less than or equal to 100",
		},
		"EjectionTime": {
			reason: "A duration has a unit.",
			obj:    spec(vip + "\nloadBalancing: {outlierDetection: {baseEjectionTime: soon}}"),
			want:   "spec.loadBalancing.outlierDetection.baseEjectionTime",
		},
		"FailoverTimeout": {
			reason: "A delay is not negative.",
			obj:    spec(vip + "\nloadBalancing: {failoverPolicy: {failoverTimeout: -1s}}"),
			want:   "must not be negative",
		},
		"HealthThreshold": {
			reason: "The threshold is a percentage.",
			obj:    spec(vip + "\nloadBalancing: {failoverPolicy: {healthThreshold: 0}}"),
			want:   "should be greater than or equal to 1",
		},
		"Interval": {
			reason: "The interval of probes must be positive.",
			obj:    spec(vip + "\nloadBalancing: {healthCheck: {interval: 0s}}"),
			want:   "must be more than 0s",
		},
		"Timeout": {
			reason: "A duration has a unit.",
			obj:    spec(vip + "\nloadBalancing: {healthCheck: {timeout: soon}}"),
			want:   "spec.loadBalancing.healthCheck.timeout",
		},
		"Discovery": {
			reason: "All services may be listed.",
			obj:    spec(vip + "\nserviceDiscovery: {}"),
		},
		"DiscoveryTag": {
			reason: "The operator In needs values.",
			obj:    spec(vip + "\nserviceDiscovery: {tagSelectors: [{operator: In, tag: tag:web}]}"),
			want:   "In and NotIn take values",
		},
		"NoSelector": {
			reason: "A service needs a selector or a template.",
			obj:    "metadata: {name: web}\nspec:\n  " + vip + "\n  backends: [{name: web, port: 80}]",
			want:   "selector or endpointTemplate is required",
		},
		"LongName": {
			reason: "A name of 63 characters is a DNS label.",
			obj:    strings.Replace(spec(vip), "name: web}", "name: "+strings.Repeat("n", 63)+"}", 1),
		},
		"Threshold": {
			reason: "The healthy threshold must be positive.",
			obj:    spec(vip + "\nloadBalancing: {healthCheck: {healthyThreshold: 0}}"),
			want:   "should be greater than or equal to 1",
		},
	}
	c := load(t, "tailscaleservices")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.validate(t, parse(t, tc.obj), parse(t, tc.old)), tc.want)
		})
	}
}

// TestTailscaleServicesSchemaShort tries what need not be said.
func TestTailscaleServicesSchemaShort(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		spec   string
		want   string
	}{
		"Least": {
			reason: "The Service with the object's name and proxies from the template are the defaults.",
			spec:   "{endpointTemplate: {tailnet: example}}",
		},
		"Selector": {
			reason: "A selector can select existing proxies.",
			spec:   "{selector: {matchLabels: {app: web}}}",
		},
		"Null": {
			reason: "Disabled and absent services are both valid.",
			spec:   "{selector: {matchLabels: {app: web}}, vipService: null}",
		},
		"NoBackends": {
			reason: "A port of the service leads to the same port of the Service.",
			spec:   "{selector: {matchLabels: {app: web}}, vipService: {ports: ['tcp:80', 'tcp:443'], tags: ['tag:web']}}",
		},
		"NoPorts": {
			reason: "Backends define the ports.",
			spec:   "{selector: {matchLabels: {app: web}}, backends: [{name: api, port: 8080}]}",
		},
		"Nothing": {
			reason: "A service needs proxies.",
			spec:   "{}",
			want:   "selector or endpointTemplate is required",
		},
		"EmptySelector": {
			reason: "An empty selector cannot be combined with a template.",
			spec:   "{selector: {}, endpointTemplate: {tailnet: example}}",
			want:   "selector.matchLabels must have a label",
		},
		"AllPorts": {
			reason: "The backend needs a port to probe.",
			spec:   "{selector: {matchLabels: {app: web}}, vipService: {ports: [do-not-validate]}}",
			want:   "do-not-validate needs exactly one backend",
		},
		"RoutesOnly": {
			reason: "Routes need no proxies.",
			spec:   "{vipService: {enabled: false}}",
		},
		"RoutesOnlyFull": {
			reason: "Objects for routes have all settings of Gateways.",
			spec:   "{vipService: {enabled: false}, backends: [{name: a, port: 80, weight: 3, priority: 1}, {name: b, port: 80}], loadBalancing: {strategy: least-connections}}",
		},
		"RoutesOnlyName": {
			reason: "Without a Tailscale Service, the object's name has no other use.",
			name:   "web.v2",
			spec:   "{vipService: {enabled: false}}",
		},
		"RoutesOnlyShared": {
			reason: "Without a Tailscale Service, there is nothing to share.",
			spec:   "{vipService: {enabled: false}, sharing: Shared}",
			want:   "vipService.enabled false leaves no Tailscale Service",
		},
		"RoutesOnlyTemplate": {
			reason: "Without a Tailscale Service, there is nothing to host.",
			spec:   "{vipService: {enabled: false}, endpointTemplate: {tailnet: example}}",
			want:   "vipService.enabled false leaves no Tailscale Service",
		},
		"RoutesOnlyDiscovery": {
			reason: "Without a Tailscale Service, there is no tailnet to search.",
			spec:   "{vipService: {enabled: false}, serviceDiscovery: {}}",
			want:   "vipService.enabled false leaves no Tailscale Service",
		},
		"Reserved": {
			reason: "Browsers request their proxy settings from a host with this name.",
			spec:   "{selector: {}, vipService: {name: svc:wpad}}",
			want:   "spec.vipService.name: Invalid value: \"svc:wpad\": is a reserved name",
		},
		"ReservedObject": {
			reason: "The object's name is the name of the Tailscale Service.",
			name:   "localhost",
			spec:   "{selector: {}}",
			want:   "metadata.name is the name of the Tailscale Service",
		},
		"ReservedObjectNamed": {
			reason: "The object's name is unrestricted if the service has another name.",
			name:   "localhost",
			spec:   "{selector: {}, vipService: {name: svc:local}}",
		},
		"ReservedObjectRoutes": {
			reason: "The object's name is unrestricted without a service.",
			name:   "localhost",
			spec:   "{vipService: {enabled: false}}",
		},
		"ReservedPrefix": {
			reason: "Similar names are valid.",
			spec:   "{selector: {}, vipService: {name: svc:wpad2}}",
		},
	}
	c := load(t, "tailscaleservices")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.validate(t, parse(t, "metadata: {name: "+cmp.Or(tc.name, "web")+"}\nspec: "+tc.spec), nil), tc.want)
		})
	}
}

func TestTailscaleServicesBackendSchema(t *testing.T) {
	cases := map[string]struct {
		reason  string
		backend string
		want    string
	}{
		"Service":        {reason: "A Service is the usual kind.", backend: "{name: web, port: 80}"},
		"HTTP":           {reason: "Proxies can forward requests.", backend: "{name: web, port: 80, protocol: HTTP}"},
		"ProxyProtocol":  {reason: "A backend can receive the client's address.", backend: "{name: web, port: 80, proxyProtocol: v2}"},
		"Weight":         {reason: "The schema accepts all settings that a Gateway supports.", backend: "{name: web, port: 80, weight: 0, priority: 3}"},
		"HTTPS":          {reason: "A certificate is verified by public authorities.", backend: "{name: web, port: 443, protocol: HTTPS}"},
		"System":         {reason: "The default can be set.", backend: "{name: web, port: 443, protocol: HTTPS, tls: {hostname: web.example.com, wellKnownCACertificates: System}}"},
		"ConfigMap":      {reason: "A ConfigMap can have the authorities, and a certificate be for an address.", backend: "{name: web, port: 443, protocol: HTTPS, tls: {hostname: '2001:db8::1', caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}"},
		"TLSOfHTTP":      {reason: "Only HTTPS has a certificate.", backend: "{name: web, port: 443, protocol: HTTP, tls: {hostname: web.example.com}}", want: "tls needs protocol HTTPS"},
		"TLSAlone":       {reason: "Bytes are forwarded unchanged.", backend: "{name: web, port: 443, tls: {}}", want: "tls needs protocol HTTPS"},
		"HTTPSGateway":   {reason: "A Gateway's listener terminates TLS by its routes' hosts.", backend: "{kind: TailscaleGateway, name: public, protocol: HTTPS}", want: "protocol HTTPS is not for kind TailscaleGateway"},
		"HTTPSHeader":    {reason: "The PROXY protocol is for bytes.", backend: "{name: web, port: 443, protocol: HTTPS, proxyProtocol: v2}", want: "proxyProtocol needs protocol TCP"},
		"Wildcard":       {reason: "The server name has no wildcard.", backend: "{name: web, port: 443, protocol: HTTPS, tls: {hostname: '*.example.com'}}", want: "must be a DNS name in lower case"},
		"TwoSources":     {reason: "The authorities are of one source.", backend: "{name: web, port: 443, protocol: HTTPS, tls: {wellKnownCACertificates: System, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}", want: "set either caCertificateRefs or wellKnownCACertificates"},
		"TwoConfigMaps":  {reason: "One ConfigMap has the authorities.", backend: "{name: web, port: 443, protocol: HTTPS, tls: {caCertificateRefs: [{group: '', kind: ConfigMap, name: a}, {group: '', kind: ConfigMap, name: b}]}}", want: "Too many"},
		"SecretRef":      {reason: "Secrets are not read.", backend: "{name: web, port: 443, protocol: HTTPS, tls: {caCertificateRefs: [{group: '', kind: Secret, name: ca}]}}", want: "must reference a ConfigMap"},
		"Unverified":     {reason: "The certificate is always verified.", backend: "{name: web, port: 443, protocol: HTTPS, tls: {wellKnownCACertificates: None}}", want: "Unsupported value"},
		"ExternalName":   {reason: "A host can be a name.", backend: "{kind: External, name: web, host: Legacy_1.example.com., port: 80}"},
		"ExternalIPv4":   {reason: "A host can be an IPv4 address.", backend: "{kind: External, name: web, host: 192.0.2.1, port: 80}"},
		"ExternalIPv6":   {reason: "A host can be an IPv6 address.", backend: "{kind: External, name: web, host: '2001:db8::1', port: 80}"},
		"LocalhostInfix": {reason: "A host name may contain localhost.", backend: "{kind: External, name: web, host: localhost.example.com, port: 80}"},
		"Gateway":        {reason: "The default port of a TailscaleGateway is that of the service.", backend: "{kind: TailscaleGateway, name: public}"},
		"GatewayPort":    {reason: "The port of a TailscaleGateway can be set.", backend: "{kind: TailscaleGateway, name: public, port: 8080, vipPort: 80, proxyProtocol: v2}"},
		"GatewayHost":    {reason: "The Service of the Envoy proxies can be set.", backend: "{kind: TailscaleGateway, name: public, host: envoy.infra.svc}"},
		"Kind":           {reason: "There are three kinds.", backend: "{kind: Gateway, name: web, port: 80}", want: "kind: Unsupported value"},
		"NoPort":         {reason: "A Service needs a port.", backend: "{name: web}", want: "port is required unless kind is TailscaleGateway"},
		"NoHost":         {reason: "An external backend needs a host.", backend: "{kind: External, name: web, port: 80}", want: "kind External needs host"},
		"ServiceHost":    {reason: "The name of a Service is its host.", backend: "{name: web, host: example.com, port: 80}", want: "kind Service does not allow it"},
		"HostPort":       {reason: "The port has a separate field.", backend: "{kind: External, name: web, host: 'example.com:80', port: 80}", want: "must be a DNS name or an address"},
		"URL":            {reason: "A host is not a URL.", backend: "{kind: External, name: web, host: 'http://example.com', port: 80}", want: "must be a DNS name or an address"},
		"LongLabel":      {reason: "A label has 63 characters.", backend: "{kind: External, name: web, host: " + strings.Repeat("x", 64) + ", port: 80}", want: "must be a DNS name or an address"},
		"Loopback":       {reason: "The proxy itself is no backend.", backend: "{kind: External, name: web, host: 127.1.2.3, port: 80}", want: "must not be a loopback"},
		"Loopback6":      {reason: "The proxy itself is no backend.", backend: "{kind: External, name: web, host: '::1', port: 80}", want: "must not be a loopback"},
		"Localhost":      {reason: "The proxy itself is no backend.", backend: "{kind: External, name: web, host: a.LocalHost., port: 80}", want: "must not be a loopback"},
		"Metadata":       {reason: "The metadata server of a cloud is not a backend.", backend: "{kind: External, name: web, host: 169.254.169.254, port: 80}", want: "must not be a loopback"},
		"Unspecified":    {reason: "The unspecified address leads to the proxy.", backend: "{kind: External, name: web, host: 0.0.0.0, port: 80}", want: "must not be a loopback"},
		"ThisNetwork":    {reason: "Other addresses of 0.0.0.0/8 lead to the proxy, too.", backend: "{kind: External, name: web, host: 0.1.2.3, port: 80}", want: "host: Invalid value"},
		"Multicast":      {reason: "A backend is one host.", backend: "{kind: External, name: web, host: 224.0.0.1, port: 80}", want: "must not be a loopback"},
		"Broadcast":      {reason: "A backend is not a broadcast address.", backend: "{kind: External, name: web, host: 255.255.255.255, port: 80}", want: "must not be a loopback"},
		"Mapped":         {reason: "The kernel treats the address as IPv4.", backend: "{kind: External, name: web, host: '::ffff:127.0.0.1', port: 80}", want: "host: Invalid value"},
		"NAT64":          {reason: "A NAT64 gateway translates the address.", backend: "{kind: External, name: web, host: '64:ff9b::7f00:1', port: 80}", want: "must not be a loopback"},
		"NAT64Metadata":  {reason: "A NAT64 gateway translates the address.", backend: "{kind: External, name: web, host: '64:ff9b::a9fe:a9fe', port: 80}", want: "must not be a loopback"},
		"NAT64Public":    {reason: "Hosts can be behind a NAT64 gateway.", backend: "{kind: External, name: web, host: '64:ff9b::c000:201', port: 80}"},
		"SixToFour":      {reason: "A 6to4 relay translates the address.", backend: "{kind: External, name: web, host: '2002:7f00:1::1', port: 80}", want: "must not be a loopback"},
		"Zone":           {reason: "Zones are local to a machine.", backend: "{kind: External, name: web, host: 'fe80::1%eth0', port: 80}", want: "host: Invalid value"},
		"Port":           {reason: "A port is a number.", backend: "{name: web, port: 0}", want: "port: Invalid value"},
		"VIPPort":        {reason: "A port has 16 bits.", backend: "{name: web, port: 80, vipPort: 65536}", want: "vipPort: Invalid value"},
		"Protocol":       {reason: "Proxies support two protocols.", backend: "{name: web, port: 80, protocol: UDP}", want: "protocol: Unsupported value"},
		"Version":        {reason: "There are two versions.", backend: "{name: web, port: 80, proxyProtocol: v3}", want: "proxyProtocol: Unsupported value"},
		"HTTPHeader":     {reason: "The PROXY protocol needs protocol TCP.", backend: "{name: web, port: 80, protocol: HTTP, proxyProtocol: v1}", want: "proxyProtocol needs protocol TCP"},
		"Priority":       {reason: "A priority is not negative.", backend: "{name: web, port: 80, priority: -1}", want: "priority: Invalid value"},
		"Name":           {reason: "A Service's name is a DNS label.", backend: "{name: Web, port: 80}", want: "name: Invalid value"},
		"LongName":       {reason: "A label has 63 characters.", backend: "{name: " + strings.Repeat("w", 63) + ", port: 80}"},
	}
	c := load(t, "tailscaleservices")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, c.create(t, "{selector: {matchLabels: {app: web}}, vipService: {ports: ['tcp:80']}, backends: ["+tc.backend+"]}"), tc.want)
		})
	}

	t.Run("GatewayAllPorts", func(t *testing.T) {
		judge(t, "The backend needs a port to probe.", c.create(t, "{selector: {}, vipService: {ports: [do-not-validate]}, backends: [{kind: TailscaleGateway, name: public}]}"),
			"needs the port of the backend, to probe it")
	})

	t.Run("WeightsTwice", func(t *testing.T) {
		err := c.create(t, "{selector: {}, vipService: {ports: ['tcp:80']}, backends: [{name: web, port: 80, weight: 2}], loadBalancing: {strategy: weighted, weights: {web: 2}}}").ToAggregate()
		if want := "set weights either in backends or in loadBalancing.weights"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Weights must be in one place: want %q, got %v", want, err)
		}
	})
}

// TestExamples checks that an API server takes our examples.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, plural := range []string{"tailscaleservices", "tailscalegateways"} {
		t.Run(plural, func(t *testing.T) { examples(t, load(t, plural), files) })
	}
}

// examples fails unless there are examples of a kind, and all are valid.
func examples(t *testing.T, c served, files []string) {
	t.Helper()
	n := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(b), "\n---\n") {
			o := parse(t, doc)
			if o["kind"] != c.crd.Spec.Names.Kind {
				continue
			}
			n++
			if err := c.validate(t, o, nil).ToAggregate(); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
	if n == 0 {
		t.Error("There are no examples")
	}
}
