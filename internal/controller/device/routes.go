// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"net/netip"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// annotationRoutes lists the routes that a Device has approved, or was about to approve, separated
// by commas. Their approval is withdrawn when the spec no longer has them. Routes that others have
// approved, such as those of an exit node or of the policy's autoApprovers, are not in it.
const annotationRoutes = "tailnet.gateway.tailscale.com/approved-routes"

// routeChanges returns the change of the approved routes, if there is one, and sets the routes that
// the object owns from then on.
func (e *external) routeChanges(mg *v1alpha1.Device, d tailscale.Device) []change {
	e.ownRoutes = nil
	if mg.Spec.ForProvider.Routes == nil {
		return nil
	}
	wanted, enabled := canonicalRoutes(*mg.Spec.ForProvider.Routes), canonicalRoutes(d.EnabledRoutes)
	withdraw := slices.DeleteFunc(recorded(mg, annotationRoutes), func(r string) bool {
		return slices.Contains(wanted, r) || !slices.Contains(enabled, r)
	})
	e.ownRoutes = plain(slices.Concat(wanted, withdraw))
	if slices.Equal(tailscale.EditRoutes(enabled, wanted, withdraw), append([]string{}, enabled...)) {
		return nil
	}
	return []change{{part: "routes", apply: func(ctx context.Context) error {
		return e.api.EditDeviceRoutes(ctx, d.NodeID, wanted, withdraw)
	}}}
}

// canonicalRoutes returns routes in the form of the API, sorted: that of netip.Prefix, without bits
// of hosts.
func canonicalRoutes(routes []string) []string {
	out := make([]string, 0, len(routes))
	for _, r := range routes {
		if p, err := netip.ParsePrefix(r); err == nil {
			r = p.Masked().String()
		}
		out = append(out, r)
	}
	return plain(out)
}
