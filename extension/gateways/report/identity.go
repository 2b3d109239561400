// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// maxUnverified limits the listeners in a report.
const maxUnverified = 64

// unverifiedListeners returns the listeners, sorted, whose identity headers Envoy does not
// verify, because the TailscaleGateway is not permitted to configure the Gateway.
func unverifiedListeners(o *gatewayv1alpha1.TailscaleGateway, granted bool) []string {
	if granted {
		return nil
	}
	var out []string
	for _, t := range o.Spec.Tailnets {
		for _, l := range t.Listeners {
			if l.Identity == gatewayv1alpha1.ClientIdentityHeaders {
				out = append(out, l.Name)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxUnverified)]
}
