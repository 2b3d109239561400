// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

func TestTailscaleEndpointsSchema(t *testing.T) {
	s := load(t, "tailscaleendpoints")
	cases := map[string]struct {
		reason string
		proxy  string

		// want are parts of the message. Empty for a valid object.
		want []string
	}{
		"Nothing": {
			reason: "All of proxy is optional",
			proxy:  "{}",
		},
		"All": {
			reason: "All settings of pods are accepted",
			proxy: `
    labels: {team: edge, app.kubernetes.io/part-of: web}
    annotations: {example.org/note: any text, cluster-autoscaler.kubernetes.io/safe-to-evict: "true"}
    serviceAccountAnnotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/x"}
    priorityClassName: system-cluster-critical
    egressIdleTimeout: 24h
    egressTraces: https://collector.observability.svc:4317
    agentResources: {limits: {memory: 64Mi}}
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
    env:
    - {name: PORT, value: "41641"}
    - {name: TS_NETSTACK_KEEPALIVE_IDLE, value: 2h}
    - {name: TS_DEBUG_MTU, value: "1280"}
    - {name: https_proxy, valueFrom: {secretKeyRef: {name: proxy, key: url}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    securityContext: {runAsUser: 2000, seLinuxOptions: {type: container_t}}
    metrics: {podMonitor: {labels: {release: prometheus}, interval: 1m30s}}`,
		},
		"PodMonitorDisabled": {
			reason: "A setting must not be ignored silently",
			proxy:  `{metrics: {enabled: false, podMonitor: {}}}`,
			want:   []string{"spec.proxy.metrics", "podMonitor needs enabled"},
		},
		"PodMonitorInterval": {
			reason: "The Prometheus operator would refuse it later",
			proxy:  `{metrics: {podMonitor: {interval: 30 seconds}}}`,
			want:   []string{"spec.proxy.metrics.podMonitor.interval"},
		},
		"OurLabel": {
			reason: "Users cannot set the labels that select the pods",
			proxy:  `{labels: {gateway.tailscale.com/endpoints: other}}`,
			want:   []string{"spec.proxy.labels", "use another prefix"},
		},
		"LabelOfKubernetes": {
			reason: "Kubernetes numbers the pods of a StatefulSet itself",
			proxy:  `{labels: {apps.kubernetes.io/pod-index: "1"}}`,
			want:   []string{"spec.proxy.labels", "are set by Kubernetes"},
		},
		"LabelValue": {
			reason: "The API server would refuse the StatefulSet later",
			proxy:  `{labels: {team: "a b"}}`,
			want:   []string{"spec.proxy.labels.team"},
		},
		"IdleTooShort": {
			reason: "A timeout of seconds would close connections in use",
			proxy:  `{egressIdleTimeout: 30s}`,
			want:   []string{"spec.proxy.egressIdleTimeout", "must be 0s, or between 1m and 168h"},
		},
		"TracesWithoutPort": {
			reason: "Collectors have no default port here",
			proxy:  `{egressTraces: collector.observability}`,
			want:   []string{"spec.proxy.egressTraces"},
		},
		"OurAnnotation": {
			reason: "The prefix gateway.tailscale.com is reserved",
			proxy:  `{annotations: {tailnet.gateway.tailscale.com/x: y}}`,
			want:   []string{"spec.proxy.annotations", "use another prefix"},
		},
		"AccountAnnotationOfKubernetes": {
			reason: "The token controllers write there",
			proxy:  `{serviceAccountAnnotations: {kubernetes.io/enforce-mountable-secrets: "true"}}`,
			want:   []string{"spec.proxy.serviceAccountAnnotations"},
		},
		"EnvValueAndSource": {
			reason: "A variable has one value",
			proxy:  `{env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}`,
			want:   []string{"spec.proxy.env[0]", "value or valueFrom"},
		},
		"EnvTwoSources": {
			reason: "A variable has one source",
			proxy:  `{env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}, secretKeyRef: {name: a, key: b}}}]}`,
			want:   []string{"spec.proxy.env[0].valueFrom", "exactly one"},
		},
		"EnvName": {
			reason: "Kubernetes would refuse the name later",
			proxy:  `{env: [{name: "a=b"}]}`,
			want:   []string{"spec.proxy.env[0].name"},
		},
		"PriorityClassName": {
			reason: "It is the name of an object",
			proxy:  `{priorityClassName: High Priority}`,
			want:   []string{"spec.proxy.priorityClassName"},
		},
		"Root": {
			reason: "The pods must pass PodSecurity's restricted",
			proxy:  `{securityContext: {runAsUser: 0}}`,
			want:   []string{"spec.proxy.securityContext.runAsUser"},
		},
		"SELinuxType": {
			reason: "The pods must pass PodSecurity's restricted",
			proxy:  `{securityContext: {seLinuxOptions: {type: spc_t}}}`,
			want:   []string{"spec.proxy.securityContext.seLinuxOptions.type"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, s.create(t, "\n  tailnet: example\n  proxy: "+tc.proxy), tc.want...)
		})
	}
}

// TestTailscaleEndpointsSchemaEgress checks the rules for endpoints.
func TestTailscaleEndpointsSchemaEgress(t *testing.T) {
	s := load(t, "tailscaleendpoints")
	const egress, kernel = "proxy: {connectionType: egress}, ", "proxy: {connectionType: egress, networking: Kernel}, "
	cases := map[string]struct {
		reason string
		spec   string

		// want are parts of the message. Empty for a valid object.
		want []string
	}{
		"All": {
			reason: "Each kind of target",
			spec: egress + `ports: [{name: http, port: 80}], endpoints: [{name: a, tailscaleIP: 100.64.0.1}, {name: b, tailscaleIP: "fd7a:115c:a1e0::1", port: 1},
				{name: c, tailscaleFQDN: db.tail1234.ts.net., tags: ["tag:db"], weight: 100, healthCheck: {}}, {name: d, externalTarget: "[2001:db8::1]:65535"}]`,
		},
		"NoConnectionType": {
			reason: "Targets imply the direction",
			spec:   `endpoints: [{name: a, tailscaleIP: 100.64.0.1, port: 80}], autoDiscovery: {names: ["*"]}, dns: {zoneRef: {name: zone}}`,
		},
		"IngressOnly": {
			reason: "A target in the tailnet needs egress proxies",
			spec:   "proxy: {connectionType: ingress}, endpoints: [{name: a, tailscaleIP: 100.64.0.1, port: 80}]",
			want:   []string{"need proxy.connectionType egress or bidirectional"},
		},
		"ExternalWithoutEgress": {
			reason: "A target outside the tailnet needs no egress proxies",
			spec:   `proxy: {connectionType: ingress}, endpoints: [{name: a, externalTarget: "api.example.com:443"}]`,
		},
		"DiscoveryWithoutEgress": {
			reason: "Discovered endpoints need egress proxies",
			spec:   `proxy: {connectionType: ingress}, autoDiscovery: {names: ["*"]}`,
			want:   []string{"autoDiscovery needs proxy.connectionType egress or bidirectional"},
		},
		"DNS": {
			reason: "Ingress proxies resolve names",
			spec:   `dns: {zoneRef: {name: zone}}`,
		},
		"DNSWithoutIngress": {
			reason: "Egress proxies do not resolve names",
			spec:   egress + `dns: {zoneRef: {name: zone}}`,
			want:   []string{"dns needs proxy.connectionType ingress or bidirectional"},
		},
		"UDP": {
			reason: "tailscaled supports UDP only with Kernel networking",
			spec:   egress + "endpoints: [{name: a, tailscaleIP: 100.64.0.1, port: 53, protocol: UDP}]",
			want:   []string{"UDP need proxy.networking Kernel"},
		},
		"UDPPort": {
			reason: "tailscaled supports UDP only with Kernel networking, for common ports, too",
			spec:   egress + "ports: [{name: dns, port: 53, protocol: UDP}]",
			want:   []string{"UDP need proxy.networking Kernel"},
		},
		"BothProtocols": {
			reason: "A TCP port and a UDP port can have the same number, as for DNS",
			spec:   kernel + "ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}]",
		},
		"NamelessPorts": {
			reason: "The name of a port is optional",
			spec:   kernel + "ports: [{port: 80}, {port: 53}, {port: 53, protocol: UDP}, {name: web, port: 8080}]",
		},
		"SameName": {
			reason: "The ports of a Service need different names",
			spec:   egress + "ports: [{name: a, port: 80}, {name: a, port: 81}]",
			want:   []string{"spec.ports", "two entries have the same name"},
		},
		"NamelessTwice": {
			reason: "A port is listed once",
			spec:   egress + "ports: [{port: 80}, {port: 80}]",
			want:   []string{"spec.ports[1]: Duplicate value"},
		},
		"SamePort": {
			reason: "A Service cannot have the same port twice",
			spec:   egress + "ports: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: TCP}]",
			want:   []string{"spec.ports", "only TCP and UDP can share one"},
		},
		"NoTarget": {
			reason: "An endpoint needs a target",
			spec:   egress + "endpoints: [{name: a, port: 80}]",
			want:   []string{"spec.endpoints[0]", "set tailscaleIP, tailscaleFQDN or both"},
		},
		"AddressAndName": {
			reason: "A device has an address and a name",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleIP: 100.64.0.1, tailscaleFQDN: a.ts.net}]",
		},
		"TwoTargets": {
			reason: "An endpoint has one target",
			spec:   egress + `endpoints: [{name: a, tailscaleIP: 100.64.0.1, externalTarget: "a:80"}]`,
			want:   []string{"spec.endpoints[0]", "or else externalTarget"},
		},
		"ExternalPortTwice": {
			reason: "Two ports are ambiguous",
			spec:   egress + `endpoints: [{name: a, port: 80, externalTarget: "a:8080"}]`,
			want:   []string{"spec.endpoints[0]", "remove port"},
		},
		"Ports": {
			reason: "A target may have several separate ports",
			spec:   egress + `endpoints: [{name: a, tailscaleIP: 100.64.0.1, ports: [{name: web, port: 80}, {port: 443, protocol: TLS, targetPort: 8443}], serviceLabels: {team: edge}}]`,
		},
		"PortAndPorts": {
			reason: "Two lists of ports are ambiguous",
			spec:   egress + `endpoints: [{name: a, tailscaleIP: 100.64.0.1, port: 80, ports: [{port: 443}]}]`,
			want:   []string{"spec.endpoints[0]", "ports replaces port"},
		},
		"ExternalPorts": {
			reason: "An external target has one port, in its address",
			spec:   egress + `endpoints: [{name: a, externalTarget: "a:80", ports: [{port: 443}]}]`,
			want:   []string{"spec.endpoints[0]", "an externalTarget has one port"},
		},
		"PortTwice": {
			reason: "A Service has each port once",
			spec:   egress + `endpoints: [{name: a, tailscaleIP: 100.64.0.1, ports: [{port: 443}, {port: 443, protocol: TLS}]}]`,
			want:   []string{"spec.endpoints[0].ports", "two entries have the same port"},
		},
		"OurServiceLabel": {
			reason: "Our labels say whose the Service is",
			spec:   egress + `endpoints: [{name: a, tailscaleIP: 100.64.0.1, port: 80, serviceLabels: {gateway.tailscale.com/endpoints: other}}]`,
			want:   []string{"spec.endpoints[0].serviceLabels", "are reserved"},
		},
		"ExternalPortSame": {
			reason: "A port may be repeated",
			spec:   egress + `endpoints: [{name: a, port: 80, externalTarget: "a:80"}, {name: b, port: 443, externalTarget: "[2001:db8::1]:443"}]`,
		},
		"ExternalPort": {
			reason: "The port does not exist",
			spec:   egress + `endpoints: [{name: a, externalTarget: "a.example.com:65536"}]`,
			want:   []string{"spec.endpoints[0].externalTarget"},
		},
		"ExternalLoopback": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "127.0.0.1:19000"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalLoopback6": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "[::1]:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalMapped": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "[::ffff:127.0.0.1]:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalNAT64": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "[64:ff9b::7f00:1]:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalSixToFour": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "[2002:7f00:1::1]:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalMetadata": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "169.254.169.254:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalLinkLocal6": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "[fe80::1]:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalUnspecified": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "0.0.0.0:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalUnspecified6": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "[::]:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalMulticast": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "224.0.0.1:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalBroadcast": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "255.255.255.255:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalLocalhost": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "localhost:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalLocalhostDot": {
			reason: "A connection must not end at the proxy or its node",
			spec:   `endpoints: [{name: a, externalTarget: "a.LocalHost.:80"}]`,
			want:   []string{"spec.endpoints[0].externalTarget", "must not be a loopback"},
		},
		"ExternalHosts": {
			reason: "Other hosts in all forms are accepted",
			spec:   `endpoints: [{name: a, externalTarget: "192.0.2.1:80"}, {name: b, externalTarget: "[2001:db8::1]:80"}, {name: c, externalTarget: "localhost.example.com:80"}, {name: d, externalTarget: "[64:ff9b::c000:201]:80"}, {name: e, externalTarget: "db.bank.svc.cluster.local:80"}]`,
		},
		"NotAnAddress": {
			reason: "An address must be valid",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleIP: 100.64.0.256}]",
			want:   []string{"spec.endpoints[0].tailscaleIP"},
		},
		"RangeAsAddress": {
			reason: "The message names the field for ranges",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleIP: 10.1.1.0/28}]",
			want:   []string{"spec.endpoints[0].tailscaleIP", "tailscaleCIDR"},
		},
		"Ranges": {
			reason: "A range has up to 256 addresses",
			spec:   egress + `endpoints: [{name: a, port: 80, tailscaleCIDR: 10.1.1.0/24}, {name: b, port: 80, tailscaleCIDR: "fd7a:115c:a1e0:b1a:0:7:a01:100/120"}]`,
		},
		"LargeRange": {
			reason: "A larger range would have too many Services",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleCIDR: 10.1.0.0/23}]",
			want:   []string{"spec.endpoints[0].tailscaleCIDR", "at most 256 addresses"},
		},
		"LargeRange6": {
			reason: "A larger range would have too many Services",
			spec:   egress + `endpoints: [{name: a, port: 80, tailscaleCIDR: "fd00::/119"}]`,
			want:   []string{"spec.endpoints[0].tailscaleCIDR", "at most 256 addresses"},
		},
		"UnmaskedRange": {
			reason: "It is not clear which addresses are meant",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleCIDR: 10.1.1.9/28}]",
			want:   []string{"spec.endpoints[0].tailscaleCIDR", "no bits beyond the prefix"},
		},
		"RangeAndAddress": {
			reason: "An endpoint has one kind of target",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleCIDR: 10.1.1.0/28, tailscaleIP: 100.64.0.1}]",
			want:   []string{"spec.endpoints[0]", "or else tailscaleCIDR"},
		},
		"ShortName": {
			reason: "Only full DNS names are the same for all resolvers",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleFQDN: db}]",
			want:   []string{"spec.endpoints[0].tailscaleFQDN"},
		},
		"Weight": {
			reason: "Weights are 1 to 100",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleIP: 100.64.0.1, weight: 101}]",
			want:   []string{"spec.endpoints[0].weight"},
		},
		"ClientsWithoutPolicy": {
			reason: "A setting must not be ignored silently",
			spec:   "proxy: {connectionType: egress, networkPolicy: {enabled: false}}, endpoints: [{name: a, port: 80, tailscaleIP: 100.64.0.1, clients: [{podSelector: {}}]}]",
			want:   []string{"endpoints with clients need proxy.networkPolicy.enabled"},
		},
		"ClientsByDefault": {
			reason: "NetworkPolicies are enabled by default",
			spec:   egress + "endpoints: [{name: a, port: 80, tailscaleIP: 100.64.0.1, clients: [{podSelector: {}}]}]",
		},
		"SelectorValues": {
			reason: "The operator In needs values",
			spec:   egress + `autoDiscovery: {tagSelectors: [{operator: In, tag: "tag:a"}]}`,
			want:   []string{"spec.autoDiscovery.tagSelectors[0]", "In and NotIn take values"},
		},
		"DiscoverEverything": {
			reason: "Discovery of a whole tailnet must be explicit",
			spec:   egress + `autoDiscovery: {}`,
			want:   []string{"spec.autoDiscovery", "set tagSelectors, names or both"},
		},
		"ConnectionType": {
			reason: "Only three connection types exist",
			spec:   "proxy: {connectionType: both}",
			want:   []string{"spec.proxy.connectionType"},
		},
		"Forwarding": {
			reason: "Only two forwarding modes exist",
			spec:   "proxy: {networking: Kernel, forwarding: Sysctl}",
			want:   []string{"spec.proxy.forwarding"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judge(t, tc.reason, s.create(t, "{tailnet: example, "+tc.spec+"}"), tc.want...)
		})
	}
}

// TestTailscaleEndpointsSchemaEnv checks that variables are refused that containerboot reads
// (cmd/containerboot/settings.go of tailscale.com) and the provider sets, or that conflict
// with its config directory.
func TestTailscaleEndpointsSchemaEnv(t *testing.T) {
	s := load(t, "tailscaleendpoints")
	names := []string{
		"EXPERIMENTAL_ALLOW_PROXYING_CLUSTER_TRAFFIC_VIA_INGRESS", "HOME", "KUBERNETES_SERVICE_HOST", "POD_IP", "POD_IPS",
		"POD_NAME", "POD_NAMESPACE", "POD_UID", "TS_ACCEPT_DNS", "TS_AUDIENCE", "TS_AUTHKEY", "TS_AUTH_KEY", "TS_AUTH_ONCE",
		"TS_CERT_SHARE_MODE", "TS_CLIENT_ID", "TS_CLIENT_SECRET", "TS_DEST_IP", "TS_EGRESS_PROXIES_CONFIG_PATH",
		"TS_ENABLE_HEALTH_CHECK", "TS_ENABLE_METRICS", "TS_EXPERIMENTAL_CERT_SHARE", "TS_EXPERIMENTAL_DEST_DNS_NAME",
		"TS_EXPERIMENTAL_SERVICE_AUTO_ADVERTISEMENT", "TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR", "TS_EXTRA_ARGS",
		"TS_HEALTHCHECK_ADDR_PORT", "TS_HOSTNAME", "TS_ID_TOKEN", "TS_INGRESS_PROXIES_CONFIG_PATH", "TS_INTERNAL_APP",
		"TS_KUBE_SECRET", "TS_KUBERNETES_READ_API_SERVER_ADDRESS_FROM_ENV", "TS_LOCAL_ADDR_PORT",
		"TS_OUTBOUND_HTTP_PROXY_LISTEN", "TS_ROUTES", "TS_SERVE_CONFIG", "TS_SOCKET", "TS_SOCKS5_SERVER", "TS_STATE",
		"TS_STATE_DIR", "TS_TAILNET_TARGET_FQDN", "TS_TAILNET_TARGET_IP", "TS_TAILSCALED_EXTRA_ARGS", "TS_TEST_ONLY_ROOT",
		"TS_USERSPACE",
	}
	for _, e := range proxy.StatefulSet(proxy.Options{}, proxy.Images{}).Spec.Template.Spec.Containers[0].Env {
		// Users may set these.
		if !strings.HasPrefix(e.Name, "TS_NETSTACK_KEEPALIVE_") && e.Name != "TS_BOOT_TIMEOUT" {
			names = append(names, e.Name)
		}
	}
	for _, name := range names {
		errs := s.create(t, "{tailnet: example, proxy: {env: [{name: "+name+", value: x}]}}")
		if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), "is reserved for the configuration of the proxy") {
			t.Errorf("variable %s: want it refused as reserved, got %v", name, errs.ToAggregate())
		}
	}
}
