// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// waitingMessage is the message of a route without a status.
const waitingMessage = "Waiting for Envoy Gateway"

// routeState returns the state of an existing route by its status from Envoy Gateway. A route
// is accepted if one listener has accepted it, unless its Service cannot be used.
func routeState(o client.Object) (tailnetv1alpha1.GeneratedRouteState, string) {
	_, r := StatusOf(o)
	if r == nil {
		return tailnetv1alpha1.GeneratedRoutePending, waitingMessage
	}
	var refusals []string
	accepted, broken := false, false
	for _, p := range r.Parents {
		accepted = accepted || conditionIs(p.Conditions, gwapiv1.RouteConditionAccepted, metav1.ConditionTrue)
		broken = broken || conditionIs(p.Conditions, gwapiv1.RouteConditionResolvedRefs, metav1.ConditionFalse)
		for _, c := range p.Conditions {
			if c.Status == metav1.ConditionFalse {
				refusals = append(refusals, c.Message)
			}
		}
	}
	switch {
	case accepted && !broken:
		return tailnetv1alpha1.GeneratedRouteAccepted, envoyGatewayMessage(refusals)
	case len(refusals) > 0:
		return tailnetv1alpha1.GeneratedRouteRefused, envoyGatewayMessage(refusals)
	}
	return tailnetv1alpha1.GeneratedRoutePending, waitingMessage
}

// envoyGatewayMessage joins the distinct messages of Envoy Gateway.
func envoyGatewayMessage(refusals []string) string {
	slices.Sort(refusals)
	if len(refusals) == 0 {
		return ""
	}
	return "Envoy Gateway: " + strings.Join(slices.Compact(refusals), "; ")
}
