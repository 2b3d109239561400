// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// conditionTypes that every run sets.
var conditionTypes = []xpv2.ConditionType{ //nolint:gochecknoglobals // A constant list.
	meta.TypeTailnetAccepted, meta.TypeMachinesReady, meta.TypeStatefulSetsReady,
}

// images of the containers.
type images struct {
	tailscale string
	agent     string
}

// Function composes TailscaleEndpoints.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log    logging.Logger
	images images
}

// RunFunction composes one TailscaleEndpoints.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	log := f.log.WithValues("tag", req.GetMeta().GetTag())
	r := compose.NewRun(req)
	if err := run(r, f.images); err != nil {
		log.Info("Cannot compose TailscaleEndpoints", "error", err)
		return r.Fatal(err, conditionTypes...), nil
	}
	log.Debug("Composed TailscaleEndpoints")
	return r.Response(), nil
}

func run(r *compose.Run, img images) error {
	xr := &gatewayv1alpha1.TailscaleEndpoints{}
	if err := r.Object(inputs, xr); err != nil {
		return err
	}
	owner := compose.OwnerOf(xr)
	if owner.Namespace == "" {
		return errors.New("cannot compose proxies for an object without a namespace")
	}
	g := newGroup(owner, xr, img)
	if err := g.observe(r); err != nil {
		return err
	}
	if r.HasInput() && g.proxySet != nil && g.proxySet.Spec.Tailnet != xr.Spec.Tailnet {
		return errors.Errorf("cannot move proxies from tailnet %q: spec.tailnet of the input is immutable; give the step another name", g.proxySet.Spec.Tailnet)
	}

	tailnet, v, waiting, err := r.Tailnet(xr.Spec.Tailnet, owner.Namespace)
	if err != nil {
		return err
	}
	if waiting != "" {
		r.SetWaiting(waiting, conditionTypes...)
		return r.CarryOver()
	}
	g.judge(v, tailnet)

	for _, c := range []compose.Condition{accepted(v), g.machinesReady(), g.statefulSetsReady()} {
		r.SetCondition(c)
	}
	if !v.Accepted {
		r.NotReady()
	}
	if err := r.Status(g.status()); err != nil {
		return err
	}
	return g.desire(r)
}

func accepted(v compose.TailnetVerdict) compose.Condition {
	c := compose.Condition{Type: meta.TypeTailnetAccepted, Status: compose.False, Reason: v.Reason, Message: v.Message}
	if v.Accepted {
		c.Status = compose.True
	}
	return c
}
