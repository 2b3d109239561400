// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnets

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
)

// A Listener is a port of the Gateway that a tailnet reaches. Listeners of one
// port share it.
type Listener struct {
	// Port is the port of the listener, and VIPPort that of the Tailscale Service that leads to it.
	Port, VIPPort int32

	Identity gatewayv1alpha1.ClientIdentity
}

// shareListeners returns the chosen ones of the listeners that a valid Gateway serves, or all that a
// Tailscale Service can have a port for, by port. A mistake in the choice is a message for the user; the
// other listeners are shared nevertheless.
func shareListeners(gateway *front.Gateway, chosen []gatewayv1alpha1.SharedListener) (out []Listener, mistake string) {
	if len(chosen) == 0 {
		for _, p := range gateway.Ports() {
			out = append(out, Listener{Port: p, VIPPort: p})
		}
		return sortListeners(out), ""
	}
	takes := map[int32]Listener{}
	for _, c := range chosen {
		l, m := shareListener(gateway.Name(), c, gateway.Found.Listeners)
		if other, exists := takes[l.VIPPort]; m == "" && exists && other != l {
			m = fmt.Sprintf("listener %q would have port %d of the Tailscale Service, which leads elsewhere; give it another vipPort", c.Name, l.VIPPort)
		}
		if m != "" {
			mistake = cmp.Or(mistake, m)
			continue
		}
		takes[l.VIPPort] = l
		out = append(out, l)
	}
	return sortListeners(out), mistake
}

// shareListener returns a chosen listener, or the mistake in the choice.
func shareListener(name string, c gatewayv1alpha1.SharedListener, listeners []gatewayv1alpha1.GatewayListener) (Listener, string) {
	i := slices.IndexFunc(listeners, func(l gatewayv1alpha1.GatewayListener) bool { return l.Name == c.Name })
	if i < 0 {
		return Listener{}, fmt.Sprintf("Gateway %s serves no listener %q; add it there, or correct the name", name, c.Name)
	}
	l := listeners[i]
	switch {
	case l.Protocol == string(gwapiv1.UDPProtocolType):
		return Listener{}, fmt.Sprintf("listener %q is of UDP, which a Tailscale Service has no port for; remove it", c.Name)
	case c.Identity == gatewayv1alpha1.ClientIdentityHeaders && l.Protocol != string(gwapiv1.HTTPProtocolType):
		return Listener{}, fmt.Sprintf("listener %q is of %s, and identity Headers needs HTTP; set ProxyProtocol, or name another listener", c.Name, l.Protocol)
	}
	return Listener{Port: l.Port, VIPPort: ptr.Deref(c.VIPPort, l.Port), Identity: c.Identity}, ""
}

// sortListeners returns listeners by port, each once.
func sortListeners(listeners []Listener) []Listener {
	slices.SortFunc(listeners, func(a, b Listener) int { return cmp.Compare(a.VIPPort, b.VIPPort) })
	return slices.Compact(listeners)
}
