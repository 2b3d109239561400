// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleproxygroup

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// ready returns the condition ProxyGroupReady: True if the group has exactly the devices that it
// should have, and all are in their tailnets. Its message does not count devices: each write of
// the composite counts against it in Crossplane's circuit breaker, and the status counts anyway.
func (g *group) ready() compose.Condition {
	c := compose.Condition{
		Type:    meta.TypeProxyGroupReady,
		Status:  compose.True,
		Reason:  meta.ReasonProxyGroupReady,
		Message: "All devices are in their tailnets",
	}
	for _, m := range g.members {
		if m.endpoints().Complete() {
			continue
		}
		c.Status, c.Reason = compose.False, meta.ReasonProxyGroupCreating
		// Problems that the user must fix come before those that only need time.
		if p := m.endpoints().Problem(); p != "" {
			c.Message = fmt.Sprintf("TailscaleEndpoints %s: %s", m.name, p)
			return c
		}
		c.Message = "Waiting for devices; status.endpoints counts them, and each TailscaleEndpoints says what it waits for"
	}
	return c
}

// status returns the status of the TailscaleProxyGroup.
func (g *group) status() (gatewayv1alpha1.TailscaleProxyGroupStatus, error) {
	s := gatewayv1alpha1.TailscaleProxyGroupStatus{
		DesiredReplicas: ptr.To[int32](0),
		OnlineReplicas:  ptr.To[int32](0),
		Replicas:        ptr.To(g.replicas()),
	}
	names := make([]string, 0, len(g.members))
	for _, m := range g.members {
		names = append(names, m.name)
		*s.DesiredReplicas += m.devices
		*s.OnlineReplicas += m.endpoints().Online()
		s.Endpoints = append(s.Endpoints, gatewayv1alpha1.ProxyGroupEndpoints{
			Name:            m.name,
			Tailnet:         m.tailnet,
			Zone:            m.zone,
			DesiredReplicas: m.devices,
			OnlineReplicas:  m.endpoints().Online(),
		})
		if m.observed == nil {
			continue
		}
		for _, d := range m.observed.Status.Devices {
			s.Devices = append(s.Devices, device(m, d))
		}
	}
	r, err := labels.NewRequirement(meta.LabelEndpoints, selection.In, names)
	if err != nil {
		return s, errors.Wrap(err, "cannot select the pods of the group")
	}
	s.Selector = labels.NewSelector().Add(*r).String()
	return s, nil
}

// device returns the status of a member's device.
func device(m *member, d gatewayv1alpha1.DeviceStatus) gatewayv1alpha1.ProxyGroupDevice {
	out := gatewayv1alpha1.ProxyGroupDevice{
		Hostname:      d.Hostname,
		TailscaleFQDN: d.TailscaleFQDN,
		Addresses:     d.Addresses,
		Tailnet:       m.tailnet,
		Zone:          m.zone,
		Pod:           d.StatefulSetPod,
		Online:        d.Online,
	}
	if len(out.Addresses) == 0 && d.TailscaleIP != "" {
		out.Addresses = []string{d.TailscaleIP}
	}
	return out
}

// replicas returns the lowest number of ready replicas among the endpoints that have the group's
// number of replicas. An autoscaler compares it with spec.replicas. It is zero if there are no such
// endpoints.
func (g *group) replicas() int32 {
	var smallest *int32
	for _, m := range g.members {
		if !m.follows {
			continue
		}
		n := int32(0)
		if m.observed != nil {
			n = ptr.Deref(m.observed.Status.Replicas, 0)
		}
		if smallest == nil || n < *smallest {
			smallest = &n
		}
	}
	return ptr.Deref(smallest, 0)
}
