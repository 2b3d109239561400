// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
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
		{name: "give the quickstart its OAuth client", action: d.namespaceAndSecret},
		{name: "apply examples/quickstart", action: d.apply},
		{name: "wait for the Tailscale Service", action: d.awaitQuickstart},
		{name: "reach it from the tailnet", action: d.proof},
	}
}

// examples is the public address of the examples, as in the README.
const examples = products.Raw + "/v0.1.0/examples/"

func (d *demo) namespaceAndSecret(ctx context.Context, p *progress) error {
	if err := d.readmeCommands(ctx, p, "kubectl apply -f "+examples+"quickstart/namespace.yaml", examples, "examples/"); err != nil {
		return err
	}
	existing, err := d.lab.kubectl(ctx, nil, "get", "secret", oauthSecret, "--namespace="+quickstart, "--ignore-not-found", "-o=name")
	if existing != "" || err != nil {
		return err
	}
	return d.readmeCommands(ctx, p, "kubectl create secret", "client_id=ID", "client_id="+d.lab.clientID, "--from-literal=client_secret=SECRET", "--from-file=client_secret="+d.lab.clientSecretFile)
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

// apply applies the example as it is, except for the address of Tailscale.
func (d *demo) apply(ctx context.Context, p *progress) error {
	manifest, err := d.tailnetManifest(ctx, quickstart, oauthSecret)
	if err != nil {
		return err
	}
	file := filepath.Join(d.lab.cache, "demo", "tailnet.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return errors.Wrap(err, "cannot write the tailnet's manifest")
	}
	if err := d.readmeCommands(ctx, p, "kubectl apply -f "+examples+"quickstart/tailnet.yaml", examples+"quickstart/tailnet.yaml", file); err != nil {
		return err
	}
	return d.readmeCommands(ctx, p, "kubectl apply -f "+examples+"quickstart/web", examples, "examples/")
}

// tailnetManifest returns the example's TailscaleTailnet with another name, and with the address of
// the lab's simulator of Tailscale.
func (d *demo) tailnetManifest(ctx context.Context, name, secret string) (string, error) {
	return d.lab.kubectl(ctx, nil, "patch", "--local", "-f", "examples/quickstart/tailnet.yaml", "--type=merge",
		fmt.Sprintf(`--patch={"metadata":{"name":%q},"spec":{"oauthSecretName":%q,"apiURL":%q,"controlURL":%q}}`, name, secret, d.lab.tailnetURL, d.lab.tailnetURL), "-o=yaml")
}

// tailnet applies the example's TailscaleTailnet with another name.
func (d *demo) tailnet(ctx context.Context, name, secret string) error {
	manifest, err := d.tailnetManifest(ctx, name, secret)
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
		{name: "give the quickstart its OAuth client", action: func(ctx context.Context, _ *progress) error { return d.secret(ctx, secret) }},
		{name: "apply the TailscaleTailnet " + name, action: func(ctx context.Context, _ *progress) error { return d.tailnet(ctx, name, secret) }},
		{name: "wait for its credential", action: func(ctx context.Context, p *progress) error {
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

// awaitQuickstart shows progress first, because the README's command shows none.
func (d *demo) awaitQuickstart(ctx context.Context, p *progress) error {
	if err := d.await(ctx, p); err != nil {
		return err
	}
	return d.readmeCommands(ctx, p, "kubectl wait tailscaleservices")
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
