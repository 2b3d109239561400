// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && hostile

package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// repeated joins the manifests of n objects.
func repeated(n int, manifest func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = manifest(i)
	}
	return strings.Join(all, "\n---\n")
}

// flowList joins n elements of a list in the flow style of YAML.
func flowList(n int, element func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// hangingService is a Service whose endpoints exist nowhere, behind a TailscaleServices that probes
// them as slowly as the schema allows.
const hangingService = `apiVersion: v1
kind: Service
metadata: {name: hanging, namespace: mallory}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: hanging, namespace: mallory, labels: {kubernetes.io/service-name: hanging}}
addressType: IPv4
ports: [{port: 80, protocol: TCP}]
endpoints: `

// hostileRoute attaches a route to a Gateway of the victims.
func hostileRoute(name, gateway, hostnames, backend string) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: mallory}
spec:
  parentRefs: [{name: %s, namespace: quickstart}]
  hostnames: %s
  rules: [{backendRefs: [%s]}]`, name, gateway, hostnames, backend)
}

// ownServices is a TailscaleServices of the tenant with a backend.
func ownServices(name, backend, more string) string {
	return fmt.Sprintf(`apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: %s, namespace: mallory}
spec:
  selector: {matchLabels: {app: none}}
  vipService: {ports: ["tcp:80"], tags: ["tag:k8s"]}
  backends: [%s]%s`, name, backend, more)
}

// backendOf is a reference to a TailscaleServices.
func backendOf(name string) string {
	return fmt.Sprintf("{group: gateway.tailscale.com, kind: TailscaleServices, name: %s, port: 80}", name)
}

// floods returns attacks by numbers, sizes and waiting: kinds A to D of SECURITY.md.
func floods(t *testing.T) []attack {
	t.Helper()
	cert, key := certificate(t, "mallory")
	broken := readFile(t, cert) + "-----BEGIN CERTIFICATE-----\nZ2FyYmFnZQ==\n-----END CERTIFICATE-----\n"
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return []attack{
		{
			name: "A2ListNames", as: routesTenant,
			manifest: `apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: zones, namespace: mallory}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: zeros}]
  loadBalancer:
    type: RoundRobin
    zoneAware:
      weightedZones: ` + flowList(250, func(i int) string {
				return fmt.Sprintf("{zone: %q, weight: %d}", fmt.Sprintf("zone-%030d", i), i+1)
			}),
			missing: shows(routesTenant, "backendtrafficpolicies.gateway.envoyproxy.io", "zones", "{.status.ancestors[*].conditions[*].reason}", ""),
		},
		{
			name: "A3Certificate", as: editTenant,
			manifest: fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: client, namespace: mallory}
type: kubernetes.io/tls
data: {tls.crt: %s, tls.key: %s}`, encode(broken), encode(readFile(t, key))),
			missing: shows(editTenant, "secret", "client", "{.type}", "kubernetes.io/tls"),
		},
		{
			name: "A3CertificatePresented", as: routesTenant,
			manifest: `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: client, namespace: mallory}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: zeros}]
  rules:
  - name: client
    matches: [{path: {type: PathPrefix, value: /client}}]
    actions:
    - type: Route
      route: {backendRefs: [{name: zeros, port: 80}]}
    - type: BackendTLS
      backendTLS: {clientCertificateRef: {name: client}}`,
			missing: shows(routesTenant, "tailscaleroutepolicies", "client", "{.status.ancestors[*].conditions[*].reason}", "InvalidClientCertificateRef"),
		},
		{
			name: "B1Routes", as: routesTenant,
			manifest: `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: large, namespace: mallory}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: large}]
  rules: ` + flowList(16, func(i int) string {
				return fmt.Sprintf("{name: r%d, matches: %s, actions: [{type: Deny}]}", i, flowList(8, func(j int) string {
					return fmt.Sprintf("{path: {type: PathPrefix, value: /%d/%d}, method: GET, headers: [{name: X-Large, value: %q}]}", i, j, strings.Repeat("x", 500))
				}))
			}) + `
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: large, namespace: mallory}
spec:
  parentRefs: [{name: web, namespace: quickstart}]
  hostnames: ` + flowList(16, func(i int) string { return fmt.Sprintf("large-%d.example.com", i) }) + `
  rules: ` + flowList(4, func(i int) string {
				return fmt.Sprintf("{matches: %s, backendRefs: [%s]}", flowList(32, func(j int) string {
					return fmt.Sprintf("{path: {type: PathPrefix, value: /x/%d/%d}}", i, j)
				}), backendOf("zeros"))
			}),
			missing: shows(routesTenant, "tailscaleroutepolicies", "large", "{.status.ancestors[*].conditions[*].message}", "answered 403"),
		},
		{
			name: "B3Secrets", as: routesTenant,
			manifest: repeated(40, func(i int) string {
				return fmt.Sprintf(`apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: secrets-%d, namespace: mallory}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: zeros}]
  rules: %s`, i, flowList(16, func(j int) string {
					return fmt.Sprintf("{name: r%d, matches: [{path: {type: PathPrefix, value: /secret/%d/%d}}], actions: [{type: Route, route: {backendRefs: [{name: zeros, port: 80}]}}, {type: BackendTLS, backendTLS: {clientCertificateRef: {name: absent-%d-%d}}}]}", j, i, j, i, j)
				}))
			}),
			missing: shows(routesTenant, "tailscaleroutepolicies", "secrets-39", "{.status.ancestors[*].conditions[*].reason}", "TooManyClientCertificates"),
		},
		{
			name: "C1Hangs", as: editTenant,
			manifest: hangingService + flowList(128, func(i int) string { return fmt.Sprintf(`{addresses: ["10.255.255.%d"]}`, i) }),
			missing:  shows(editTenant, "endpointslice", "hanging", "{.endpoints[0].addresses}", "10.255.255.0"),
		},
		{
			name: "C1HangsProbed", as: routesTenant,
			manifest: ownServices("hanging", "{name: hanging, port: 80}", "\n  loadBalancing: {healthCheck: {enabled: true, timeout: 1h, interval: 1h}}") +
				"\n---\n" + hostileRoute("hanging", "web", "[hanging.example.com]", backendOf("hanging")),
			missing: shows(routesTenant, "httproute", "hanging", "{.status.parents[*].conditions[*].reason}", "ResolvedRefs"),
		},
		{
			name: "C2Lookups", as: routesTenant,
			manifest: repeated(16, func(i int) string {
				return ownServices(fmt.Sprintf("lookups-%d", i), fmt.Sprintf("{kind: External, name: slow, host: h%d.slow.mallory.example, port: 80}", i), "")
			}),
			missing: shows(routesTenant, "tailscaleservices", "lookups-15", "{.status.conditions[*].reason}", "NoEndpointsMatch"),
		},
		{
			name: "D1Hostnames", as: routesTenant,
			manifest: repeated(20, func(i int) string {
				return hostileRoute(fmt.Sprintf("a-%02d", i), named, flowList(16, func(j int) string { return fmt.Sprintf("a-%d-%d.shop.example.com", i, j) }), backendOf("zeros"))
			}),
			missing: shows(routesTenant, "httproute", "a-19", "{.status.parents[*].conditions[*].reason}", "Accepted"),
		},
	}
}

// trespasses returns attempts to use what others own: kinds F to J of SECURITY.md, and those of a
// proxy's pod.
func trespasses(t *testing.T) []attack {
	t.Helper()
	victim := victimMachine(t, namespace, "proxies-ingress-0")
	return []attack{
		{
			name: "F2ForgedKey", as: editTenant,
			manifest: fmt.Sprintf(`apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: AuthKey
metadata: {name: forged, namespace: mallory, annotations: {crossplane.io/external-name: %s}}
spec:
  forProvider: {tags: ["tag:k8s"]}
  writeConnectionSecretToRef: {name: forged}
  providerConfigRef: {kind: ClusterProviderConfig, name: quickstart}`, victimKey(t)),
			action: func(t *testing.T) {
				t.Helper()
				if out, err := tries(t, editTenant, "", "delete", "authkeys.tailnet.gateway.tailscale.com", "forged", "--timeout=2m"); err != nil {
					t.Fatalf("cannot delete: %v\n%s", err, out)
				}
			},
		},
		{
			name: "F2ForgedDevice", as: editTenant,
			manifest: fmt.Sprintf(`apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: Device
metadata: {name: forged, namespace: mallory, annotations: {crossplane.io/external-name: %s}}
spec:
  forProvider: {nodeID: %[1]s}
  providerConfigRef: {kind: ClusterProviderConfig, name: quickstart}`, victim.NodeID),
			action: func(t *testing.T) {
				t.Helper()
				if out, err := tries(t, editTenant, "", "delete", "devices.tailnet.gateway.tailscale.com", "forged", "--timeout=2m"); err != nil {
					t.Fatalf("cannot delete: %v\n%s", err, out)
				}
			},
		},
		{
			name: "G2Environment", as: routesTenant,
			manifest: `apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: env, namespace: mallory}
spec:
  tailnet: quickstart
  proxy:
    replicas: 1
    connectionType: ingress
    env: [{name: STOLEN, valueFrom: {secretKeyRef: {name: client, key: tls.key}}}]`,
			missing: shows(routesTenant, "tailscaleendpoints", "env", "{.status.conditions[*].reason}", "NotGranted"),
		},
		{
			name: "G4Domains", as: routesTenant,
			manifest: hostileRoute("github", "web", "[github.com]", backendOf("zeros")) + `
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: domains, namespace: mallory}
spec:
  gatewayRef: {name: own}
  publishBackends: None
  tailnets: [{name: quickstart, proxy: {replicas: 1}, vipService: {tags: ["tag:k8s"]}, splitDNS: {domains: [github.com]}}]`,
			missing: shows(routesTenant, "tailscalegateways", "domains", "{.status.conditions[*].reason}", "NotGranted"),
		},
		{
			name: "H1H2Addresses", as: routesTenant,
			manifest: repeated(3, func(i int) string {
				// The schema refuses other forms of loopback and link-local addresses.
				host := []string{"2001:0:4136:e378:8000:63bf:3fff:fdd2", "100.100.100.200", "metadata.google.internal"}[i]
				return ownServices(fmt.Sprintf("refused-%d", i), fmt.Sprintf("{kind: External, name: out, host: %q, port: 80}", host), "\n  endpointTemplate: {tailnet: quickstart, proxy: {replicas: 1}}")
			}),
			missing: func(t *testing.T) string {
				t.Helper()
				out, err := tries(t, routesTenant, "", "get", "tailscaleservices", "-o=jsonpath={range .items[*]}{.metadata.name}={.status.vipServiceStatus.healthyBackendCount} {end}")
				if err != nil {
					return err.Error()
				}
				for _, s := range strings.Fields(out) {
					if strings.HasPrefix(s, "refused-") && !strings.HasSuffix(s, "=") && !strings.HasSuffix(s, "=0") {
						t.Errorf("a backend at a refused address counts as healthy: %s", s)
					}
				}
				if !strings.Contains(out, "refused-2") {
					return "the services are not there: " + out
				}
				return ""
			},
		},
		{
			name: "T3Pod",
			action: func(t *testing.T) {
				t.Helper()
				const account = "system:serviceaccount:quickstart:proxies-ingress"
				for _, args := range [][]string{
					{"get", "secret/tailscale-oauth"},
					{"list", "secrets"},
					{"create", "secrets"},
					{"patch", "machines.tailnet.gateway.tailscale.com/proxies-ingress-0"},
					{"delete", "machines.tailnet.gateway.tailscale.com"},
					{"get", "pods"},
				} {
					if out, _ := tryRun(t, "", "kubectl", append([]string{"auth", "can-i", "--as=" + account, "-n", namespace}, args...)...); !strings.HasPrefix(strings.TrimSpace(out), "no") {
						t.Errorf("the account of a proxy's pod may %s: %s", strings.Join(args, " "), out)
					}
				}
			},
		},
	}
}
