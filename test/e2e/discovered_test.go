// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

const (
	// discoveryExample has a Gateway and a TailscaleGateway of one name, and discovers all services
	// of the quickstart's tailnet.
	discoveryExample = "examples/gateway-discovery.yaml"
	discovering      = "reach"

	// doorbell is a service that a client of a tailnet hosts. It echoes a message.
	doorbell     = "svc:doorbell"
	doorbellHost = "concierge"

	// searched is the selector of the example. onlyDoorbell selects the doorbell alone, with a
	// short interval: other services come and go while tests run.
	searched     = "      patterns:\n      - wiki\n"
	onlyDoorbell = "      patterns: [doorbell]\n      interval: 5s\n"
)

// discoversServices checks that services of a tailnet appear at a Gateway, and disappear.
func discoversServices(t *testing.T) {
	apply(t, strings.ReplaceAll(readFile(t, discoveryExample), searched, onlyDoorbell))
	conditionOf(t, "tailscalegateways", discovering, "EndpointsReady", "True", "EndpointsReady", patience)
	tailnetOne.serve(t, doorbellHost, doorbell)
	took := eventually(t, patience, "the discovered service answers", func() string {
		return greets(t, discovering, "doorbell.tailscale.local", "/tailscale/doorbell/")
	})
	t.Logf("%s answers at the Gateway after %s", doorbell, took.Round(100*time.Millisecond))
	// The condition is True without any route, too: check the status first.
	eventually(t, patience, "status.generatedRoutes", func() string {
		if got := jsonpath(t, "tailscalegateways", discovering, "{.status.generatedRoutes[*].service} {.status.generatedRoutes[*].state}"); got != "doorbell Accepted" {
			return "the routes are " + got
		}
		return ""
	})
	conditionOf(t, "tailscalegateways", discovering, "RoutesReady", "True", "RoutesAccepted", patience)

	tailnetOne.withdraw(t, doorbellHost, doorbell)
	took = eventually(t, patience, "the withdrawn service has no route", func() string {
		return unknown(t, discovering, "doorbell.tailscale.local", "/tailscale/doorbell/")
	})
	t.Logf("%s was removed from the Gateway after %s", doorbell, took.Round(100*time.Millisecond))
	if remaining := generatedFor(t, discovering); remaining != "" {
		t.Errorf("routes are left: %s", remaining)
	}
	kubectl(t, "delete", "-f", discoveryExample, "--timeout=3m")
	goneFrom(t, namespace, discovering)
}

// generatedFor lists the routes that were generated for a TailscaleGateway.
func generatedFor(t *testing.T, name string) string {
	t.Helper()
	return kubectl(t, "get", "httproutes", "-n", namespace, "-l", meta.LabelGateway+"="+name, "-o=name")
}

// serve creates a service of a tailnet that a client hosts.
func (n tailnet) serve(t *testing.T, client, service string) {
	t.Helper()
	n.serveAt(t, client, service, "80", behindClients)
}

// serveAt is like serve with another port and another address behind the client.
func (n tailnet) serveAt(t *testing.T, client, service, port, behind string) {
	t.Helper()
	labCommand(t, "--tailnet="+string(n), "tailnet-client", client)
	if err := n.client(t).VIPServices().CreateOrUpdate(t.Context(), tailscale.VIPService{
		Name: service, Ports: []string{"tcp:" + port}, Tags: []string{"tag:k8s"},
	}); err != nil {
		t.Fatalf("cannot make %s: %v", service, err)
	}
	n.hostedBy(t, client, service, port, behind)
}

// withdraw undoes serve.
func (n tailnet) withdraw(t *testing.T, client, service string) {
	t.Helper()
	labCommand(t, "--tailnet="+string(n), "tailscale", "--as="+client, "serve", "clear", service)
	if err := n.client(t).VIPServices().Delete(t.Context(), service); err != nil {
		t.Fatalf("cannot delete %s: %v", service, err)
	}
}

// greets requests a greeting from a Gateway and describes an unexpected response. Only the path
// without the prefix returns the greeting: the Gateway must cut the prefix off.
func greets(t *testing.T, gateway, host, prefix string) string {
	t.Helper()
	if response, err := labCurl(t, "cluster", "http://"+addressOfGateway(t, gateway)+prefix+"echo?msg=welcome", host); err != nil || response != "welcome" {
		return host + prefix + " returns " + response
	}
	return ""
}

// unknown describes the response of a Gateway that must have no route.
func unknown(t *testing.T, gateway, host, prefix string) string {
	t.Helper()
	response, err := labCurl(t, "cluster", "http://"+addressOfGateway(t, gateway)+prefix+"echo?msg=welcome", host)
	if err != nil && strings.Contains(response, "404") {
		return ""
	}
	return host + prefix + " returns " + response
}

// addressOfGateway returns the Gateway's address in the cluster's network.
func addressOfGateway(t *testing.T, name string) string {
	t.Helper()
	return addressOfGatewayIn(t, namespace, name)
}

func addressOfGatewayIn(t *testing.T, ns, name string) string {
	t.Helper()
	var address string
	eventually(t, patience, "address of Gateway "+name, func() string {
		if address = jsonpathIn(t, ns, "gateways.gateway.networking.k8s.io", name, "{.status.addresses[0].value}"); address == "" {
			return "none yet"
		}
		return ""
	})
	return address
}
