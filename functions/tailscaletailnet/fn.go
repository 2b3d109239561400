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

// inputs is the schema of this function's input, in pipelines of other composites.
var inputs = compose.NewInputSchema(gatewayv1alpha1.TailscaleTailnetKind)

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
	return compose.Respond(f.log, gatewayv1alpha1.TailscaleTailnetKind, req, run, meta.TypeAuthenticated), nil
}

// run composes the TailscaleTailnet of a run: it reads facts, makes a plan of them, and renders it.
func run(r *compose.Run) error {
	f, err := read(r)
	if err != nil {
		return err
	}
	return plan(f).Render(r)
}

// facts are all inputs of a plan.
type facts struct {
	name string
	spec gatewayv1alpha1.TailscaleTailnetSpec

	// tailnet is the observed Tailnet. It is empty if there is none.
	tailnet *tailnetv1alpha1.Tailnet

	// clusterID is empty if it is not known.
	clusterID string

	// waiting is a message for the user about objects that Crossplane has not read yet. It is empty
	// when the facts are complete.
	waiting string
}

// read returns the facts of a run.
func read(r *compose.Run) (facts, error) {
	xr := &gatewayv1alpha1.TailscaleTailnet{}
	if err := r.Object(inputs, xr); err != nil {
		return facts{}, err
	}
	f := facts{name: xr.GetName(), spec: xr.Spec, tailnet: &tailnetv1alpha1.Tailnet{}}
	if xr.GetNamespace() != "" {
		return f, errors.New("cannot compose a tailnet for a composite in a namespace, or with a claim: its provider config is cluster-scoped")
	}
	config := &tailnetv1alpha1.ClusterProviderConfig{}
	if _, err := r.Observed(nameConfig, config); err != nil {
		return f, err
	}
	if _, err := r.Observed(nameTailnet, f.tailnet); err != nil {
		return f, err
	}
	if current, want := f.tailnet.GetNamespace(), namespace(f.spec); r.HasInput() && current != "" && current != want {
		return f, errors.Errorf("cannot move from namespace %q to %q: the namespace of the input's credential is immutable; give the step another name", current, want)
	}
	if f.clusterID = f.spec.ClusterID; f.clusterID != "" {
		return f, nil
	}
	// A provider config keeps its ID when Crossplane can no longer read the namespace.
	f.clusterID = config.Spec.ClusterID
	found, resolved, err := compose.Lookup[corev1.Namespace](r, requireKubeSystem())
	if err != nil {
		return f, err
	}
	if !resolved {
		f.waiting = "Waiting for Crossplane to read namespace kube-system"
	}
	if len(found) > 0 {
		f.clusterID = string(found[0].GetUID())
	}
	return f, nil
}

// requireKubeSystem returns the requirement of the namespace whose UID identifies the cluster.
func requireKubeSystem() compose.Requirement {
	return compose.Requirement{Key: "kube-system", APIVersion: "v1", Kind: "Namespace", Name: "kube-system"}
}

// plan returns the desired state of the object and its children. It depends only on the facts.
func plan(f facts) compose.Plan {
	if f.waiting != "" {
		return compose.Wait(f.waiting, meta.TypeAuthenticated)
	}
	p := compose.Plan{Status: status(f.tailnet, f.clusterID)}
	if f.clusterID == "" {
		p.Conditions, p.NotReady, p.KeepExisting = []compose.Condition{noClusterID()}, true, true
		return p
	}
	p.Conditions = []compose.Condition{authenticated(f.tailnet)}
	// A config has no state: the Tailnet reports whether it works.
	p.Children = []compose.Child{{Name: nameConfig, Object: composeConfig(f), Ready: true}}
	if n := f.tailnet.GetNamespace(); n != "" && n != namespace(f.spec) {
		// If Crossplane composed a Tailnet in the new namespace, it would forget the one in the old
		// namespace, so that is deleted first.
		p.NotReady = true
		return p
	}
	p.Children = append(p.Children, compose.Child{Name: nameTailnet, Object: composeTailnet(f), Ready: ready(f.tailnet)})
	return p
}
