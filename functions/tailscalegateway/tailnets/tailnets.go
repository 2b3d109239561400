// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailnets plans the tailnets that a Gateway joins: the listeners that each reaches, and the
// proxies of each, which are TailscaleEndpoints.
package tailnets

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// ServicePrefix starts the names of Tailscale Services.
	ServicePrefix = "svc:"

	// suffixDNS ends the names of a tailnet's zone and SplitDNS.
	suffixDNS = "dns"
)

// Facts are what the tailnets follow from.
type Facts struct {
	Owner compose.Owner

	// Spec are the tailnets of the spec.
	Spec []gatewayv1alpha1.GatewayTailnet

	// Sharing is what the tailnets reach of the Gateway.
	Sharing gatewayv1alpha1.RouteSharing

	Gateway *front.Gateway

	// Verdicts report whether each tailnet may be used, in the order of the spec.
	Verdicts []compose.TailnetVerdict

	// Observed are the existing proxies, by resource name.
	Observed map[string]*gatewayv1alpha1.TailscaleEndpoints
}

// A Plan is the tailnets of a TailscaleGateway, with their proxies.
type Plan struct {
	Facts

	// Tailnets are in the order of the spec.
	Tailnets []*Tailnet

	// Proxies are the desired proxies, in the order in which they start.
	Proxies []*Proxies
}

// A Tailnet is one of the tailnets that a Gateway joins.
type Tailnet struct {
	gatewayv1alpha1.GatewayTailnet

	// Ref is the name of the TailscaleTailnet.
	Ref string

	Verdict compose.TailnetVerdict

	// Shared are the shared listeners, by their port in the tailnet.
	Shared []Listener

	// Mistake is a message for the user about spec.listeners.
	Mistake string

	// Ingress are the ingress proxies, and Egress the egress proxies for discovered services. They
	// are nil if they are not wanted.
	Ingress, Egress *Proxies
}

// New returns the tailnets and their proxies.
func New(f Facts) Plan {
	out := Plan{Facts: f}
	for i, spec := range f.Spec {
		t := &Tailnet{GatewayTailnet: spec, Ref: Ref(spec), Verdict: f.Verdicts[i]}
		if f.Gateway.Found != nil {
			t.Shared, t.Mistake = shareListeners(f.Gateway, spec.Listeners)
		}
		if f.Sharing != gatewayv1alpha1.RouteSharingNone {
			t.Ingress = newProxies(f, t, gatewayv1alpha1.ConnectionTypeIngress)
		}
		if Discovers(spec) {
			t.Egress = newProxies(f, t, gatewayv1alpha1.ConnectionTypeEgress)
		}
		out.Tailnets = append(out.Tailnets, t)
	}
	// Ingress comes first, so that services that were shared before are shared again first.
	for _, t := range out.Tailnets {
		if t.Ingress != nil {
			out.Proxies = append(out.Proxies, t.Ingress)
		}
	}
	for _, t := range out.Tailnets {
		if t.Egress != nil {
			out.Proxies = append(out.Proxies, t.Egress)
		}
	}
	return out
}

// Ref returns the name of a TailscaleTailnet.
func Ref(t gatewayv1alpha1.GatewayTailnet) string {
	if ref := t.TailscaleTailnetRef; ref != nil {
		return cmp.Or(ref.Name, t.Name)
	}
	return t.Name
}

// Discovers reports whether services of a tailnet are discovered.
func Discovers(t gatewayv1alpha1.GatewayTailnet) bool {
	return t.ServiceDiscovery != nil && ptr.Deref(t.ServiceDiscovery.Enabled, true)
}

// SelectsAll returns a message for the user if the spec does not limit which objects of a tailnet
// the Gateway's clients can reach. It is empty if there is a limit, or if discovery is off. An
// object without a limit was stored before the schema required one. Its discovered services are no
// longer reachable.
func (t *Tailnet) SelectsAll() string {
	if !Discovers(t.GatewayTailnet) || t.ServiceDiscovery.Narrowed() {
		return ""
	}
	return fmt.Sprintf("spec.tailnets[%s].serviceDiscovery: nothing is looked for, and routes to what was found are gone, for all of the tailnet would be reachable through the Gateway: set patterns or tags; patterns [\"*\"] stand for all", t.Name)
}

// SharesServices reports whether other clusters may also define the services of a tailnet.
func (t *Tailnet) SharesServices() bool {
	s := t.VIPService.Sharing
	return s == gatewayv1alpha1.SharingShared || s == "" && t.Verdict.ClusterSet != ""
}

// Picks reports whether a selector chooses objects of the namespace that get routes.
func Picks(t gatewayv1alpha1.GatewayTailnet) bool {
	return t.RouteGeneration.Egress != nil && t.RouteGeneration.Egress.Selector != nil
}

// Labels returns the labels of all children of a tailnet.
func (t *Tailnet) Labels(owner compose.Owner) map[string]string {
	return map[string]string{
		meta.LabelTailnet:        t.Ref,
		meta.LabelGateway:        owner.Name,
		meta.LabelGatewayTailnet: t.Name,
	}
}

// GatewayService returns the name of the Gateway's own Tailscale Service.
func (t *Tailnet) GatewayService(owner compose.Owner) string {
	if n := t.VIPService.Name; n != "" {
		return string(n)
	}
	return ServicePrefix + names.TailscaleService(owner.Name)
}

// ZoneName returns the name of the ConfigMap with the names that the tailnet resolves, and of the
// SplitDNS.
func (t *Tailnet) ZoneName(owner compose.Owner) string {
	return names.Child(owner.Name, t.Name, suffixDNS)
}

// Valid returns the condition TailnetsValid.
func (plan Plan) Valid() compose.Condition {
	for _, t := range plan.Tailnets {
		if !t.Verdict.Accepted {
			return compose.Condition{Status: compose.False, Reason: t.Verdict.Reason, Message: t.Verdict.Message}
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonAccepted, Message: "All tailnets may be used"}
}

// Status returns the status of a tailnet.
func (t *Tailnet) Status() gatewayv1alpha1.GatewayTailnetStatus {
	out := gatewayv1alpha1.GatewayTailnetStatus{Name: t.Name, Ready: t.Verdict.Accepted}
	if !t.Verdict.Accepted {
		out.Message = t.Verdict.Message
	}
	for _, p := range []*Proxies{t.Ingress, t.Egress} {
		if p == nil {
			continue
		}
		out.Endpoints = append(out.Endpoints, p.Name)
		if p.complete() {
			continue
		}
		out.Ready = false
		out.Message = cmp.Or(out.Message, p.endpoints().Problem(), "Waiting for proxies; see its TailscaleEndpoints")
	}
	if t.Egress == nil || t.Egress.Observed == nil {
		return out
	}
	found := t.Egress.Observed.Status
	out.Message = cmp.Or(out.Message, t.SelectsAll())
	switch c := found.GetCondition(meta.TypeDiscoverySuccessful); {
	case c.Status == corev1.ConditionFalse:
		out.Message = cmp.Or(out.Message, c.Message)
	case c.Reason == meta.ReasonTooManyDiscovered:
		out.Message = cmp.Or(out.Message, "More devices and services match than can be listed; narrow serviceDiscovery")
	}
	out.DiscoveredServices = ptr.To(int32(len(found.DiscoveredEndpoints)))
	out.LastSync = found.LastSync
	return out
}
