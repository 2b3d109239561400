// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscalegateway composes TailscaleGateways. It finds the Service that Envoy Gateway
// made in front of a Gateway, and the listeners that the Service serves. For each tailnet it
// composes TailscaleEndpoints, and TailscaleServices for what the tailnet should reach; their own
// functions compose the rest. The extension reports which routes there are.
//
// A run has three steps. It reads facts: the object, its children, and other objects that
// Crossplane supplies (read.go). It makes a plan of the facts alone (plan.go), which consists of the
// plans of the packages below: tailnets, services, dns and extensionpods. Each is a function of its
// facts, which include the plans before it. It renders the plan to the response.
package tailscalegateway

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Function composes TailscaleGateways.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
	settings
}

// New returns a function that uses a Gateway's Service from these namespaces, or from the Gateway's
// namespace. Extensions without an image use extensionImage.
func New(log logging.Logger, envoyGatewayNamespaces []string, extensionImage string) *Function {
	return &Function{log: log, settings: settings{extensionImage: extensionImage, envoyGateway: envoyGatewayNamespaces}}
}

// RunFunction composes one TailscaleGateway.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return compose.Respond(f.log, gatewayv1alpha1.TailscaleGatewayKind, req, func(r *compose.Run) error { return run(r, f.settings) }, meta.TypeGatewayValid), nil
}

// run composes the TailscaleGateway of a run.
func run(r *compose.Run, s settings) error {
	f, err := read(r, s)
	if err != nil {
		return err
	}
	p, err := plan(f)
	if err != nil {
		return err
	}
	return p.Render(r)
}
