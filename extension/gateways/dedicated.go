// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

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
