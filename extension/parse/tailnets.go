// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// RefusedTailnets returns the entries of a TailscaleGateway's tailnets that do not allow its
// namespace, by name, as its function reports in the status. A tailnet of which the status says
// nothing else is not refused: the status is missing after a restore, and unknown while Crossplane
// reads.
func RefusedTailnets(o *gatewayv1alpha1.TailscaleGateway) map[string]bool {
	out := map[string]bool{}
	refused := refusedTailnetRefs(o)
	for _, t := range o.Spec.Tailnets {
		ref := t.Name
		if r := t.TailscaleTailnetRef; r != nil {
			ref = cmp.Or(r.Name, t.Name)
		}
		if refused[ref] {
			out[t.Name] = true
		}
	}
	return out
}

// refusedTailnetRefs returns the names of TailscaleTailnets that a TailscaleGateway may not use.
func refusedTailnetRefs(o *gatewayv1alpha1.TailscaleGateway) map[string]bool {
	out := map[string]bool{}
	c := o.Status.GetCondition(meta.TypeTailnetsValid)
	if c.Status != corev1.ConditionFalse || c.Reason != meta.ReasonNamespaceNotAllowed {
		return out
	}
	for _, d := range o.Status.DependencyStatus {
		if d.Kind == gatewayv1alpha1.TailscaleTailnetKind && !d.Ready {
			out[d.Name] = true
		}
	}
	return out
}

// stripGatewayStatus keeps only the name of the Gateway, and what RefusedTailnets reads.
func stripGatewayStatus(o *gatewayv1alpha1.TailscaleGateway) {
	status := o.Status
	o.Status = gatewayv1alpha1.TailscaleGatewayStatus{GatewayRef: status.GatewayRef}
	refused := refusedTailnetRefs(&gatewayv1alpha1.TailscaleGateway{Status: status})
	if len(refused) == 0 {
		return
	}
	o.Status.SetConditions(xpv2.Condition{Type: meta.TypeTailnetsValid, Status: corev1.ConditionFalse, Reason: meta.ReasonNamespaceNotAllowed})
	for _, d := range status.DependencyStatus {
		if refused[d.Name] && d.Kind == gatewayv1alpha1.TailscaleTailnetKind {
			o.Status.DependencyStatus = append(o.Status.DependencyStatus, gatewayv1alpha1.DependencyStatus{Kind: d.Kind, Name: d.Name})
		}
	}
}
