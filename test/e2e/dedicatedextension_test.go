// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

const (
	// ownExample has a Gateway of an Envoy Gateway in the namespace team, with a dedicated
	// extension, and the RBAC rules of that Envoy Gateway.
	ownExample = "examples/extension-server.yaml"
	own        = "own"
	team       = "envoy-team"

	// addOwnHost adds a host to its route.
	addOwnHost = `[{"op":"add","path":"/spec/hostnames","value":["own.example.com"]}]`
)

// runsDedicatedExtension runs a second Envoy Gateway with the dedicated extension of a
// TailscaleGateway.
func runsDedicatedExtension(t *testing.T) {
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answersByOwnExtension},
		{"ReportsStatus", reportsOwnExtension},
		{"LeavesNothing", leavesNoExtension},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// answersByOwnExtension installs Envoy Gateway as docs/gateways.md describes.
func answersByOwnExtension(t *testing.T) {
	kubectl(t, "create", "namespace", team)
	if out, err := tryRun(t, "", "helm", "upgrade", charts.Install, "package/charts/"+charts.Install, "--namespace=crossplane-system", "--reset-then-reuse-values",
		"--set=function.envoyGatewayNamespaces={"+extensionNamespace+","+team+"}"); err != nil {
		t.Fatalf("cannot upgrade the chart: %v\n%s", err, out)
	}
	kubectl(t, "apply", "-f", ownExample)
	labCommand(t, "envoy-gateway", "--release=team", "--namespace="+team,
		"--values=package/envoy-gateway/values.yaml", "--values=package/envoy-gateway/team-values.yaml")
	conditionOf(t, "tailscalegateways", own, "ExtensionServerReady", "True", "ExtensionServing", patience)
	response := jsonpath(t, "tailscalegateways", own, `{.status.conditions[?(@.type=="ExtensionServerReady")].message}`)
	if !strings.Contains(response, "Secret "+namespace+"/own-extension-client") {
		t.Errorf("the condition does not name the Secret for Envoy Gateway: %s", response)
	}

	// The route refers to a TailscaleServices: only a hook resolves it.
	address := addressOfGateway(t, own)
	routed(t, "cluster", address, "anything.example.com", patience)
	took := answeredAt(t, tailnetOne.url(t, own), "web", patience)
	t.Logf("clients of the tailnet get a response %s later", took.Round(100*time.Millisecond))
	conditionOf(t, "tailscalegateways", own, "Ready", "True", "Available", patience)

	// Changes reach Envoy through the same extension.
	patch(t, "httproute", own, addOwnHost)
	took = routed(t, "cluster", address, "own.example.com", patience)
	eventually(t, patience, "the other host has no route", func() string {
		response, err := labCurl(t, "cluster", "http://"+address+"/", "anything.example.com")
		if err != nil && strings.Contains(response, "404") {
			return ""
		}
		return "the response is " + response
	})
	t.Logf("a host is served %s after the route changed", took.Round(100*time.Millisecond))
}

// reportsOwnExtension waits until the status reports the extension's state.
func reportsOwnExtension(t *testing.T) {
	eventually(t, patience, "status.extensionServerStatus", func() string {
		g := struct {
			Status struct {
				ExtensionServerStatus struct {
					Address       string
					ReadyReplicas int

					// Nil until the replica has reported.
					HookCallMetrics *struct{ Total, Successful, Failed int64 }
				}
			}
		}{}
		read(t, namespace, "tailscalegateways", own, &g)
		s := g.Status.ExtensionServerStatus
		h := s.HookCallMetrics
		called := h != nil && h.Total > 0 && h.Successful == h.Total && h.Failed == 0
		if s.Address != "own-extension."+namespace+".svc:5005" || s.ReadyReplicas != 2 || !called {
			return "the status is " + jsonpath(t, "tailscalegateways", own, "{.status.extensionServerStatus}")
		}
		return ""
	})
	// The policy blocks other pods: a permitted pod would reach the TLS handshake.
	for port, host := range map[int]string{5005: "own-extension." + namespace, 5006: "own-extension-eds." + namespace} {
		if got, err := dial(t, namespace, "http", host, port); err == nil || !strings.Contains(err.Error(), "dial tcp") {
			t.Errorf("a pod that is no Envoy connects to %s:%d: %v, %v", host, port, got, err)
		}
	}
}

// leavesNoExtension checks that the Gateways of the other extension keep working.
func leavesNoExtension(t *testing.T) {
	kubectl(t, "delete", "-f", ownExample, "--timeout=3m")
	goneFrom(t, namespace, own)
	// Kubernetes' garbage collector deletes the dependents of the ServiceAccount.
	eventually(t, patience, "its Secrets are gone", func() string {
		for line := range strings.Lines(kubectl(t, "get", "secrets", "-n", namespace, "-o=name")) {
			if strings.Contains(line, "/own-extension") {
				return line
			}
		}
		return ""
	})
	routed(t, "cluster", addressOfGateway(t, "web"), "web.example.com", patience)
	for _, kind := range []string{"deployments", "tailscalerevisions", "gatewayreports", "leases"} {
		if remaining := kubectl(t, "get", kind, "-n", namespace, "-o=name"); strings.Contains(remaining, "/"+own) {
			t.Errorf("something is left: %s", remaining)
		}
	}
	if out, err := tryRun(t, "", "helm", "uninstall", "team", "-n", team, "--wait"); err != nil {
		t.Fatalf("cannot uninstall Envoy Gateway: %v\n%s", err, out)
	}
	kubectl(t, "delete", "namespace", team, "--wait=false")
}
