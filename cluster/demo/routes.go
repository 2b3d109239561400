// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	// extensionChart is both a release and a folder.
	extensionChart        = "tailscale-gateway-extension"
	envoyGatewayNamespace = "envoy-gateway-system"

	gateways   = "gateways.gateway.networking.k8s.io"
	routeHost  = "web.example.com"
	routesFile = "examples/gateway.yaml"
)

// gatewaySteps returns the steps that install Envoy Gateway and the extension, without a route.
func (d *demo) gatewaySteps() []step {
	return []step{
		{name: "install our extension by its chart", action: d.extension},
		{name: "install Envoy Gateway by its chart, with our values", action: d.envoyGateway},
		{name: "check that nothing is missing", action: d.checkRoutes},
	}
}

// routeSteps returns the steps that serve the quickstart's page through a Gateway.
func (d *demo) routeSteps() []step {
	return append(d.gatewaySteps(),
		step{name: "apply " + routesFile, action: d.routes},
		step{name: "reach the same page through the Gateway", action: d.proofOfRoutes},
	)
}

// extension does not wait for its pods: Envoy Gateway's pods do.
func (d *demo) extension(ctx context.Context, _ *progress) error {
	_, err := d.lab.helm(ctx, "upgrade", "--install", extensionChart, "package/charts/"+extensionChart,
		"--namespace", envoyGatewayNamespace, "--create-namespace", "--set=image.tag="+d.version)
	return err
}

// envoyGateway installs Envoy Gateway, and restarts one that has run before our kinds were installed: it
// looks for them only at its start.
func (d *demo) envoyGateway(ctx context.Context, _ *progress) error {
	if err := goRun(ctx, ".", "./cluster/lab", "envoy-gateway", "--values", "package/envoy-gateway/values.yaml"); err != nil {
		return err
	}
	started, err := d.lab.kubectl(ctx, nil, "get", "pods", "--namespace", envoyGatewayNamespace, "--selector=control-plane=envoy-gateway",
		"-o=jsonpath={.items[*].status.containerStatuses[*].state.running.startedAt}")
	if err != nil {
		return err
	}
	created, err := d.lab.kubectl(ctx, nil, "get", "crd", "tailscaleservices.gateway.tailscale.com", "-o=jsonpath={.metadata.creationTimestamp}")
	// Times of the API server have one form, in which later ones are greater.
	if err != nil || !slices.ContainsFunc(strings.Fields(started), func(t string) bool { return t < created }) {
		return err
	}
	if _, err := d.lab.kubectl(ctx, nil, "rollout", "restart", "deployment/envoy-gateway", "--namespace", envoyGatewayNamespace); err != nil {
		return err
	}
	_, err = d.lab.kubectl(ctx, nil, "rollout", "status", "deployment/envoy-gateway", "--namespace", envoyGatewayNamespace, "--timeout=3m")
	return err
}

func (d *demo) checkRoutes(ctx context.Context, p *progress) error {
	return p.until(ctx, 3*time.Minute, func(ctx context.Context) (string, error) {
		return "", d.lab.check(ctx, "--envoy-gateway=require")
	})
}

func (d *demo) routes(ctx context.Context, _ *progress) error {
	_, err := d.lab.kubectl(ctx, nil, "apply", "--server-side", "-f", routesFile)
	return err
}

// addressURL returns the URL of an address, with the brackets of IPv6.
func addressURL(address string) string {
	if a, err := netip.ParseAddr(address); err == nil && a.Is6() {
		address = "[" + address + "]"
	}
	return "http://" + address + "/"
}

func (d *demo) proofOfRoutes(ctx context.Context, p *progress) error {
	url, answer := "", ""
	err := p.until(ctx, 3*time.Minute, func(ctx context.Context) (string, error) {
		o, err := d.lab.get(ctx, gateways, "web", quickstart)
		if err != nil {
			return "", err
		}
		if o == nil || o.condition("Programmed").Status != "True" || len(o.Status.Addresses) == 0 {
			return "the Gateway is not Programmed", nil
		}
		url = addressURL(o.Status.Addresses[0].Value)
		answer, err = output(ctx, nil, nil, d.lab.labBin, "curl", "--host="+routeHost, url)
		return "", err
	})
	if err != nil {
		return err
	}

	p.printf("\nThe Gateway was asked for http://%s/ at %s, and pod %s answered through Envoy.\n", routeHost, url, strings.TrimSpace(answer))
	p.printf("From the tailnet the same service is http://web.<tailnet domain>/, as above.\n\n")
	p.printf("Look around:\n")
	p.printf("  go run ./cluster/lab kubectl get gateways,httproutes -A\n")
	p.printf("  go run ./cluster/lab curl --host=%s %s\n\n", routeHost, url)
	return nil
}
