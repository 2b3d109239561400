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

// leavesOut reports whether backends are published that nothing protects, and no others.
func leavesOut(o *gatewayv1alpha1.TailscaleGateway) bool {
	publishes := o.Spec.PublishBackends == "" || o.Spec.PublishBackends == gatewayv1alpha1.PublishBackendsUnprotected
	return publishes && o.Spec.RouteSharing != gatewayv1alpha1.RouteSharingNone
}

// readPolicies that may protect backends, where that matters.
func (c *Controller) readPolicies(ctx context.Context, v *view) error {
	if !leavesOut(v.object) {
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
	known, err := c.knowsSecurityPolicies(ctx)
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
			// What it is for is not known, so nothing is known to be unprotected.
			c.log.Info("Cannot read a policy, and publish no backend", "error", err)
			return nil
		}
		v.guards = append(v.guards, g)
	}
	v.policiesKnown = true
	return nil
}

// knowsSecurityPolicies reports whether the cache has them. It has them not where there is
// no such kind, or the extension may not read it: the cache would be asked in vain. While
// it is only late there is an error, so that nothing is withdrawn for it.
func (c *Controller) knowsSecurityPolicies(ctx context.Context) (bool, error) {
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
	return false, errors.New("do not know what policies protect: SecurityPolicies are not read yet")
}

// securityPoliciesSynced reports whether the cache has all that there are.
func (c *Controller) securityPoliciesSynced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.securityPolicies != nil && c.securityPolicies.HasSynced()
}

// noticeSynced has reports written again once SecurityPolicies are known that were not: of
// none nothing else is told.
func (c *Controller) noticeSynced(ctx context.Context) {
	synced := c.securityPoliciesSynced()
	c.mu.Lock()
	news := synced && !c.synced
	c.synced = synced
	c.mu.Unlock()
	if news {
		c.enqueue(c.all(ctx)...)
	}
}
