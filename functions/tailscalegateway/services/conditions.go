// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// GatewayVIPReady returns the condition GatewayVIPReady: True if the Gateway answers in each
// tailnet. Its message does not name the other tailnets, because status.services does.
func (p Plan) GatewayVIPReady() compose.Condition {
	c := compose.Condition{Status: compose.True, Reason: meta.ReasonGatewayVIPHosted, Message: "Proxies host the Gateway's Tailscale Service in each tailnet"}
	for _, v := range p.Services {
		if !v.IsGateway() || v.hosted() && v.mistake == "" {
			continue
		}
		c.Status, c.Reason = compose.False, meta.ReasonGatewayVIPNotHosted
		// Problems that the user must fix come before those that only need time.
		if m := v.problem(); m != "" {
			c.Message = fmt.Sprintf("%s in tailnet %q: %s", v.vip, v.Tailnet.Ref, m)
			return c
		}
		c.Message = "Waiting for proxies to host the Gateway's Tailscale Service; status.services lists them by tailnet"
	}
	return c
}

// Ready returns the condition ServicesReady: True if all services have their desired
// configuration. status.services reports whether a backend answers. The Gateway's own service
// counts once it is hosted, together with GatewayVIPReady.
func (p Plan) Ready() compose.Condition {
	c := compose.Condition{Status: compose.False, Reason: meta.ReasonServiceError}
	for _, t := range p.Tailnets {
		if t.Mistake != "" {
			c.Message = fmt.Sprintf("spec.tailnets[%s].listeners: %s", t.Name, t.Mistake)
			return c
		}
	}
	if m := p.MissingIdentity(); m != "" {
		c.Reason, c.Message = meta.ReasonRefNotPermitted, m
		return c
	}
	waiting := p.Gateway.Found == nil || p.Report == nil && ServesRoutes(p.Sharing, p.Publish)
	for _, v := range p.Services {
		if m := v.problem(); m != "" {
			c.Message = fmt.Sprintf("%s in tailnet %q: %s", cmp.Or(v.vip, v.Target), v.Tailnet.Ref, m)
			return c
		}
		waiting = waiting || v.omitted == "" && !v.settled()
	}
	if p.hidesAll() {
		c.Reason = meta.ReasonPoliciesUnknown
		c.Message = "No backend is published, for the extension does not know all policies of Envoy Gateway that may protect them: it is older than this, or may not read them, or the cluster lacks one of their kinds; apply the definitions and rights of this version, or set publishBackends All to publish protected ones, too, or None"
		return c
	}
	if slices.ContainsFunc(p.Services, func(v *Service) bool { return v.full }) {
		c.Reason, c.Message = meta.ReasonTooManyRoutes, fullServices()+"; status.services lists those that are omitted"
		return c
	}
	if l := routes.Omitted(p.Report); ServesRoutes(p.Sharing, p.Publish) && l.Routes+l.TruncatedRoutes > 0 {
		c.Reason, c.Message = meta.ReasonTooManyRoutes, routes.TooMany(p.Owner.Name)
		return c
	}
	if waiting {
		c.Reason, c.Message = meta.ReasonServicesCreating, "Waiting for Tailscale Services; status.services has the state of each"
		return c
	}
	for _, v := range p.Services {
		if m := renamed(v); m != "" {
			return compose.Condition{Status: compose.True, Reason: meta.ReasonNameTaken, Message: m}
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonServicesConfigured, Message: "All Tailscale Services are configured"}
}

// hidesAll reports whether backends are omitted because the policies that protect them are unknown.
func (p Plan) hidesAll() bool {
	return p.publishes() && p.Publish != gatewayv1alpha1.PublishBackendsAll && p.knowsRoutes() && !p.Report.PoliciesKnown &&
		slices.ContainsFunc(p.Services, func(v *Service) bool { return v.kind() == strings.ToLower(routes.KindService) })
}

// MissingIdentity returns a message for the user about a listener that must not receive the
// client's identity, as the extension reports. It is empty if there is none.
func (f Facts) MissingIdentity() string {
	if f.Report == nil || len(f.Report.ListenersWithoutIdentity) == 0 {
		return ""
	}
	return fmt.Sprintf("Listener %q of Gateway %s does not receive the client's identity: create a ReferenceGrant in namespace %s, from kind TailscaleGateway (group %s) of namespace %s to kind %s (group %s)",
		f.Report.ListenersWithoutIdentity[0], f.Gateway.Name(), f.Gateway.Ref.Namespace, gatewayv1alpha1.Group, f.Owner.Namespace, f.Gateway.Ref.Kind, gwapiv1.GroupName)
}
