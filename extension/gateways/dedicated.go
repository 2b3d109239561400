// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// dedicated is the Gateway of a TailscaleGateway, and whether it has an extension of its
// own. That reads one namespace, so it is for Gateways of the TailscaleGateway's alone.
func dedicated(o *gatewayv1alpha1.TailscaleGateway) (types.NamespacedName, bool) {
	n := gatewayOf(o)
	return n, o.Spec.ExtensionServer != nil && n.Namespace == o.Namespace
}

// mine reports whether this extension does what a TailscaleGateway needs.
func (c *Controller) mine(o *gatewayv1alpha1.TailscaleGateway) bool {
	n, own := dedicated(o)
	if c.options.Only == nil {
		return !own
	}
	return own && n == *c.options.Only
}

// tellDedicated which Gateways have an extension of their own, if others have than before.
func (c *Controller) tellDedicated(ctx context.Context) {
	if c.options.Dedicated == nil {
		return
	}
	l := &gatewayv1alpha1.TailscaleGatewayList{}
	if c.list(ctx, l) != nil {
		// The cache fails only when it ends.
		return
	}
	now := map[types.NamespacedName]bool{}
	for i := range l.Items {
		if n, own := dedicated(&l.Items[i]); own {
			now[n] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if maps.Equal(c.dedicated, now) {
		return
	}
	c.dedicated = now
	c.options.Dedicated(now)
}
