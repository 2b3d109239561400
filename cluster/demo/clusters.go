// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed" // For the Gateway of the demo of several clusters.
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	sharedFile = "examples/shared.yaml"
	sharedName = "shared"

	// clusterSet is the set of the demo's clusters.
	clusterSet = "lab"

	deployments = "deployments.apps"
)

// sharedRoute leads to the service of sharedFile, for any host.
//
//go:embed shared-route.yaml
var sharedRoute []byte

// Clusters of the lab. The first one has the Gateway.
const (
	firstCluster  = "one"
	secondCluster = "two"
	thirdCluster  = "three"
)

var clusterNames = []string{firstCluster, secondCluster, thirdCluster}

type clustersCmd struct {
	options
}

// Run brings everything up, and then ends clusters in different ways.
func (c *clustersCmd) Run(ctx context.Context) error {
	t := &trial{members: map[string]*demo{}, stopped: map[string][]controller{}, options: c.options}
	if err := run(ctx, os.Stdout, append(t.steps(), t.outageSteps()...)); err != nil {
		return err
	}
	return t.report(os.Stdout)
}

// A trial is a service that several clusters share, and what happens to it.
type trial struct {
	options

	// members are the demos of the clusters.
	members map[string]*demo

	// url is the address of the Gateway in the first cluster.
	url string

	// stopped are the controllers that were stopped, by cluster.
	stopped map[string][]controller

	results []result
}

// first returns the demo of the cluster with the Gateway.
func (t *trial) first() *demo { return t.members[firstCluster] }

func (t *trial) steps() []step {
	out := []step{
		{name: fmt.Sprintf("bring up the lab: %d clusters and a tailnet", len(clusterNames)), action: t.labUp},
		{name: "build our packages", action: func(ctx context.Context, p *progress) error { return t.first().build(ctx, p) }},
		{name: "push them to the lab's registry", action: func(ctx context.Context, p *progress) error { return t.first().push(ctx, p) }},
	}
	for _, c := range clusterNames {
		member := func(fn func(d *demo, ctx context.Context, p *progress) error) func(context.Context, *progress) error {
			return func(ctx context.Context, p *progress) error { return fn(t.members[c], ctx, p) }
		}
		out = append(out,
			step{name: "install Crossplane in cluster " + c, action: member((*demo).crossplane)},
			step{name: "install Tailscale Gateway in cluster " + c, action: member((*demo).tailscaleGateway)},
			step{name: "join cluster " + c + " to the set " + clusterSet, action: func(ctx context.Context, p *progress) error { return t.join(ctx, p, c) }},
		)
	}
	return append(out,
		step{name: "install our extension in cluster " + firstCluster, action: func(ctx context.Context, p *progress) error { return t.first().extension(ctx, p) }},
		step{name: "install Envoy Gateway in cluster " + firstCluster, action: func(ctx context.Context, p *progress) error { return t.first().envoyGateway(ctx, p) }},
		step{name: "apply the manifest of one service in all clusters", action: t.share},
		step{name: "route a Gateway of cluster " + firstCluster + " to it", action: t.route},
	)
}

func (t *trial) labUp(ctx context.Context, _ *progress) error {
	if err := goRun(ctx, ".", "./cluster/lab", "up", "--install", fmt.Sprintf("--clusters=%d", len(clusterNames))); err != nil {
		return err
	}
	return t.findLabs(ctx)
}

// findLabs finds the clusters of the lab that is up.
func (t *trial) findLabs(ctx context.Context) error {
	for _, c := range clusterNames {
		l, err := findLab(ctx, "--cluster="+c)
		if err != nil {
			return err
		}
		t.members[c] = newDemo(t.options)
		t.members[c].lab = l
	}
	return nil
}

// join creates the tailnet of a cluster, and a web server whose pods have the cluster's name.
func (t *trial) join(ctx context.Context, p *progress, cluster string) error {
	d := t.members[cluster]
	if err := d.namespaceAndSecret(ctx, p); err != nil {
		return err
	}
	if err := d.tailnet(ctx, quickstart, oauthSecret); err != nil {
		return err
	}
	if err := d.patch(ctx, tailnets, "", quickstart, fmt.Sprintf(`{"spec":{"clusterSet":%q}}`, clusterSet)); err != nil {
		return err
	}
	return d.webServer(ctx, cluster, "web")
}

// webServer applies the quickstart's web server with another name of its Deployment, and of its Service.
func (d *demo) webServer(ctx context.Context, deployment, service string) error {
	const file, head = "examples/quickstart/web.yaml", "kind: Deployment\nmetadata:\n  name: "
	manifest, err := os.ReadFile(file)
	if err != nil {
		return errors.Wrap(err, "cannot read the web server's manifest")
	}
	if !strings.Contains(string(manifest), head+"web\n") {
		return errors.Errorf("%s has no Deployment web", file)
	}
	changed := strings.NewReplacer(head+"web\n", head+deployment+"\n", "  name: web\n", "  name: "+service+"\n", "app: web\n", "app: "+service+"\n").Replace(string(manifest))
	_, err = d.lab.kubectl(ctx, []byte(changed), "apply", "--server-side", "-f", "-")
	return err
}

// share applies the service. Its sharing comes from the set of the clusters.
func (t *trial) share(ctx context.Context, p *progress) error {
	manifest, err := os.ReadFile(sharedFile)
	if err != nil {
		return errors.Wrap(err, "cannot read the service's manifest")
	}
	const sharing = "  sharing: Shared\n"
	if !strings.Contains(string(manifest), sharing) {
		return errors.Errorf("%s does not set sharing", sharedFile)
	}
	inSet := strings.Replace(string(manifest), sharing, "", 1)
	for _, c := range clusterNames {
		// A trial in the same lab may have scaled the proxies by a patch, which owns the field.
		if _, err := t.members[c].lab.kubectl(ctx, []byte(inSet), "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
			return err
		}
	}
	if err := t.balance(ctx, `"affinity":"Local"`); err != nil {
		return err
	}
	return p.until(ctx, 5*time.Minute, func(ctx context.Context) (string, error) {
		for _, c := range clusterNames {
			found, err := t.members[c].field(ctx, services, sharedName, "{.status.clusterSet} {.status.clusterCount}")
			if err != nil {
				return "", err
			}
			if want := fmt.Sprintf("%s %d", clusterSet, len(clusterNames)); found != want {
				return fmt.Sprintf("the set and the number of members are %q in cluster %s", found, c), nil
			}
		}
		return "", nil
	})
}

// route creates the Gateway, and waits for its address and for the proxies that lead to other clusters.
func (t *trial) route(ctx context.Context, p *progress) error {
	d := t.first()
	if _, err := d.lab.kubectl(ctx, sharedRoute, "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	if err := t.findGateway(ctx, p); err != nil {
		return err
	}
	_, err := t.answeredFrom(ctx, p, firstCluster)
	return err
}

// findGateway waits for the Gateway's address and for the proxies that lead to other clusters.
func (t *trial) findGateway(ctx context.Context, p *progress) error {
	d := t.first()
	return p.until(ctx, 3*time.Minute, func(ctx context.Context) (string, error) {
		found, err := d.field(ctx, endpoints, sharedName, "{.status.egressTargets[*].readyProxies}")
		if err != nil {
			return "", err
		}
		if n := len(strings.Fields(found)); n < len(clusterNames)-1 || slices.Contains(strings.Fields(found), "0") {
			return fmt.Sprintf("ready proxies to other clusters: %q", found), nil
		}
		address, err := d.field(ctx, gateways, sharedName, "{.status.addresses[0].value}")
		if err != nil {
			return "", err
		}
		if address == "" {
			return "the Gateway has no address", nil
		}
		t.url = addressURL(address)
		return "", nil
	})
}

// field returns a field of an object of the quickstart's namespace.
func (d *demo) field(ctx context.Context, kind, name, path string) (string, error) {
	return d.lab.kubectl(ctx, nil, "get", kind, name, "--namespace="+quickstart, "-o=jsonpath="+path)
}

// patch merges a patch into an object.
func (d *demo) patch(ctx context.Context, kind, namespace, name, patch string) error {
	args := []string{"patch", kind, name, "--type=merge", "--patch=" + patch}
	if namespace != "" {
		args = append(args, "--namespace="+namespace)
	}
	_, err := d.lab.kubectl(ctx, nil, args...)
	return err
}
