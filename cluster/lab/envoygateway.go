// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/images"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tools"
)

// gatewayClass is the GatewayClass of Envoy Gateway, whose chart contains none.
const gatewayClass = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata:
  name: envoy
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
`

type envoyGatewayCmd struct {
	Values    []string      `short:"f" type:"existingfile" help:"File of Helm values for Envoy Gateway's chart. May be given more than once."`
	Release   string        `default:"eg" help:"Name of the Helm release. A release with another name is an additional one, without a GatewayClass."`
	Namespace string        `default:"envoy-gateway-system" help:"Namespace of the release."`
	Timeout   time.Duration `default:"5m" help:"How long to wait until it is ready, after the build."`
}

// Run builds Envoy Gateway and installs it on the cluster.
func (c *envoyGatewayCmd) Run(r runtime) error {
	dir, err := c.prepare(r)
	if err != nil {
		return err
	}
	// Proxies run real Envoy from the lab's registry, which has no image with the
	// digest that is Envoy Gateway's default.
	args := []string{
		"upgrade", "--install", c.Release, dir, "--namespace", c.Namespace, "--create-namespace",
		"--set", "global.images.envoyProxy.image=" + images.EnvoyName(), "--wait", "--timeout", c.Timeout.String(),
	}
	for _, f := range c.Values {
		args = append(args, "--values", f)
	}
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return err
	}
	if st.IPFamily == plan.IPv6 {
		// Otherwise Envoy listens only on IPv4, also for kubelet's probes (Envoy Gateway 1.9.1,
		// internal/xds/translator/listener_ready.go).
		args = append(args, "--set", "config.envoyGateway.envoyProxy.ipFamily=IPv6")
	}
	if err := quiet(r, "", "helm", args...); err != nil {
		return err
	}
	fmt.Printf("%s runs in namespace %s\n", images.EnvoyGatewayName(), c.Namespace)
	if c.Release != "eg" {
		return nil
	}
	if err := quiet(r, gatewayClass, "kubectl", "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	if err := quiet(r, "", "kubectl", "wait", "gatewayclass/envoy", "--for=condition=Accepted", "--timeout="+c.Timeout.String()); err != nil {
		return err
	}
	fmt.Println("use gatewayClassName: envoy in Gateways")
	return nil
}

// prepare pushes the images and returns the chart's folder.
func (c *envoyGatewayCmd) prepare(r runtime) (string, error) {
	unlock, err := lock(r)
	if err != nil {
		return "", err
	}
	defer unlock()
	b := builder(r.paths)
	if err := ensure(r, b, tools.EnvoyGateway, tools.Envoy); err != nil {
		return "", err
	}
	bin, err := b.Binaries()
	if err != nil {
		return "", err
	}
	control, proxy, err := images.EnvoyGateway(bin)
	if err != nil {
		return "", err
	}
	if err := pushAll(r, control, proxy); err != nil {
		return "", err
	}
	return chart(r, tools.EnvoyGateway)
}
