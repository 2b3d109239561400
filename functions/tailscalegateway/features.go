// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"maps"
	"slices"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/services"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
)

// sharing returns the spec's routeSharing, or the schema's default. Without tailnets nothing is
// shared.
func (f facts) sharing() gatewayv1alpha1.RouteSharing {
	if len(f.spec.Tailnets) == 0 {
		return gatewayv1alpha1.RouteSharingNone
	}
	return cmp.Or(f.spec.RouteSharing, gatewayv1alpha1.RouteSharingGateway)
}

// ingress reports whether the tailnets reach anything of the Gateway.
func (f facts) ingress() bool { return f.sharing() != gatewayv1alpha1.RouteSharingNone }

// publishing returns which of the Services behind routes are also shared.
func (f facts) publishing() gatewayv1alpha1.PublishBackends {
	if !f.ingress() || f.step {
		return gatewayv1alpha1.PublishBackendsNone
	}
	return f.spec.PublishBackends
}

// publishes reports whether the Services behind routes are also shared.
func (f facts) publishes() bool { return f.publishing() != gatewayv1alpha1.PublishBackendsNone }

// servesRoutes reports whether routes, or the Services behind them, have Tailscale Services.
func (f facts) servesRoutes() bool { return services.ServesRoutes(f.sharing(), f.publishing()) }

// discovers reports whether services of a tailnet are discovered.
func (f facts) discovers() bool { return slices.ContainsFunc(f.spec.Tailnets, tailnets.Discovers) }

// generates reports whether routes are generated for services. A step generates none.
func (f facts) generates() bool {
	return !f.step && slices.ContainsFunc(f.spec.Tailnets, func(t gatewayv1alpha1.GatewayTailnet) bool {
		return tailnets.Discovers(t) || tailnets.Picks(t) || t.RouteGeneration.Ingress != nil
	})
}

// exposes reports whether clients of the Gateway reach services of a tailnet or objects that a
// selector chooses. A step generates no routes.
func (f facts) exposes() bool {
	return !f.step && f.gateway.Permitted() && slices.ContainsFunc(f.spec.Tailnets, func(t gatewayv1alpha1.GatewayTailnet) bool {
		return tailnets.Discovers(t) && t.ServiceDiscovery.Narrowed() || tailnets.Picks(t)
	})
}

// resolves reports whether any tailnet should resolve hostnames. Without ingress they have no
// addresses.
func (f facts) resolves() bool {
	return f.ingress() && slices.ContainsFunc(f.spec.Tailnets, func(t gatewayv1alpha1.GatewayTailnet) bool { return t.SplitDNS != nil })
}

// identityListeners returns the names of the listeners that receive the client's identity, each
// once.
func (f facts) identityListeners() []string {
	identified := map[string]bool{}
	for _, t := range f.spec.Tailnets {
		for _, l := range t.Listeners {
			if f.ingress() && l.Identity != "" && l.Identity != gatewayv1alpha1.ClientIdentityNone {
				identified[l.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(identified))
}

// identifiesElsewhere reports whether a Gateway of another namespace should receive identity
// headers. The extension decides whether it may, but not for a step.
func (f facts) identifiesElsewhere() bool {
	if f.step || reference(f.spec.GatewayRef, f.owner.Namespace).Namespace == f.owner.Namespace {
		return false
	}
	return slices.ContainsFunc(f.spec.Tailnets, func(t gatewayv1alpha1.GatewayTailnet) bool {
		return slices.ContainsFunc(t.Listeners, func(l gatewayv1alpha1.SharedListener) bool {
			return l.Identity == gatewayv1alpha1.ClientIdentityHeaders
		})
	})
}

// wantsInstalled reports whether the extension that is installed for the cluster should serve the
// Gateway. It serves only TailscaleGateways with tailnets.
func (f facts) wantsInstalled() bool {
	return len(f.spec.Tailnets) > 0 && !f.step && f.spec.ExtensionServer == nil
}

// needsReport reports whether the extension must report the routes, or its own state.
func (f facts) needsReport() bool {
	return f.servesRoutes() || f.generates() || f.identifiesElsewhere() || f.resolves() && !f.step || f.spec.ExtensionServer != nil && len(f.spec.Tailnets) > 0
}

// needsExtension reports whether the spec uses a feature that requires an extension.
func (f facts) needsExtension() bool {
	return f.spec.ExtensionServer != nil || f.wantsInstalled() && f.needsReport()
}
