// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailscaleproxygroup composes TailscaleProxyGroups: a TailscaleEndpoints for each
// tailnet and zone, and the sum of their devices. The function of TailscaleEndpoints composes
// the proxies.
package tailscaleproxygroup

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// inputs is the schema of this function's input, in pipelines of other composites.
var inputs = compose.NewInputSchema(gatewayv1alpha1.TailscaleProxyGroupKind)

// Function composes TailscaleProxyGroups.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
}

// New returns a function.
func New(log logging.Logger) *Function { return &Function{log: log} }

// RunFunction composes one TailscaleProxyGroup.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return compose.Respond(f.log, gatewayv1alpha1.TailscaleProxyGroupKind, req, run, meta.TypeProxyGroupReady), nil
}

// run composes the TailscaleProxyGroup of a run: it reads facts, makes a plan of them, and renders
// it.
func run(r *compose.Run) error {
	f, err := read(r)
	if err != nil {
		return err
	}
	p, err := plan(f)
	if err != nil {
		return err
	}
	return p.Render(r)
}

// facts are all that a plan depends on.
type facts struct {
	owner compose.Owner
	spec  gatewayv1alpha1.TailscaleProxyGroupSpec

	// observed children, by resource name.
	observed map[string]*gatewayv1alpha1.TailscaleEndpoints
}

// read returns the facts of a run. It requires nothing: each TailscaleEndpoints says itself
// whether it may use its tailnet.
func read(r *compose.Run) (facts, error) {
	xr := &gatewayv1alpha1.TailscaleProxyGroup{}
	if err := r.Object(inputs, xr); err != nil {
		return facts{}, err
	}
	f := facts{owner: compose.OwnerOf(xr), spec: xr.Spec, observed: map[string]*gatewayv1alpha1.TailscaleEndpoints{}}
	if f.owner.Namespace == "" {
		return f, errors.New("cannot compose proxies for an object without a namespace")
	}
	for _, name := range r.ObservedNames() {
		if !strings.HasPrefix(name, prefixEndpoints) {
			continue
		}
		e, err := compose.ObservedChild[gatewayv1alpha1.TailscaleEndpoints](r, name)
		if err != nil {
			return f, err
		}
		f.observed[name] = e
	}
	if r.HasInput() {
		return f, f.checkInput()
	}
	return f, nil
}

// checkInput returns an error for a change that the API server refuses in a TailscaleProxyGroup.
func (f facts) checkInput() error {
	for _, name := range slices.Sorted(maps.Keys(f.observed)) {
		if old := f.observed[name].Spec.Proxy.ConnectionType; old != f.spec.Type {
			return errors.Errorf("cannot turn proxies of type %s into %s: spec.type of the input is immutable; give the step another name", old, f.spec.Type)
		}
	}
	return nil
}

// plan returns what the facts ask of the object and its children. It depends on nothing else.
func plan(f facts) (compose.Plan, error) {
	g := newGroup(f)
	s, err := g.status()
	p := g.children()
	p.Conditions, p.Status = []compose.Condition{g.ready()}, s
	return p, err
}
