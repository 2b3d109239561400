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
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
)

// writeRoutes so that those are there that are wanted, and no others. What is refused is
// noted with the wanted routes. A failure with one does not keep the others.
func (c *Controller) writeRoutes(ctx context.Context, v *view, of []*wanted) error {
	routes, policies := map[routeID]client.Object{}, map[types.NamespacedName]*gwapiv1.BackendTLSPolicy{}
	for _, r := range v.generated {
		routes[idOf(r)] = r
	}
	for _, p := range v.policies {
		policies[client.ObjectKeyFromObject(p)] = p
	}
	var failed []error
	for _, w := range of {
		if !w.made {
			continue
		}
		route, policy := routes[w.id()], policies[w.key()]
		delete(routes, w.id())
		if w.kept {
			delete(policies, w.key())
			continue
		}
		if w.tls {
			delete(policies, w.key())
			// The policy comes first: without it the backend is asked in clear.
			if want := tlsPolicy(v.object, w); policy == nil || !alike(want, policy) || !equality.Semantic.DeepEqual(want.Spec, policy.Spec) {
				failed = append(failed, c.write(ctx, w, want, seen(policy)))
			}
		}
		if want := routeOf(v.object, w); w.made && (route == nil || !alike(want, route) || !equality.Semantic.DeepEqual(routeSpec(want), routeSpec(route))) {
			failed = append(failed, c.write(ctx, w, want, seen(route)))
		}
	}
	for _, r := range routes {
		failed = append(failed, c.delete(ctx, r))
	}
	for _, p := range policies {
		failed = append(failed, c.delete(ctx, p))
	}
	return errors.Join(failed...)
}

// routeSpec of a generated route.
func routeSpec(o client.Object) any {
	switch r := o.(type) {
	case *gwapiv1.HTTPRoute:
		return r.Spec
	case *gwapiv1.GRPCRoute:
		return r.Spec
	}
	return nil
}

// alike reports whether an object that is there has the labels that it should.
func alike(want, have client.Object) bool {
	l := maps.Clone(have.GetLabels())
	maps.Copy(l, want.GetLabels())
	return maps.Equal(l, have.GetLabels())
}

// seen is what keep replaces. Nil for nothing.
func seen[T client.Object](o T) *reconcile.Observed {
	var none T
	if client.Object(o) == client.Object(none) {
		return nil
	}
	return &reconcile.Observed{Object: o}
}

// write an object for a wanted route.
func (c *Controller) write(ctx context.Context, w *wanted, o client.Object, have *reconcile.Observed) error {
	u, err := unstructuredOf(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = reconcile.Apply(ctx, c.client, u, have)
	kind := o.GetObjectKind().GroupVersionKind().Kind
	switch {
	case kerrors.IsInvalid(err):
		w.made, w.State, w.Message = false, tailnetv1alpha1.GeneratedRouteRefused, errors.Cause(err).Error()
		return nil
	case kerrors.IsAlreadyExists(err):
		return c.exists(ctx, w, o)
	}
	return errors.Wrapf(err, "cannot write %s %s", kind, w.key())
}

// exists tells whose an object is that is there although the cache does not have it as
// ours.
func (c *Controller) exists(ctx context.Context, w *wanted, o client.Object) error {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if err := c.client.Get(ctx, w.key(), o); err != nil {
		return errors.Wrapf(err, "cannot get %s %s", kind, w.key())
	}
	if isOurs(o) {
		// The cache will tell of it.
		return nil
	}
	w.made, w.State = false, tailnetv1alpha1.GeneratedRouteConflict
	w.Message = kind + " " + w.key().String() + " is there already and was not generated; delete or rename it"
	return nil
}

func (c *Controller) delete(ctx context.Context, o client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return errors.Wrapf(reconcile.Delete(ctx, c.client, &reconcile.Observed{Object: o}), "cannot delete %s", client.ObjectKeyFromObject(o))
}
