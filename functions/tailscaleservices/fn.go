// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaleservices composes TailscaleServices: a Tailscale Service, what the selected
// proxies serve for it, and proxies from a template where none match.
package tailscaleservices

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// conditionTypes that every run sets. Conflict is set where the service is
// shared, and DiscoverySuccessful where services are to be listed.
var conditionTypes = []xpv2.ConditionType{ //nolint:gochecknoglobals // A constant list.
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
	log := f.log.WithValues("tag", req.GetMeta().GetTag())
	r := compose.NewRun(req)
	if err := run(r); err != nil {
		log.Info("Cannot compose TailscaleServices", "error", err)
		return r.Fatal(err, conditionTypes...), nil
	}
	log.Debug("Composed TailscaleServices")
	return r.Response(), nil
}

// requireProxySets is every ProxySet of a namespace. They have no status, so
// proxies that come and go call nothing.
func requireProxySets(namespace string) compose.Requirement {
	return compose.Requirement{
		Key:        "proxy-sets",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ProxySetKind,
		Namespace:  namespace,
		Labels:     map[string]string{meta.LabelProxySet: "true"},
	}
}

func run(r *compose.Run) error {
	xr := &gatewayv1alpha1.TailscaleServices{}
	if err := r.Object(inputs, xr); err != nil {
		return err
	}
	owner := compose.OwnerOf(xr)
	if owner.Namespace == "" {
		return errors.New("cannot compose a service for an object without a namespace")
	}
	s := &service{owner: owner, xr: xr, step: r.HasInput()}
	types := slices.Clone(conditionTypes)
	if s.shared() {
		types = append(types, meta.TypeConflict)
	}
	if s.discovers() {
		types = append(types, meta.TypeDiscoverySuccessful)
	}
	if err := s.observe(r); err != nil {
		return err
	}
	if r.HasInput() {
		if err := s.checkInput(); err != nil {
			return err
		}
	}

	if err := s.readHealth(r); err != nil {
		return err
	}
	filled, err := s.fill(r)
	if err != nil {
		return err
	}
	if !s.publishes() {
		return s.runForRoutes(r, filled)
	}
	need := requireProxySets(owner.Namespace)
	r.Require(need)
	sets, resolved, err := compose.Required[tailnetv1alpha1.ProxySet](r, need)
	if err != nil {
		return err
	}
	looked, err := s.requireGateways(r)
	if err != nil {
		return err
	}
	if !resolved || !looked || !filled {
		r.SetWaiting("Waiting for Crossplane to read the ProxySets, TailscaleGateways and the Service", types...)
		return r.CarryOver()
	}
	s.sel = selectEndpoints(owner, xr, sets)
	if err := s.readSuccession(r, sets); err != nil {
		return err
	}

	name := s.tailnet()
	if name != "" {
		config, v, waiting, err := r.Tailnet(name, owner.Namespace)
		if err != nil {
			return err
		}
		if waiting != "" {
			r.SetWaiting(waiting, types...)
			return r.CarryOver()
		}
		if v.Accepted {
			v = v.Within(s.asks(v.Grant)...)
		}
		s.judge(v, config)
	}

	s.assign()
	for _, c := range s.conditions() {
		r.SetCondition(c)
	}
	if s.problem() || !s.answers() {
		r.NotReady()
	}
	if err := r.Status(s.status()); err != nil {
		return err
	}
	if s.verdict.Reason == meta.ReasonNotGranted {
		// What runs is not harmed, and nothing of what is asked for now reaches it.
		return r.CarryOver()
	}
	return s.desire(r)
}
