// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// Names of our objects.
const (
	oursIngress = "ours-in"
	oursEgress  = "ours-out"
)

// Ours is this project.
type Ours struct {
	lab        *Lab
	networking string
	endpoints  []string
}

// NewOurs returns our side, with proxies of a networking mode: Userspace or Kernel.
func NewOurs(l *Lab, networking string) *Ours { return &Ours{lab: l, networking: networking} }

// Name of the side.
func (o *Ours) Name() string { return "ours" }

// Install a tailnet and two sets of proxies.
func (o *Ours) Install(ctx context.Context) error {
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
	if err := o.lab.apply(ctx, secret+tailnet+"---\n"+o.proxies(oursIngress, "ingress")); err != nil {
		return err
	}
	if err := o.lab.apply(ctx, o.proxies(oursEgress, "egress")); err != nil {
		return err
	}
	return o.lab.until(ctx, "our proxies", func(ctx context.Context) error {
		return errors.Join(
			o.lab.condition(ctx, "tailscaleendpoints/"+oursIngress, "MachinesReady"),
			o.lab.condition(ctx, "tailscaleendpoints/"+oursEgress, "MachinesReady"),
			o.lab.condition(ctx, "tailscaleendpoints/"+oursIngress, "StatefulSetsReady"),
			o.lab.condition(ctx, "tailscaleendpoints/"+oursEgress, "StatefulSetsReady"))
	})
}

func (o *Ours) proxies(name, connectionType string) string {
	out := fmt.Sprintf(`apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata:
  name: %[1]s
  namespace: %[2]s
  labels: {app: %[1]s}
spec:
  tailnet: bench
  proxy:
    replicas: %[3]d
    connectionType: %[4]s
    networking: %[5]s
`, name, Namespace, replicas, connectionType, o.networking)
	if connectionType == "egress" && len(o.endpoints) > 0 {
		out += "  endpoints:\n" + strings.Join(o.endpoints, "")
	}
	return out
}

// ApplyIngress makes a TailscaleServices.
func (o *Ours) ApplyIngress(ctx context.Context, name string) error {
	return o.lab.apply(ctx, fmt.Sprintf(`apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: %s
  namespace: %s
spec:
  selector:
    matchLabels: {app: %s}
  vipService:
    ports: ["tcp:80"]
    tags: [tag:k8s]
  backends:
  - name: web
    port: 80
`, name, Namespace, oursIngress))
}

// ApplyEgress adds an endpoint to the egress proxies.
func (o *Ours) ApplyEgress(ctx context.Context, name string) error {
	o.endpoints = append(o.endpoints, fmt.Sprintf("  - name: %s\n    tailscaleFQDN: %s\n    port: %d\n", name, o.lab.target(), targetPort))
	return o.lab.apply(ctx, o.proxies(oursEgress, "egress"))
}

// IngressURL is by the service's name.
func (o *Ours) IngressURL(name string) string { return o.lab.ingressURL(name) }

// EgressURL is by the endpoint's Service, whose name status.egressTargets tells.
func (o *Ours) EgressURL(name string) string {
	return egressURL(compose.ServiceName(compose.ChildName(oursEgress, name)))
}

// Controllers are the provider and the functions, without Crossplane itself.
func (o *Ours) Controllers() [][2]string {
	return [][2]string{
		{"crossplane-system", "pkg.crossplane.io/provider"},
		{"crossplane-system", "pkg.crossplane.io/function"},
	}
}

// Proxies of both directions.
func (o *Ours) Proxies() [2]string { return [2]string{Namespace, "gateway.tailscale.com/direction"} }

// IngressPod is the first one.
func (o *Ours) IngressPod() (namespace, name string) { return Namespace, oursIngress + "-ingress-0" }
