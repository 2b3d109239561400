// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package functions serves the composition functions of all kinds as one.
package functions

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleproxygroup"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaletailnet"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// Options configure the functions of all kinds.
type Options struct {
	// EnvoyGatewayNamespaces are the namespaces in which Envoy Gateway runs.
	EnvoyGatewayNamespaces []string

	// ExtensionImage is the image of a TailscaleGateway's separate extension, unless the
	// TailscaleGateway sets one.
	ExtensionImage string
}

// A Router runs, for each step, the function of the kind that the step composes.
type Router struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	kinds map[string]fnv1.FunctionRunnerServiceServer
	log   logging.Logger
}

// New returns a Router of all kinds.
func New(log logging.Logger, o Options) *Router {
	return &Router{log: log, kinds: map[string]fnv1.FunctionRunnerServiceServer{
		"TailscaleTailnet":    tailscaletailnet.New(log),
		"TailscaleEndpoints":  tailscaleendpoints.New(log, o.EnvoyGatewayNamespaces),
		"TailscaleServices":   tailscaleservices.New(log),
		"TailscaleProxyGroup": tailscaleproxygroup.New(log),
		"TailscaleGateway":    tailscalegateway.New(log, o.EnvoyGatewayNamespaces, o.ExtensionImage),
	}}
}

// RunFunction runs the function of the kind of the step's input, or of the composite if the
// step has none. It returns a fatal result for any other kind.
func (r *Router) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	kind := compose.KindOf(req)
	fn, ok := r.kinds[kind]
	if !ok {
		err := errors.Errorf("cannot compose kind %q: give the step an input of kind KINDInput, or use a composite of kind KIND or XKIND, where KIND is one of %s",
			kind, strings.Join(slices.Sorted(maps.Keys(r.kinds)), ", "))
		r.log.Info("Cannot compose", "error", err, "tag", req.GetMeta().GetTag())
		return compose.NewRun(req).Fatal(err), nil
	}
	return fn.RunFunction(ctx, req)
}
