// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// domain returns the DNS domain of the quickstart's tailnet.
func domain(t *testing.T) string {
	t.Helper()
	return strings.TrimSuffix(strings.TrimPrefix(vipURL(t, "web"), "http://web."), "/")
}

// appliesExamples applies examples that no other step uses, unchanged.
func appliesExamples(t *testing.T) {
	const smallest, external, routeOnly = "examples/smallest.yaml", "examples/external-backend.yaml", "examples/route-only.yaml"
	kubectl(t, "apply", "-f", smallest, "-f", external, "-f", routeOnly)
	answered(t, "hello", "web", patience)
	answeredAt(t, "http://legacy."+domain(t)+":8080/", "web", patience)

	routed(t, "cluster", addressOfGateway(t, "web"), "split.example.com", patience)
	conditionOf(t, "tailscaleservices", "split", "Accepted", "True", "Accepted", patience)
	if vip := jsonpath(t, "tailscaleservices", "split", "{.status.vipServiceStatus.addresses[*]}"); vip != "" {
		t.Errorf("TailscaleServices split has the addresses %s: it is for routes only", vip)
	}
	kubectl(t, "delete", "-f", smallest, "-f", external, "-f", routeOnly, "--timeout=3m")
	goneFrom(t, namespace, "hello", "legacy", "split")
}
