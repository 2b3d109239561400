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
	// discoveryExample has a Gateway and a TailscaleGateway of one name, and finds all
	// services of the quickstart's tailnet.
	discoveryExample = "examples/gateway-discovery.yaml"
	discovering      = "reach"

	// doorbell is a service that a client of a tailnet hosts. It says what it is asked
	// to say.
	doorbell     = "svc:doorbell"
	doorbellHost = "concierge"

	// searched is what the example looks for, and onlyDoorbell is the doorbell alone, and
	// often: others come and go while tests run.
	searched     = "      patterns:\n      - wiki\n"
	onlyDoorbell = "      patterns: [doorbell]\n      interval: 5s\n"
)

// discoversServices has what a tailnet serves appear at a Gateway, and disappear.
func discoversServices(t *testing.T) {
	apply(t, strings.ReplaceAll(readFile(t, discoveryExample), searched, onlyDoorbell))
	conditionOf(t, "tailscalegateways", discovering, "EndpointsReady", "True", "EndpointsReady", patience)
	tailnetOne.serve(t, doorbellHost, doorbell)
	took := eventually(t, patience, "what was discovered answers", func() string {
		return greets(t, discovering, "doorbell.tailscale.local", "/tailscale/doorbell/")
	})
	t.Logf("%s answers at the Gateway after %s", doorbell, took.Round(100*time.Millisecond))
	// Without any route the condition is True, too, so the status tells first.
	eventually(t, patience, "status.generatedRoutes", func() string {
		if got := jsonpath(t, "tailscalegateways", discovering, "{.status.generatedRoutes[*].service} {.status.generatedRoutes[*].state}"); got != "doorbell Accepted" {
			return "it has " + got
		}
		return ""
	})
	conditionOf(t, "tailscalegateways", discovering, "RoutesReady", "True", "RoutesAccepted", patience)

	tailnetOne.withdraw(t, doorbellHost, doorbell)
	took = eventually(t, patience, "what is gone has no route", func() string {
		return unknown(t, discovering, "doorbell.tailscale.local", "/tailscale/doorbell/")
	})
	t.Logf("%s is gone from the Gateway after %s", doorbell, took.Round(100*time.Millisecond))
	if left := generatedFor(t, discovering); left != "" {
		t.Errorf("routes are left: %s", left)
	}
	kubectl(t, "delete", "-f", discoveryExample, "--timeout=3m")
	goneFrom(t, namespace, discovering)
}

// generatedFor lists the routes that were made for a TailscaleGateway.
func generatedFor(t *testing.T, name string) string {
	t.Helper()
	return kubectl(t, "get", "httproutes", "-n", namespace, "-l", meta.LabelGateway+"="+name, "-o=name")
}

// serve makes a service of a tailnet that a client hosts.
func (n tailnet) serve(t *testing.T, client, service string) {
	t.Helper()
	n.serveAt(t, client, service, "80", behindClients)
}

// serveAt is serve with another port, and with what listens behind the client.
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

// greets asks a Gateway for a greeting, and says what is missing. What hosts services
// answers another path by something else: the prefix must be cut off.
func greets(t *testing.T, gateway, host, prefix string) string {
	t.Helper()
	if said, err := labCurl(t, "cluster", "http://"+addressOfGateway(t, gateway)+prefix+"echo?msg=welcome", host); err != nil || said != "welcome" {
		return host + prefix + " is answered by " + said
	}
	return ""
}

// unknown says what a Gateway answers where it is to have no route.
func unknown(t *testing.T, gateway, host, prefix string) string {
	t.Helper()
	said, err := labCurl(t, "cluster", "http://"+addressOfGateway(t, gateway)+prefix+"echo?msg=welcome", host)
	if err != nil && strings.Contains(said, "404") {
		return ""
	}
	return host + prefix + " is answered by " + said
}

// addressOfGateway is where clients of the cluster's network find it.
func addressOfGateway(t *testing.T, name string) string {
	t.Helper()
	var address string
	eventually(t, patience, "address of Gateway "+name, func() string {
		if address = jsonpath(t, "gateways.gateway.networking.k8s.io", name, "{.status.addresses[0].value}"); address == "" {
			return "none yet"
		}
		return ""
	})
	return address
}
