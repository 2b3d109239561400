// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaleservices composes TailscaleServices: a Tailscale Service, what the selected
// proxies serve for it, and proxies from a template where none match.
//
// A run has three steps. It reads facts: the object, its children, and other objects that
// Crossplane supplies (read.go). It makes a plan of the facts alone (plan.go), for which the packages
// below answer one question each: selection, presence, succession, ports, attachments and conditions.
// It renders the plan to the response.
package tailscaleservices

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// conditionTypes are the types of conditions that every run sets. Conflict is set if the service is
// shared, and DiscoverySuccessful if services are listed.
var conditionTypes = []xpv2.ConditionType{
	meta.TypeAccepted, meta.TypeEndpointsSelected, meta.TypeVIPServiceReady, meta.TypeAdvertised, meta.TypeApproved,
}

// Function composes TailscaleServices.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
}

// New returns a function.
func New(log logging.Logger) *Function { return &Function{log: log} }

// RunFunction composes one TailscaleServices.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return compose.Respond(f.log, gatewayv1alpha1.TailscaleServicesKind, req, run, conditionTypes...), nil
}

// run composes the TailscaleServices of a run.
func run(r *compose.Run) error {
	f, err := read(r)
	if err != nil {
		return err
	}
	return plan(f).Render(r)
}
