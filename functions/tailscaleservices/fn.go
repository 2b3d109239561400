// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaleservices composes TailscaleServices: a Tailscale Service, what the selected
// proxies serve for it, and proxies from a template where none match.
//
// A run has three steps. It reads facts: the object, its children, and other objects that
// Crossplane supplies (read.go, grants). It makes a plan of the facts alone (plan.go), for which the
// other packages below answer one question each: selection, presence, succession, ports, attachments
// and conditions. It renders the plan to the response.
package tailscaleservices

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/conditions"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// Function composes TailscaleServices.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
}

// New returns a function.
func New(log logging.Logger) *Function { return &Function{log: log} }

// RunFunction composes one TailscaleServices. An error is in the conditions that every object with a
// Tailscale Service has.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return compose.Respond(f.log, gatewayv1alpha1.TailscaleServicesKind, req, run, conditions.Types(conditions.Features{}, nil)...), nil
}

// run composes the TailscaleServices of a run.
func run(r *compose.Run) error {
	f, err := read(r)
	if err != nil {
		return err
	}
	return plan(f).Render(r)
}
