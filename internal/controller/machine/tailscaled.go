// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// observeTailscaled sets a condition if the machine runs a version of tailscaled that tests do not
// run with, and reports the end of that.
func observeTailscaled(mg *v1alpha1.Machine) {
	message := untested(mg.Status.Agent)
	previous := mg.GetCondition(meta.TypeTailscaledTested).Status
	switch {
	case message != "":
		mg.SetConditions(xpv2.Condition{
			Type: meta.TypeTailscaledTested, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(),
			Reason: meta.ReasonVersionUntested, Message: message,
		})
	case previous == corev1.ConditionFalse:
		mg.SetConditions(xpv2.Condition{Type: meta.TypeTailscaledTested, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: meta.ReasonVersionTested})
	}
}

// untested describes what may differ with an agent's version of tailscaled. It is empty for a
// version that tests run with, and until the agent has reported one.
func untested(a *v1alpha1.MachineAgentStatus) string {
	if a == nil || a.TailscaledVersion == "" || tailscaled.Tested(a.TailscaledVersion) && !a.Polled {
		return ""
	}
	// A pod writes the version: only numbers are repeated.
	version, ok := tailscaled.Release(a.TailscaledVersion)
	if !ok {
		version = "of another form"
	}
	effect := "what this version does not report counts as unknown, and changes nothing"
	if a.Polled {
		effect = "the agent cannot read its notifications and asks for its status every few seconds instead, so that changes take effect later"
	}
	return fmt.Sprintf("tailscaled has the version %s, and tests run with %s to %s: %s. "+
		"Set spec.proxy.image of the TailscaleEndpoints to an image of a tested version, or remove the field for the default image",
		version, tailscaled.Oldest, tailscaled.Newest, effect)
}

// silent reports whether an agent runs beside a version that does not ask for auth keys.
func silent(a *v1alpha1.MachineAgentStatus) bool {
	return a != nil && !tailscaled.AsksForKeys(a.TailscaledVersion)
}
