// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// A Sharing is the routeSharing mode of a TailscaleGateway.
type Sharing string

// Modes of routeSharing.
const (
	SharedGateway Sharing = "Gateway"
	SharedRoutes  Sharing = "Route"
)

// gateway returns the name of a Gateway with this mode, and of its TailscaleGateway.
func (s Sharing) gateway() string {
	if s == SharedRoutes {
		return "routes"
	}
	return "visible"
}

// A Change has the times from kubectl apply until a route answered in the tailnet, and from kubectl
// delete until it stopped.
type Change struct {
	Visible, Removed time.Duration
}

// InstallGateways installs Envoy Gateway with the extension.
func (o *Ours) InstallGateways(ctx context.Context) error {
	_, err := run(ctx, nil, o.lab.demo, "gateways", "--version="+o.lab.version)
	return err
}

// Share shares a Gateway's routes with the side's tailnet.
func (o *Ours) Share(ctx context.Context, s Sharing) error {
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
  routeSharing: %[3]s
  publishBackends: None
  tailnets:
  - name: bench
    proxy: {replicas: %[4]d, networking: %[5]s}
    vipService: {tags: [tag:k8s]}
`, s.gateway(), Namespace, s, replicas, o.networking))
	if err != nil {
		return err
	}
	return o.lab.until(ctx, "the shared Gateway", func(ctx context.Context) error {
		return o.lab.condition(ctx, "tailscalegateways/"+s.gateway(), "Ready")
	})
}

// Changes creates routes of a shared Gateway and deletes them, one after the other. One more route
// before them lets clients and proxies find their paths.
func (o *Ours) Changes(ctx context.Context, s Sharing, n int) ([]Change, error) {
	var out []Change
	for i := range n + 1 {
		c, err := o.change(ctx, s, fmt.Sprintf("route-%d", i))
		if err != nil {
			return out, errors.Wrapf(err, "route %d of Gateway %q", i, s.gateway())
		}
		if i > 0 {
			out = append(out, c)
		}
	}
	return out, nil
}

func (o *Ours) change(ctx context.Context, s Sharing, name string) (Change, error) {
	url := o.lab.ingressURL(s.gateway()) + name
	if s == SharedRoutes {
		url = o.lab.ingressURL("route-"+name+"-"+Namespace) + name
	}
	// The load starts before the route is applied, so that its start does not count.
	t, err := o.lab.start(ctx, "tailnet", url, "--gone", "--new-connections", "--timeout=1s", "--for="+upLimit.String())
	if err != nil {
		return Change{}, err
	}
	applied := time.Now()
	if err := o.lab.apply(ctx, routeAt(s, name)); err != nil {
		return Change{}, errors.Join(err, t.Stop())
	}
	ended := make(chan struct{})
	var r load.Report
	go func() {
		r, err = t.Wait()
		close(ended)
	}()
	select {
	case <-t.Begun():
	case <-ended:
		return Change{}, err
	}
	deleted := time.Now()
	_, failed := o.lab.kubectl(ctx, "delete", "--namespace="+Namespace, "httproute", name, "--wait=false")
	if failed != nil {
		failed = errors.Join(failed, t.Stop())
	}
	<-ended
	return Change{Visible: r.First.Sub(applied), Removed: max(r.Last.Sub(deleted), 0)}, errors.Join(failed, err)
}

// routeAt returns a route at a path of a shared Gateway.
func routeAt(s Sharing, path string) string {
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  parentRefs: [{name: %[3]s}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /%[1]s}}]
    backendRefs: [{name: web, port: 80}]
`, path, Namespace, s.gateway())
}
