// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	crossplaneNamespace = "crossplane-system"

	// budgetOfDocs is the budget that docs/gateways.md recommends for many changes at a time: the
	// steps of a test follow each other without a pause.
	budgetOfDocs = "--circuit-breaker-burst=300"
)

// setsBudget restarts Crossplane with these additional flags, or without any. Its counters restart
// at zero.
func setsBudget(t *testing.T, flags ...string) {
	t.Helper()
	args, err := json.Marshal(append([]string{"core", "start"}, flags...))
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "patch", "deployment", "crossplane", "-n", crossplaneNamespace, "--type=json",
		`--patch=[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":`+string(args)+`}]`)
	kubectl(t, "rollout", "status", "deployment/crossplane", "-n", crossplaneNamespace, "--timeout=5m")
}

func breakerStaysClosed(t *testing.T) {
	pod := strings.TrimSpace(kubectl(t, "get", "pods", "-n", "crossplane-system", "-l", "app=crossplane", "-o=jsonpath={.items[0].metadata.name}"))
	out := kubectl(t, "get", "--raw", "/api/v1/namespaces/crossplane-system/pods/"+pod+":8080/proxy/metrics")
	seen := false
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "circuit_breaker_events_total") {
			seen = true
		}
		if strings.HasPrefix(line, "circuit_breaker_opens_total") && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
			t.Errorf("the circuit breaker opened: %s", line)
		}
	}
	if !seen {
		t.Errorf("Crossplane's metrics count no event\n%s", out)
	}
}
