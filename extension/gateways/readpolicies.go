// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/protect"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// publishesUnprotected reports whether only backends without a policy are published.
func publishesUnprotected(o *gatewayv1alpha1.TailscaleGateway) bool {
	publishes := o.Spec.PublishBackends == "" || o.Spec.PublishBackends == gatewayv1alpha1.PublishBackendsUnprotected
	return publishes && o.Spec.RouteSharing != gatewayv1alpha1.RouteSharingNone
}

// readPolicies reads the policies that may protect backends, if only unprotected backends are
// published.
func (rd *reader) readPolicies(ctx context.Context, v *view) error {
	if !publishesUnprotected(v.Object) {
		return nil
	}
	if rd.has(kindRoutePolicy) && v.Granted() {
		l := &gatewayv1alpha1.TailscaleRoutePolicyList{}
		if err := rd.list(ctx, l); err != nil {
			return errors.Wrap(err, "cannot list TailscaleRoutePolicies")
		}
		for i := range l.Items {
			v.guards = append(v.guards, protect.RoutePolicyGuard(&l.Items[i]))
		}
	}
	for _, kind := range parse.PolicyKinds() {
		ok, err := rd.readPolicyKind(ctx, v, kind)
		if err != nil || !ok {
			return err
		}
	}
	v.policiesKnown = true
	return nil
}

// readPolicyKind reads the policies of Envoy Gateway of a kind. It returns false if they are not
// known.
func (rd *reader) readPolicyKind(ctx context.Context, v *view, kind string) (bool, error) {
	ok, err := rd.hasPolicies(ctx, kind)
	if err != nil || !ok {
		return false, err
	}
	if !v.Granted() {
		return true, nil
	}
	l := parse.NewPolicies(kind)
	if err := rd.list(ctx, l); err != nil {
		return false, errors.Wrapf(err, "cannot list objects of kind %s", kind)
	}
	for i := range l.Items {
		if !parse.Protects(&l.Items[i]) {
			continue
		}
		g, err := protect.PolicyGuard(&l.Items[i])
		if err != nil {
			// The targets of the policy are unknown, so no backend is known to be unprotected.
			rd.log.Info("Cannot read a policy; no backends are published", "error", err)
			return false, nil
		}
		v.guards = append(v.guards, g)
	}
	return true, nil
}

// hasPolicies reports whether the cache has all policies of Envoy Gateway of a kind. It returns
// false if the kind does not exist or the extension may not read it, because the cache would never
// be complete. While the cache is still filling it returns an error, so that no backend is
// withdrawn.
func (rd *reader) hasPolicies(ctx context.Context, kind string) (bool, error) {
	if !rd.has(kind) {
		return false, nil
	}
	if rd.policiesSynced(kind) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := []client.ListOption{client.Limit(1)}
	if rd.options.Gateway != nil {
		o = append(o, client.InNamespace(rd.options.Gateway.Namespace))
	}
	err := rd.server.List(ctx, parse.NewPolicies(kind), o...)
	switch {
	case kerrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, errors.Wrapf(err, "cannot list objects of kind %s", kind)
	}
	return false, errors.Errorf("the objects of kind %s have not been read yet", kind)
}
