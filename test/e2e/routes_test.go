// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	extension          = "tailscale-gateway-extension"
	extensionNamespace = "envoy-gateway-system"

	// addHost adds a host to the route of examples/gateway.yaml.
	addHost = `[{"op":"add","path":"/spec/hostnames/-","value":"more.example.com"}]`
)

// routesToServices requests the quickstart's page through the demo's Gateway: a real Envoy with the
// extension that the chart installed.
func routesToServices(t *testing.T) {
	var address string
	eventually(t, time.Minute, "the Gateway has an address", func() string {
		address = jsonpath(t, "gateways.gateway.networking.k8s.io", "web", "{.status.addresses[0].value}")
		if address == "" {
			return "none yet"
		}
		return ""
	})
	for _, source := range []string{"cluster", "outside"} {
		routed(t, source, address, "web.example.com", time.Minute)
	}
	if response, err := labCurl(t, "cluster", "http://"+address+"/", "other.example.com"); err == nil {
		t.Errorf("a host without a route is served: %s", response)
	}
	const resolved = `{.status.parents[*].conditions[?(@.type=="ResolvedRefs")].status}`
	if got := jsonpath(t, "httproutes.gateway.networking.k8s.io", "web", resolved); got != "True" {
		t.Errorf("ResolvedRefs of the route is %q", got)
	}

	subscribesOnce(t)

	// An upgrade keeps certificates: Envoys would refuse new pods with other certificates until the
	// new authority reaches them.
	previous := shownCertificate(t)
	if out, err := tryRun(t, "", "helm", "upgrade", extension, "package/charts/"+extension, "-n", extensionNamespace, "--set=image.tag="+*version); err != nil {
		t.Fatalf("cannot upgrade the chart: %v\n%s", err, out)
	}
	if shownCertificate(t) != previous {
		t.Error("an upgrade changed the extension's certificate")
	}

	// Envoys keep their configuration while all pods of the extension are replaced, and get later
	// changes.
	kubectl(t, "rollout", "restart", "deployment/"+extension, "-n", extensionNamespace)
	kubectl(t, "rollout", "status", "deployment/"+extension, "-n", extensionNamespace, "--timeout=3m")
	if response, err := labCurl(t, "cluster", "http://"+address+"/", "web.example.com"); err != nil {
		t.Errorf("a route fails after the extension was rolled: %v: %s", err, response)
	}
	kubectl(t, "patch", "httproutes.gateway.networking.k8s.io", "web", "-n", namespace, "--type=json", "--patch="+addHost)
	t.Logf("a new host is served %s after it was added", routed(t, "cluster", address, "more.example.com", time.Minute).Round(100*time.Millisecond))

	// Endpoints follow the pods: Envoy subscribes to the new extension.
	kubectl(t, "delete", "pods", "-n", namespace, "-l", "app=web", "--wait")
	t.Logf("new pods get requests %s after the old ones ended", routed(t, "cluster", address, "web.example.com", time.Minute).Round(100*time.Millisecond))
}

// subscribesOnce checks that each Envoy of the Gateway subscribes to endpoints over one stream, by
// the authority in the bootstrap that Envoy Gateway's values set.
func subscribesOnce(t *testing.T) {
	t.Helper()
	const stream = `envoy_cluster_upstream_rq_active{envoy_cluster_name="tailscale_eds"} `
	eventually(t, time.Minute, "each Envoy of the Gateway has one stream of endpoints", func() string {
		pods := strings.Fields(kubectl(t, "get", "pods", "-n", extensionNamespace,
			"-l", "gateway.envoyproxy.io/owning-gateway-namespace="+namespace+",gateway.envoyproxy.io/owning-gateway-name=web", "-o=jsonpath={.items[*].metadata.name}"))
		if len(pods) == 0 {
			return "the Gateway has no Envoy"
		}
		for _, p := range pods {
			got := ""
			for line := range strings.Lines(kubectl(t, "get", "--raw", "/api/v1/namespaces/"+extensionNamespace+"/pods/"+p+":19001/proxy/stats/prometheus")) {
				if v, ok := strings.CutPrefix(line, stream); ok {
					got = strings.TrimSpace(v)
				}
			}
			if got != "1" {
				return p + " has " + strconv.Quote(got)
			}
		}
		return ""
	})
}

// shownCertificate returns the certificate that the extension presents.
func shownCertificate(t *testing.T) string {
	t.Helper()
	out := kubectl(t, "get", "secret", extension+"-tls", "-n", extensionNamespace, `-o=jsonpath={.data.tls\.crt}`)
	if out == "" {
		t.Fatal("the extension has no certificate")
	}
	return out
}

// routed waits until a pod of the quickstart answers through the Gateway.
func routed(t *testing.T, source, address, host string, timeout time.Duration) time.Duration {
	t.Helper()
	return eventually(t, timeout, host+" is served to "+source, func() string {
		response, err := labCurl(t, source, "http://"+address+"/", host)
		if err != nil {
			return err.Error() + ": " + response
		}
		pods := strings.Fields(kubectl(t, "get", "pods", "-n", namespace, "-l", "app=web", "-o=jsonpath={.items[*].metadata.name}"))
		for _, p := range pods {
			if response == p {
				return ""
			}
		}
		return response + " answered, which is none of " + strings.Join(pods, ", ")
	})
}
