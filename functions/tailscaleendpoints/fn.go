// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaleendpoints composes TailscaleEndpoints: proxies, their Machines in the
// tailnet, and the ProxySet by which other objects find them. No secret passes through it.
package tailscaleendpoints

import (
	"cmp"
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Function composes TailscaleEndpoints.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger

	// envoyGateway are the namespaces in which Envoy Gateway runs.
	envoyGateway []string
}

// New returns a function whose egress proxies accept Envoy Gateway's Envoys and the extension in
// these namespaces where a networkPolicy names no clients.
func New(log logging.Logger, envoyGatewayNamespaces []string) *Function {
	return &Function{log: log, envoyGateway: envoyGatewayNamespaces}
}

// RunFunction composes one TailscaleEndpoints.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	log := f.log.WithValues("tag", req.GetMeta().GetTag())
	r := compose.NewRun(req)
	if err := run(r, f.envoyGateway); err != nil {
		log.Info("Cannot compose TailscaleEndpoints", "error", err)
		return r.Fatal(err, conditionTypes...), nil
	}
	log.Debug("Composed TailscaleEndpoints")
	return r.Response(), nil
}

func run(r *compose.Run, envoyGateway []string) error {
	xr := &gatewayv1alpha1.TailscaleEndpoints{}
	if err := r.Object(inputs, xr); err != nil {
		return err
	}
	owner := compose.OwnerOf(xr)
	if owner.Namespace == "" {
		return errors.New("cannot compose proxies for an object without a namespace")
	}
	e := newEndpoints(owner, xr, envoyGateway)
	if err := e.observe(r); err != nil {
		return err
	}
	if r.HasInput() {
		if err := e.checkInput(); err != nil {
			return err
		}
	}

	if err := e.readHealth(r); err != nil {
		return err
	}
	// Whatever is waited for, all is asked for at once.
	reading, err := e.require(r)
	if err != nil {
		return err
	}
	tailnet, v, waiting, err := r.Tailnet(xr.Spec.Tailnet, owner.Namespace)
	if err != nil {
		return err
	}
	if waiting = cmp.Or(waiting, reading); waiting != "" {
		r.SetWaiting(waiting, conditionTypes...)
		return r.CarryOver()
	}
	if v.Accepted {
		v = v.Within(e.asks(v.Grant)...)
	}
	e.judge(v, tailnet)
	p, err := e.planEgress()
	if err != nil {
		return err
	}

	e.setConditions(r, v, p)
	if !v.Accepted {
		r.NotReady()
	}
	if err := r.Status(e.status(p)); err != nil {
		return err
	}
	if v.Reason == meta.ReasonNotGranted {
		// What runs is not harmed, and nothing of what is asked for now reaches it.
		return r.CarryOver()
	}
	return e.desire(r, p)
}
