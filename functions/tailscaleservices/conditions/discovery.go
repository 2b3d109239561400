// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// discoverySuccessful returns the condition DiscoverySuccessful. Its message does not count
// services, because each change of the number would cost a write in addition to that of the list.
func discoverySuccessful(f Facts) compose.Condition {
	c := compose.Condition{Type: meta.TypeDiscoverySuccessful, Reason: compose.ReasonWaiting}
	d := f.Discovery
	switch {
	case f.Tailnet == "":
		c.Message = "The tailnet to look in is known once endpoints are selected"
	case d == nil:
		c.Message = fmt.Sprintf("Waiting for the provider to look into tailnet %q", f.Tailnet)
	case isFalse(d.GetCondition(xpv2.TypeSynced)):
		c.Status, c.Reason, c.Message = compose.False, meta.ReasonCannotDiscover, d.GetCondition(xpv2.TypeSynced).Message
	case isFalse(d.GetCondition(xpv2.TypeReady)):
		c.Status, c.Reason, c.Message = compose.False, meta.ReasonCannotDiscover, d.GetCondition(xpv2.TypeReady).Message
	case d.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue:
		c.Message = fmt.Sprintf("Waiting for the provider to look into tailnet %q", f.Tailnet)
	case d.Status.AtProvider.Truncated:
		c.Status, c.Reason = compose.True, meta.ReasonDiscovered
		c.Message = "More services match than status.discoveredServices lists; narrow spec.serviceDiscovery"
	default:
		c.Status, c.Reason = compose.True, meta.ReasonDiscovered
		c.Message = "Services of the tailnet that match are in status.discoveredServices"
	}
	return c
}

// isFalse reports whether a condition is false and has a message.
func isFalse(c xpv2.Condition) bool {
	return c.Status == corev1.ConditionFalse && c.Message != ""
}
