// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaletailnet composes TailscaleTailnets: the provider config of a tailnet, and the
// managed resource that observes it. It never sees a credential.
package tailscaletailnet

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Resource names of children.
const (
	nameConfig  = "provider-config"
	nameTailnet = "tailnet"
)

// Function composes TailscaleTailnets.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
}

// New returns a function.
func New(log logging.Logger) *Function { return &Function{log: log} }

// RunFunction composes one TailscaleTailnet.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	log := f.log.WithValues("tag", req.GetMeta().GetTag())
	r := compose.NewRun(req)
	if err := run(r); err != nil {
		log.Info("Cannot compose TailscaleTailnet", "error", err)
		return r.Fatal(err, meta.TypeAuthenticated), nil
	}
	log.Debug("Composed TailscaleTailnet")
	return r.Response(), nil
}

// requireKubeSystem is the namespace whose UID tells clusters apart.
func requireKubeSystem() compose.Requirement {
	return compose.Requirement{Key: "kube-system", APIVersion: "v1", Kind: "Namespace", Name: "kube-system"}
}

func run(r *compose.Run) error {
	xr := &gatewayv1alpha1.TailscaleTailnet{}
	if err := r.Object(inputs, xr); err != nil {
		return err
	}
	if xr.GetNamespace() != "" {
		return errors.New("cannot compose a tailnet for a composite in a namespace, or with a claim: its provider config is cluster-scoped")
	}
	config := &tailnetv1alpha1.ClusterProviderConfig{}
	if _, err := r.Observed(nameConfig, config); err != nil {
		return err
	}
	tailnet := &tailnetv1alpha1.Tailnet{}
	if _, err := r.Observed(nameTailnet, tailnet); err != nil {
		return err
	}
	if have, want := tailnet.GetNamespace(), namespace(xr.Spec); r.HasInput() && have != "" && have != want {
		return errors.Errorf("cannot move from namespace %q to %q: the namespace of the input's credential is immutable; give the step another name", have, want)
	}

	// A provider config keeps the id that it was made with when the namespace
	// cannot be read any more.
	id := config.Spec.ClusterID
	if xr.Spec.ClusterID != "" {
		id = xr.Spec.ClusterID
	} else {
		r.Require(requireKubeSystem())
		found, resolved, err := compose.Required[corev1.Namespace](r, requireKubeSystem())
		if err != nil {
			return err
		}
		if !resolved {
			r.SetWaiting("Waiting for Crossplane to read namespace kube-system", meta.TypeAuthenticated)
			return r.CarryOver()
		}
		if len(found) > 0 {
			id = string(found[0].GetUID())
		}
	}

	if err := r.Status(status(tailnet, id)); err != nil {
		return err
	}
	if id == "" {
		r.SetCondition(noClusterID())
		r.NotReady()
		return r.CarryOver()
	}
	r.SetCondition(authenticated(tailnet))
	// A config has no state of its own: the Tailnet reports whether it works.
	if err := r.Desire(nameConfig, composeConfig(xr, id), true); err != nil {
		return err
	}
	if n := tailnet.GetNamespace(); n != "" && n != namespace(xr.Spec) {
		// It must be deleted there before it is made beside the new credential,
		// else Crossplane makes the one and forgets the other.
		r.NotReady()
		return nil
	}
	return r.Desire(nameTailnet, composeTailnet(xr), ready(tailnet))
}
