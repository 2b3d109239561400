// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Endpoints are a TailscaleEndpoints that another composite makes, as it is observed.
type Endpoints struct {
	// Observed is nil where there is none yet.
	Observed *gatewayv1alpha1.TailscaleEndpoints
	// Devices are how many it is to have in the tailnet.
	Devices int32
}

// Online devices of it.
func (e Endpoints) Online() int32 {
	n := int32(0)
	if e.Observed == nil {
		return n
	}
	for _, d := range e.Observed.Status.Devices {
		if d.Online {
			n++
		}
	}
	return n
}

// Complete reports whether it has exactly the devices that are wanted, and all are in the
// tailnet.
func (e Endpoints) Complete() bool {
	return e.Observed != nil && len(e.Observed.Status.Devices) == int(e.Devices) && e.Online() == e.Devices
}

// Settled reports whether it is complete, and ready in all else.
func (e Endpoints) Settled() bool {
	return e.Complete() && e.Observed.Status.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// Problem that a person must fix before it can have its devices. Empty if there is none.
func (e Endpoints) Problem() string {
	if e.Observed == nil {
		return ""
	}
	if c := e.Observed.Status.GetCondition(meta.TypeTailnetAccepted); c.Status == corev1.ConditionFalse {
		return c.Message
	}
	if c := e.Observed.Status.GetCondition(meta.TypeMachinesReady); c.Status == corev1.ConditionFalse && c.Reason == meta.ReasonCannotPrepareMachine {
		return c.Message
	}
	return ""
}

// Starting reports whether it is still on its way to its first devices. One that has lost
// them is not: it must not keep others from their place.
func (e Endpoints) Starting() bool {
	return e.Observed != nil && e.Problem() == "" && len(e.Observed.Status.Devices) < int(e.Devices)
}
