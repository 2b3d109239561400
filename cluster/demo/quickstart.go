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
	proxyGroups = "tailscaleproxygroups.gateway.tailscale.com"
	tsGateways  = "tailscalegateways.gateway.tailscale.com"
	oauthSecret = "tailscale-oauth"
)

func (d *demo) quickstartSteps() []step {
	return []step{
		{name: "give the quickstart its OAuth client", do: d.namespaceAndSecret},
		{name: "apply examples/quickstart", do: d.apply},
		{name: "wait for the Tailscale Service", do: d.await},
		{name: "reach it from the tailnet", do: d.proof},
	}
}

func (d *demo) namespaceAndSecret(ctx context.Context, _ *progress) error {
	if _, err := d.lab.kubectl(ctx, nil, "apply", "--server-side", "-f", "examples/quickstart/namespace.yaml"); err != nil {
		return err
	}
	return d.secret(ctx, oauthSecret)
}

// secret holds the OAuth client of the lab's tailnet.
func (d *demo) secret(ctx context.Context, name string) error {
	manifest, err := d.lab.kubectl(ctx, nil, "create", "secret", "generic", name, "--namespace="+quickstart,
		"--from-literal=client_id="+d.lab.clientID, "--from-file=client_secret="+d.lab.clientSecretFile, "--dry-run=client", "-o=yaml")
	if err != nil {
		return err
	}
	_, err = d.lab.kubectl(ctx, []byte(manifest), "apply", "--server-side", "-f", "-")
	return err
}

// apply applies the example as it is, except for where Tailscale is.
func (d *demo) apply(ctx context.Context, _ *progress) error {
	if err := d.tailnet(ctx, quickstart, oauthSecret); err != nil {
		return err
	}
	_, err := d.lab.kubectl(ctx, nil, "apply", "--server-side", "-f", "examples/quickstart/web.yaml", "-f", "examples/quickstart/web-tailscale.yaml")
	return err
}

// tailnet applies the example's TailscaleTailnet by another name. Tailscale is the
// lab's simulator here.
func (d *demo) tailnet(ctx context.Context, name, secret string) error {
	manifest, err := d.lab.kubectl(ctx, nil, "patch", "--local", "-f", "examples/quickstart/tailnet.yaml", "--type=merge",
		fmt.Sprintf(`--patch={"metadata":{"name":%q},"spec":{"oauthSecretName":%q,"apiURL":%q,"controlURL":%q}}`, name, secret, d.lab.tailnetURL, d.lab.tailnetURL), "-o=yaml")
	if err != nil {
		return err
	}
	_, err = d.lab.kubectl(ctx, []byte(manifest), "apply", "--server-side", "-f", "-")
	return err
}

// joinSteps returns the steps that add another tailnet of the lab as a TailscaleTailnet.
func (d *demo) joinSteps(name string) []step {
	secret := oauthSecret + "-" + name
	return []step{
		{name: "give the quickstart its OAuth client", do: func(ctx context.Context, _ *progress) error { return d.secret(ctx, secret) }},
		{name: "apply the TailscaleTailnet " + name, do: func(ctx context.Context, _ *progress) error { return d.tailnet(ctx, name, secret) }},
		{name: "wait for its credential", do: func(ctx context.Context, p *progress) error {
			return p.until(ctx, 2*time.Minute, func(ctx context.Context) (string, error) {
				return d.missing(ctx, awaited{kind: tailnets, name: name, condition: "Authenticated"})
			})
		}},
	}
}

// An awaited condition is to become True.
type awaited struct{ kind, name, namespace, condition string }

// missing says why the condition is not True, or nothing.
func (d *demo) missing(ctx context.Context, w awaited) (string, error) {
	o, err := d.lab.get(ctx, w.kind, w.name, w.namespace)
	if err != nil {
		return "", err
	}
	if o == nil {
		return w.name + " is not there yet", nil
	}
	c := o.condition(w.condition)
	if c.Status == "True" {
		return "", nil
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s is %s: %s", strings.Split(w.kind, ".")[0], w.name, w.condition, c.Status, c.Message)), nil
}

func (d *demo) await(ctx context.Context, p *progress) error {
	return p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) {
		for _, w := range []awaited{
			{tailnets, quickstart, "", "Authenticated"},
			{endpoints, "proxies", quickstart, "StatefulSetsReady"},
			{services, "web", quickstart, "Advertised"},
			{services, "web", quickstart, "Ready"},
		} {
			if missing, err := d.missing(ctx, w); missing != "" || err != nil {
				return missing, err
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
