// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaleendpoints composes TailscaleEndpoints: proxies, their Machines in the
// tailnet, and the ProxySet by which other objects find them. No secret passes through it.
//
// A run has three steps. It reads facts: the object, its children, and other objects that
// Crossplane supplies (read.go). It makes a plan of the facts alone (plan.go), for which the other
// packages below answer one question each: proxies, discovery, targets and forwarding. It renders the
// plan to the response.
package tailscaleendpoints

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// Function composes TailscaleEndpoints.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger

	// envoyGateway are the namespaces in which Envoy Gateway runs.
	envoyGateway []string
}

// New returns a function. Its egress proxies accept Envoy Gateway's Envoys and the extension in
// these namespaces if a networkPolicy names no clients.
func New(log logging.Logger, envoyGatewayNamespaces []string) *Function {
	return &Function{log: log, envoyGateway: envoyGatewayNamespaces}
}

// RunFunction composes one TailscaleEndpoints.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return compose.Respond(f.log, gatewayv1alpha1.TailscaleEndpointsKind, req, func(r *compose.Run) error { return run(r, f.envoyGateway) }, alwaysTypes...), nil
}

// run composes the TailscaleEndpoints of a run.
func run(r *compose.Run, envoyGateway []string) error {
	f, err := read(r, envoyGateway)
	if err != nil {
		return err
	}
	p, err := plan(f)
	if err != nil {
		return err
	}
	return p.Render(r)
}
