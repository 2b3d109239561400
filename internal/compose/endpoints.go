// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// An Endpoints is an observed TailscaleEndpoints that another composite composes.
type Endpoints struct {
	// Observed is nil if there is none yet.
	Observed *gatewayv1alpha1.TailscaleEndpoints
	// Devices is the desired number of devices in the tailnet.
	Devices int32
}

// Online returns the number of its devices that are online.
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

// Complete reports whether it has exactly the desired devices, and all are in the tailnet.
func (e Endpoints) Complete() bool {
	return e.Observed != nil && len(e.Observed.Status.Devices) == int(e.Devices) && e.Online() == e.Devices
}

// Settled reports whether it is complete and ready.
func (e Endpoints) Settled() bool {
	return e.Complete() && e.Observed.Status.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// Problem returns the problem that the user has to fix before it can have its devices, or an empty
// string.
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

// Unfinished reports whether it has fewer devices than desired.
func (e Endpoints) Unfinished() bool {
	return e.Observed == nil || len(e.Observed.Status.Devices) < int(e.Devices)
}

// Starting reports whether it still waits for its first devices. Endpoints that have lost devices
// do not count, because they must not prevent others from starting.
func (e Endpoints) Starting() bool {
	return e.Observed != nil && e.Problem() == "" && e.Unfinished()
}

// IngressPorts returns the ports at which ingress proxies may host services, according to spec.ports
// of their TailscaleEndpoints. Ports of Tailscale Services use TCP, and so do all protocols except UDP.
func IngressPorts(ports gatewayv1alpha1.EndpointsPorts) *tailnetv1alpha1.ProxySetPorts {
	out := &tailnetv1alpha1.ProxySetPorts{All: len(ports) == 0}
	for _, p := range ports {
		if p.Protocol != gatewayv1alpha1.EndpointProtocolUDP {
			out.Allowed = append(out.Allowed, p.Port)
		}
	}
	slices.Sort(out.Allowed)
	out.Allowed = slices.Compact(out.Allowed)
	return out
}
