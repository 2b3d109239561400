// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// dedicated returns the Gateway of a TailscaleGateway, and whether the Gateway has a dedicated
// extension. A dedicated extension reads one namespace only, so it needs a Gateway in the
// namespace of the TailscaleGateway.
func dedicated(o *gatewayv1alpha1.TailscaleGateway) (types.NamespacedName, bool) {
	n := o.GatewayName()
	return n, o.Spec.ExtensionServer != nil && n.Namespace == o.Namespace && n.Name != ""
}

// manages reports whether this extension manages the objects of a TailscaleGateway.
func (rd *reader) manages(o *gatewayv1alpha1.TailscaleGateway) bool {
	n, own := dedicated(o)
	if rd.options.Gateway == nil {
		return !own
	}
	return own && n == *rd.options.Gateway
}

// notifyDedicated passes the Gateways with a dedicated extension to Options.Dedicated, if the
// set has changed.
func (c *Controller) notifyDedicated(ctx context.Context) {
	if c.options.Dedicated == nil {
		return
	}
	l := &gatewayv1alpha1.TailscaleGatewayList{}
	if c.list(ctx, l) != nil {
		// The cache fails only when it stops.
		return
	}
	gateways := map[types.NamespacedName]bool{}
	for i := range l.Items {
		if n, own := dedicated(&l.Items[i]); own {
			gateways[n] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if maps.Equal(c.dedicated, gateways) {
		return
	}
	c.dedicated = gateways
	c.options.Dedicated(gateways)
}
