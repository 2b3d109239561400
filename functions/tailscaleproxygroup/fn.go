// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaleproxygroup composes TailscaleProxyGroups: a TailscaleEndpoints for each
// tailnet and zone, and the sum of their devices. The function of TailscaleEndpoints composes
// the proxies.
package tailscaleproxygroup

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Function composes TailscaleProxyGroups.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
}

// New returns a function.
func New(log logging.Logger) *Function { return &Function{log: log} }

// RunFunction composes one TailscaleProxyGroup.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	log := f.log.WithValues("tag", req.GetMeta().GetTag())
	r := compose.NewRun(req)
	if err := run(r); err != nil {
		log.Info("Cannot compose TailscaleProxyGroup", "error", err)
		return r.Fatal(err, meta.TypeProxyGroupReady), nil
	}
	log.Debug("Composed TailscaleProxyGroup")
	return r.Response(), nil
}

// run requires nothing: whether a tailnet may be used is each TailscaleEndpoints'
// own to say.
func run(r *compose.Run) error {
	xr := &gatewayv1alpha1.TailscaleProxyGroup{}
	if err := r.Object(inputs, xr); err != nil {
		return err
	}
	owner := compose.OwnerOf(xr)
	if owner.Namespace == "" {
		return errors.New("cannot compose proxies for an object without a namespace")
	}
	g := newGroup(owner, xr)
	if err := g.observe(r); err != nil {
		return err
	}
	if r.HasInput() {
		if err := g.checkInput(); err != nil {
			return err
		}
	}
	r.SetCondition(g.ready())
	s, err := g.status()
	if err != nil {
		return err
	}
	if err := r.Status(s); err != nil {
		return err
	}
	return g.desire(r)
}
