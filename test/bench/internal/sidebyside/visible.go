// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// sharedGateway is the name of a Gateway, of the TailscaleGateway that shares it, and of
// its Tailscale Service.
const sharedGateway = "visible"

// ShareGateway installs Envoy Gateway with our extension, and shares a Gateway with the
// tailnet that the side is in.
func (o *Ours) ShareGateway(ctx context.Context) error {
	if _, err := run(ctx, nil, o.lab.demo, "gateways", "--version="+o.lab.version); err != nil {
		return err
	}
	err := o.lab.apply(ctx, fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  gatewayClassName: envoy
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  gatewayRef: {name: %[1]s}
  publishBackends: None
  tailnets:
  - name: bench
    proxy: {replicas: %[3]d, networking: %[4]s}
    vipService: {tags: [tag:k8s]}
`, sharedGateway, Namespace, replicas, o.networking))
	if err != nil {
		return err
	}
	return o.lab.until(ctx, "the shared Gateway", func(ctx context.Context) error {
		return o.lab.condition(ctx, "tailscalegateways/"+sharedGateway, "GatewayVIPReady")
	})
}

// Visible makes routes of the shared Gateway, one after the other, and tells how long each
// took from kubectl apply until it answered in the tailnet. One more comes before them, by
// which clients and proxies find their ways.
func (o *Ours) Visible(ctx context.Context, n int) ([]time.Duration, error) {
	var out []time.Duration
	for i := range n + 1 {
		path := fmt.Sprintf("route-%d", i)
		took, err := o.lab.first(ctx, "tailnet", o.lab.ingressURL(sharedGateway)+path, func() error { return o.lab.apply(ctx, routeAt(path)) })
		if err != nil {
			return out, errors.Wrapf(err, "route %q does not answer", path)
		}
		if i > 0 {
			out = append(out, took)
		}
	}
	return out, nil
}

// routeAt a path of the shared Gateway.
func routeAt(path string) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  parentRefs: [{name: %[3]s}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /%[1]s}}]
    backendRefs: [{name: web, port: 80}]
`, path, Namespace, sharedGateway)
}
