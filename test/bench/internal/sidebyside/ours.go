// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Ours is this project.
type Ours struct {
	lab        *Lab
	name       string
	networking string
	targets    []string
}

// NewOurs returns the project's side under a name, with proxies of a networking mode: Userspace or
// Kernel. A lab may have two of them.
func NewOurs(l *Lab, name, networking string) *Ours {
	return &Ours{lab: l, name: name, networking: networking}
}

// Name returns the name of the side.
func (o *Ours) Name() string { return o.name }

func (o *Ours) ingress() string { return o.name + "-in" }
func (o *Ours) egress() string  { return o.name + "-out" }

// Install applies a tailnet and two sets of proxies, and waits until they are ready.
func (o *Ours) Install(ctx context.Context) error {
	if err := o.InstallIngress(ctx); err != nil {
		return err
	}
	if err := o.lab.apply(ctx, o.proxies(o.egress(), "egress").manifest()); err != nil {
		return err
	}
	return o.ready(ctx, o.egress())
}

// InstallIngress applies a tailnet and the ingress proxies, and waits until they are ready.
func (o *Ours) InstallIngress(ctx context.Context) error {
	secret, err := o.lab.kubectl(ctx, "create", "secret", "generic", "tailscale-oauth", "--namespace="+Namespace,
		"--from-literal=client_id="+o.lab.env["TAILNET_CLIENT_ID"], "--from-file=client_secret="+o.lab.env["TAILNET_CLIENT_SECRET_FILE"], "--dry-run=client", "-o=yaml")
	if err != nil {
		return err
	}
	tailnet := fmt.Sprintf(`
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleTailnet
metadata:
  name: bench
spec:
  oauthSecretName: tailscale-oauth
  oauthSecretNamespace: %[1]s
  apiURL: %[2]q
  controlURL: %[2]q
  tags: [tag:k8s]
`, Namespace, o.lab.env["TAILNET_API_IN_CLUSTER"])
	if err := o.lab.apply(ctx, secret+tailnet+o.proxies(o.ingress(), "ingress").manifest()); err != nil {
		return err
	}
	return o.ready(ctx, o.ingress())
}

// ready waits until a set of proxies is ready.
func (o *Ours) ready(ctx context.Context, set string) error {
	return o.lab.until(ctx, "our proxies", func(ctx context.Context) error {
		return errors.Join(
			o.lab.condition(ctx, "tailscaleendpoints/"+set, "MachinesReady"),
			o.lab.condition(ctx, "tailscaleendpoints/"+set, "StatefulSetsReady"))
	})
}

func (o *Ours) proxies(name, connectionType string, targets ...string) proxies {
	return proxies{name: name, connectionType: connectionType, networking: o.networking, replicas: replicas, targets: targets, target: o.lab.target()}
}

// ApplyIngress creates TailscaleServices.
func (o *Ours) ApplyIngress(ctx context.Context, names ...string) error {
	return o.lab.applyAll(ctx, names, o.ingressManifest)
}

func (o *Ours) ingressManifest(name string) string {
	ports := portHTTP
	if o.networking == string(tailnetv1alpha1.NetworkingKernel) {
		ports = portsAll
	}
	return hosted(name, o.ingress(), ports)
}

// ApplyEgress adds an endpoint to the egress proxies.
func (o *Ours) ApplyEgress(ctx context.Context, name string) error {
	o.targets = append(o.targets, name)
	return o.lab.apply(ctx, o.proxies(o.egress(), "egress", o.targets...).manifest())
}

// IngressURL returns the URL with the service's name.
func (o *Ours) IngressURL(name string) string { return o.lab.ingressURL(name) }

// EgressURL returns the URL of the endpoint's Service, whose name is in status.egressTargets.
func (o *Ours) EgressURL(name string) string {
	return egressURL(names.EndpointService(o.egress(), name))
}

// Controllers returns the selectors of the provider and the functions, without Crossplane.
func (o *Ours) Controllers() [][2]string {
	return [][2]string{
		{"crossplane-system", "pkg.crossplane.io/provider"},
		{"crossplane-system", "pkg.crossplane.io/function"},
	}
}

// Proxies returns the selector of the proxies of both directions.
func (o *Ours) Proxies() [2]string {
	return [2]string{Namespace, fmt.Sprintf("%s in (%s, %s)", meta.LabelEndpoints, o.ingress(), o.egress())}
}

// IngressPod returns the first ingress pod.
func (o *Ours) IngressPod() (namespace, name string) { return Namespace, o.ingress() + "-ingress-0" }
