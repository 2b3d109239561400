// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
)

// writeRoutes writes the desired routes and deletes all others. It records refusals by the API
// server in the desired routes. An error with one route does not affect the others.
func (wr *writer) writeRoutes(ctx context.Context, v *view, desired []*routes.Desired) error {
	existing, policies := map[routes.ID]client.Object{}, map[types.NamespacedName]*gwapiv1.BackendTLSPolicy{}
	for _, r := range v.Generated {
		existing[routes.IDOf(r)] = r
	}
	for _, p := range v.policies {
		policies[client.ObjectKeyFromObject(p)] = p
	}
	var failed []error
	for _, w := range desired {
		if !w.Generate {
			continue
		}
		route, policy := existing[w.ID()], policies[w.Key()]
		delete(existing, w.ID())
		if w.Retained {
			delete(policies, w.Key())
			continue
		}
		if w.TLS {
			delete(policies, w.Key())
			// The policy comes first: without it Envoy sends requests without TLS.
			if want := routes.NewTLSPolicy(v.Object, w); policy == nil || !hasLabels(want, policy) || !equality.Semantic.DeepEqual(want.Spec, policy.Spec) {
				if err := wr.write(ctx, w, want, observed(policy)); err != nil {
					failed = append(failed, err)
					continue
				}
			}
			if !w.Generate && policy == nil && route != nil {
				existing[w.ID()] = route
			}
		}
		if want := routes.New(v.Object, w); w.Generate && (route == nil || !hasLabels(want, route) || !equality.Semantic.DeepEqual(routeSpec(want), routeSpec(route))) {
			failed = append(failed, wr.write(ctx, w, want, observed(route)))
		}
	}
	for _, r := range existing {
		failed = append(failed, wr.delete(ctx, r))
	}
	for _, p := range policies {
		failed = append(failed, wr.delete(ctx, p))
	}
	return errors.Join(failed...)
}

// routeSpec returns the spec of a generated route.
func routeSpec(o client.Object) any {
	switch r := o.(type) {
	case *gwapiv1.HTTPRoute:
		return r.Spec
	case *gwapiv1.GRPCRoute:
		return r.Spec
	}
	return nil
}

// hasLabels reports whether an existing object has the desired labels.
func hasLabels(want, existing client.Object) bool {
	l := maps.Clone(existing.GetLabels())
	maps.Copy(l, want.GetLabels())
	return maps.Equal(l, existing.GetLabels())
}

// observed returns the object that a write replaces, and nil if there is none.
func observed[T client.Object](o T) *reconcile.Observed {
	var none T
	if client.Object(o) == client.Object(none) {
		return nil
	}
	return &reconcile.Observed{Object: o}
}

// write writes an object of a desired route.
func (wr *writer) write(ctx context.Context, w *routes.Desired, o client.Object, existing *reconcile.Observed) error {
	u, err := unstructuredOf(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = reconcile.Apply(ctx, wr.client, u, existing)
	kind := o.GetObjectKind().GroupVersionKind().Kind
	switch {
	case kerrors.IsInvalid(err):
		w.Generate, w.State, w.Message = false, tailnetv1alpha1.GeneratedRouteRefused, errors.Cause(err).Error()
		return nil
	case kerrors.IsAlreadyExists(err):
		return wr.exists(ctx, w, o)
	}
	return errors.Wrapf(err, "cannot write %s %s", kind, w.Key())
}

// exists handles an existing object that is not in the cache of generated objects: an object of
// another owner is a conflict.
func (wr *writer) exists(ctx context.Context, w *routes.Desired, o client.Object) error {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if err := wr.client.Get(ctx, w.Key(), o); err != nil {
		return errors.Wrapf(err, "cannot get %s %s", kind, w.Key())
	}
	if routes.IsManaged(o) {
		// The cache will have it soon.
		return nil
	}
	w.Generate, w.State = false, tailnetv1alpha1.GeneratedRouteConflict
	w.Message = kind + " " + w.Key().String() + " already exists and was not generated; delete or rename it"
	return nil
}

func (wr *writer) delete(ctx context.Context, o client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return errors.Wrapf(reconcile.Delete(ctx, wr.client, &reconcile.Observed{Object: o}), "cannot delete %s", client.ObjectKeyFromObject(o))
}
