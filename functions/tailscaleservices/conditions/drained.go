// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// drained returns the condition Drained, which the provider reports for a service that clusters share.
func drained(f Facts) compose.Condition {
	c := compose.Condition{
		Type: meta.TypeDrained, Reason: compose.ReasonWaiting,
		Message: fmt.Sprintf("Waiting for the provider to hand %s to other clusters", f.ServiceName),
	}
	if !f.Presence.Sharing {
		c.Status, c.Reason = compose.False, meta.ReasonNotShared
		c.Message = fmt.Sprintf("%s belongs to this cluster alone, and no other one can serve it; share it first, by clusterSet of the TailscaleTailnet or by spec.sharing", f.ServiceName)
		return c
	}
	return reportedBy(f, c)
}

// fencingReady returns the condition FencingReady, which the provider reports.
func fencingReady(f Facts) compose.Condition {
	return reportedBy(f, compose.Condition{
		Type: meta.TypeFencingReady, Reason: compose.ReasonWaiting,
		Message: fmt.Sprintf("Waiting for the provider to let machines watch the hosts of %s", f.ServiceName),
	})
}

// reportedBy returns the condition of the VIPService with the type of c, or c while there is none.
func reportedBy(f Facts, c compose.Condition) compose.Condition {
	if f.Presence.Current == nil {
		return c
	}
	p := f.Presence.Current.GetCondition(c.Type)
	switch p.Status {
	case corev1.ConditionTrue:
		c.Status = compose.True
	case corev1.ConditionFalse:
		c.Status = compose.False
	case corev1.ConditionUnknown:
		return c
	}
	c.Reason, c.Message = p.Reason, p.Message
	return c
}
