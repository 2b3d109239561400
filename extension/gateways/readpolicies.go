// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// publishesUnprotected reports whether only backends without a policy are published.
func publishesUnprotected(o *gatewayv1alpha1.TailscaleGateway) bool {
	publishes := o.Spec.PublishBackends == "" || o.Spec.PublishBackends == gatewayv1alpha1.PublishBackendsUnprotected
	return publishes && o.Spec.RouteSharing != gatewayv1alpha1.RouteSharingNone
}

// readPolicies reads the policies that may protect backends, if only unprotected backends are
// published.
func (c *Controller) readPolicies(ctx context.Context, v *view) error {
	if !publishesUnprotected(v.object) {
		return nil
	}
	if c.has(kindRoutePolicy) {
		l := &gatewayv1alpha1.TailscaleRoutePolicyList{}
		if err := c.list(ctx, l); err != nil {
			return errors.Wrap(err, "cannot list TailscaleRoutePolicies")
		}
		for i := range l.Items {
			v.guards = append(v.guards, routePolicyGuard(&l.Items[i]))
		}
	}
	known, err := c.hasSecurityPolicies(ctx)
	if err != nil || !known {
		return err
	}
	l := parse.SecurityPolicies()
	if err := c.list(ctx, l); err != nil {
		return errors.Wrap(err, "cannot list SecurityPolicies")
	}
	for i := range l.Items {
		g, err := securityPolicyGuard(&l.Items[i])
		if err != nil {
			// The targets of the policy are unknown, so no backend is known to be unprotected.
			c.log.Info("Cannot read a policy; no backends are published", "error", err)
			return nil
		}
		v.guards = append(v.guards, g)
	}
	v.policiesKnown = true
	return nil
}

// hasSecurityPolicies reports whether the cache has all SecurityPolicies. It returns false if
// the kind does not exist or the extension may not read it, because the cache would never be
// complete. While the cache is still filling it returns an error, so that no backend is
// withdrawn.
func (c *Controller) hasSecurityPolicies(ctx context.Context) (bool, error) {
	if !c.has(kindSecurityPolicy) {
		return false, nil
	}
	if c.securityPoliciesSynced() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := []client.ListOption{client.Limit(1)}
	if c.options.Only != nil {
		o = append(o, client.InNamespace(c.options.Only.Namespace))
	}
	err := c.client.List(ctx, parse.SecurityPolicies(), o...)
	switch {
	case kerrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, errors.Wrap(err, "cannot list SecurityPolicies")
	}
	return false, errors.New("the SecurityPolicies have not been read yet")
}

// securityPoliciesSynced reports whether the cache has all SecurityPolicies.
func (c *Controller) securityPoliciesSynced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.securityPolicies != nil && c.securityPolicies.HasSynced()
}

// checkSynced enqueues all TailscaleGateways once the cache has all SecurityPolicies. If there
// are none, no event does so.
func (c *Controller) checkSynced(ctx context.Context) {
	synced := c.securityPoliciesSynced()
	c.mu.Lock()
	completed := synced && !c.synced
	c.synced = synced
	c.mu.Unlock()
	if completed {
		c.enqueue(c.all(ctx)...)
	}
}
