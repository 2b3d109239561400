// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// A sharedListener is a port of the Gateway that a tailnet reaches. Listeners of one
// port share it.
type sharedListener struct {
	// port is the port of the listener, and vipPort that of the Tailscale Service that leads to it.
	port, vipPort int32

	identity gatewayv1alpha1.ClientIdentity
}

// shareListeners returns the chosen listeners, or all that a Tailscale Service can have a port
// for, by port. A mistake in the choice is a message for the user; the other listeners are
// shared nevertheless.
func shareListeners(gp *gatewayPlan, chosen []gatewayv1alpha1.SharedListener) (out []sharedListener, mistake string) {
	if gp.found == nil {
		return nil, ""
	}
	if len(chosen) == 0 {
		for _, p := range gp.gateway.ports() {
			out = append(out, sharedListener{port: p, vipPort: p})
		}
		return sortListeners(out), ""
	}
	takes := map[int32]sharedListener{}
	for _, c := range chosen {
		l, m := shareListener(gp.gateway.name(), c, gp.found.Listeners)
		if other, exists := takes[l.vipPort]; m == "" && exists && other != l {
			m = fmt.Sprintf("listener %q would have port %d of the Tailscale Service, which leads elsewhere; give it another vipPort", c.Name, l.vipPort)
		}
		if m != "" {
			mistake = cmp.Or(mistake, m)
			continue
		}
		takes[l.vipPort] = l
		out = append(out, l)
	}
	return sortListeners(out), mistake
}

// shareListener returns a chosen listener, or the mistake in the choice.
func shareListener(name string, c gatewayv1alpha1.SharedListener, listeners []gatewayv1alpha1.GatewayListener) (sharedListener, string) {
	i := slices.IndexFunc(listeners, func(l gatewayv1alpha1.GatewayListener) bool { return l.Name == c.Name })
	if i < 0 {
		return sharedListener{}, fmt.Sprintf("Gateway %s serves no listener %q; add it there, or correct the name", name, c.Name)
	}
	l := listeners[i]
	switch {
	case l.Protocol == string(gwapiv1.UDPProtocolType):
		return sharedListener{}, fmt.Sprintf("listener %q is of UDP, which a Tailscale Service has no port for; remove it", c.Name)
	case c.Identity == gatewayv1alpha1.ClientIdentityHeaders && l.Protocol != string(gwapiv1.HTTPProtocolType):
		return sharedListener{}, fmt.Sprintf("listener %q is of %s, and identity Headers needs HTTP; set ProxyProtocol, or name another listener", c.Name, l.Protocol)
	}
	return sharedListener{port: l.Port, vipPort: ptr.Deref(c.VIPPort, l.Port), identity: c.Identity}, ""
}

// gatewayValid returns the condition GatewayValid. Its message also names the listeners that trust
// identity headers although clients may reach them without the product's proxies. Such a listener
// alone does not make the condition False, because the function cannot know whether other rules
// block these clients.
func gatewayValid(gp *gatewayPlan) compose.Condition {
	c := gp.gateway.valid()
	front := gp.gateway.service()
	if front == nil || front.Spec.Type != corev1.ServiceTypeLoadBalancer && front.Spec.Type != corev1.ServiceTypeNodePort {
		return c
	}
	if identified := gp.identityListeners(); len(identified) > 0 {
		c.Message += fmt.Sprintf("; it is of type %s, and a client that reaches one of the listeners %s without the proxies can claim any identity: admit only the proxies with a NetworkPolicy, or use a Service of type ClusterIP",
			front.Spec.Type, compose.List(identified...))
	}
	return c
}

// identityListeners returns the names of the listeners that receive the client's identity, each
// once.
func (gp *gatewayPlan) identityListeners() []string {
	identified := map[string]bool{}
	for _, t := range gp.tailnets {
		for _, l := range t.Listeners {
			if gp.ingress() && l.Identity != "" && l.Identity != gatewayv1alpha1.ClientIdentityNone {
				identified[l.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(identified))
}

// identifiesElsewhere reports whether a Gateway of another namespace should receive identity
// headers. The extension decides whether it may, but not for a step.
func (gp *gatewayPlan) identifiesElsewhere() bool {
	if gp.step || reference(gp.spec.GatewayRef, gp.owner.Namespace).Namespace == gp.owner.Namespace {
		return false
	}
	return slices.ContainsFunc(gp.tailnets, func(t *tailnet) bool {
		return slices.ContainsFunc(t.Listeners, func(l gatewayv1alpha1.SharedListener) bool {
			return l.Identity == gatewayv1alpha1.ClientIdentityHeaders
		})
	})
}

// missingIdentity returns a message for the user about a listener that must not receive the
// client's identity, as the extension reports. It is empty if there is none.
func missingIdentity(gp *gatewayPlan) string {
	if gp.report == nil || len(gp.report.ListenersWithoutIdentity) == 0 {
		return ""
	}
	return fmt.Sprintf("Listener %q of Gateway %s does not receive the client's identity: create a ReferenceGrant in namespace %s, from kind TailscaleGateway (group %s) of namespace %s to kind %s (group %s)",
		gp.report.ListenersWithoutIdentity[0], gp.gateway.name(), gp.gateway.ref.Namespace, gatewayv1alpha1.Group, gp.owner.Namespace, gp.gateway.ref.Kind, gwapiv1.GroupName)
}

// sortListeners returns listeners by port, each once.
func sortListeners(listeners []sharedListener) []sharedListener {
	slices.SortFunc(listeners, func(a, b sharedListener) int { return cmp.Compare(a.vipPort, b.vipPort) })
	return slices.Compact(listeners)
}

// backend returns the backend of a Tailscale Service that leads to a listener. It names the host:
// otherwise the service would require the TailscaleGateway, whose status changes with each service,
// and which does not exist in a step. It also sets the protocol to the default, because a default
// that the API server sets in an atomic list makes each apply a write.
func (gp *gatewayPlan) backend(l sharedListener) gatewayv1alpha1.Backend {
	b := gatewayv1alpha1.Backend{
		Kind: gatewayv1alpha1.BackendKindGateway, Name: names.Child(gp.owner.Name),
		Host: serviceHost(gp.found.Service.Namespace, gp.found.Service.Name),
		Port: l.port, VIPPort: ptr.To(l.vipPort), Protocol: gatewayv1alpha1.BackendProtocolTCP,
	}
	switch l.identity {
	case gatewayv1alpha1.ClientIdentityProxyProtocol:
		b.ProxyProtocol = gatewayv1alpha1.ProxyProtocolV2
	case gatewayv1alpha1.ClientIdentityHeaders:
		b.Protocol = gatewayv1alpha1.BackendProtocolHTTP
	case gatewayv1alpha1.ClientIdentityNone:
	}
	return b
}

// serviceHost returns the host of a Service without the cluster's domain, which a pod's search
// list adds.
func serviceHost(namespace, name string) string { return name + "." + namespace + ".svc" }
