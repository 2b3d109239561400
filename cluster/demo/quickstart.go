// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	tailnets    = "tailscaletailnets.gateway.tailscale.com"
	endpoints   = "tailscaleendpoints.gateway.tailscale.com"
	services    = "tailscaleservices.gateway.tailscale.com"
	oauthSecret = "tailscale-oauth"
)

func (d *demo) quickstartSteps() []step {
	return []step{
		{name: "give the quickstart its OAuth client", do: d.secret},
		{name: "apply examples/quickstart", do: d.apply},
		{name: "wait for the Tailscale Service", do: d.await},
		{name: "reach it from the tailnet", do: d.proof},
	}
}

func (d *demo) secret(ctx context.Context, _ *progress) error {
	if _, err := d.lab.kubectl(ctx, nil, "apply", "--server-side", "-f", "examples/quickstart/namespace.yaml"); err != nil {
		return err
	}
	manifest, err := d.lab.kubectl(ctx, nil, "create", "secret", "generic", oauthSecret, "--namespace="+quickstart,
		"--from-literal=client_id="+d.lab.clientID, "--from-file=client_secret="+d.lab.clientSecretFile, "--dry-run=client", "-o=yaml")
	if err != nil {
		return err
	}
	_, err = d.lab.kubectl(ctx, []byte(manifest), "apply", "--server-side", "-f", "-")
	return err
}

// apply applies the example as it is, but for where Tailscale is: here it is the
// lab's simulator.
func (d *demo) apply(ctx context.Context, _ *progress) error {
	manifest, err := d.lab.kubectl(ctx, nil, "patch", "--local", "-f", "examples/quickstart/tailnet.yaml", "--type=merge",
		fmt.Sprintf(`--patch={"spec":{"apiURL":%q,"controlURL":%q}}`, d.lab.tailnetURL, d.lab.tailnetURL), "-o=yaml")
	if err != nil {
		return err
	}
	if _, err := d.lab.kubectl(ctx, []byte(manifest), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	_, err = d.lab.kubectl(ctx, nil, "apply", "--server-side", "-f", "examples/quickstart/web.yaml", "-f", "examples/quickstart/web-tailscale.yaml")
	return err
}

func (d *demo) await(ctx context.Context, p *progress) error {
	return p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) {
		for _, w := range []struct{ kind, name, namespace, condition string }{
			{tailnets, quickstart, "", "Authenticated"},
			{endpoints, "proxies", quickstart, "StatefulSetsReady"},
			{services, "web", quickstart, "Advertised"},
			{services, "web", quickstart, "Ready"},
		} {
			o, err := d.lab.get(ctx, w.kind, w.name, w.namespace)
			if err != nil {
				return "", err
			}
			if o == nil {
				return w.name + " is not there yet", nil
			}
			if c := o.condition(w.condition); c.Status != "True" {
				return strings.TrimSpace(fmt.Sprintf("%s %s: %s is %s: %s", strings.Split(w.kind, ".")[0], w.name, w.condition, c.Status, c.Message)), nil
			}
		}
		return "", nil
	})
}

func (d *demo) proof(ctx context.Context, p *progress) error {
	url, answer := "", ""
	err := p.until(ctx, 2*time.Minute, func(ctx context.Context) (string, error) {
		o, err := d.lab.get(ctx, services, "web", quickstart)
		if err != nil {
			return "", err
		}
		if o == nil || o.Status.VIPServiceStatus.DNSName == "" {
			return "the service has no DNS name yet: the tailnet's domain is known once a device joined", nil
		}
		url = "http://" + o.Status.VIPServiceStatus.DNSName + "/"
		answer, err = output(ctx, nil, nil, d.lab.labBin, "tailnet-curl", url)
		return "", err
	})
	if err != nil {
		return err
	}

	p.printf("\nA tailnet client asked %s and pod %s answered.\n\n", url, strings.TrimSpace(answer))
	p.printf("Look around:\n")
	p.printf("  go run ./cluster/lab kubectl get tailscaletailnets,tailscaleendpoints,tailscaleservices -A\n")
	p.printf("  go run ./cluster/lab crossplane resource trace -n quickstart tailscaleservices.gateway.tailscale.com/web\n")
	p.printf("  go run ./cluster/lab tailnet-curl %s\n\n", url)
	return nil
}
