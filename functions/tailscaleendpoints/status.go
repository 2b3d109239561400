// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Values of EndpointStatus.HealthStatus.
const (
	healthy   = "Healthy"
	unhealthy = "Unhealthy"
)

func (e *endpoints) status(p *egressPlan) gatewayv1alpha1.TailscaleEndpointsStatus {
	s := gatewayv1alpha1.TailscaleEndpointsStatus{
		TotalEndpoints:   ptr.To[int32](0),
		HealthyEndpoints: ptr.To[int32](0),
		Replicas:         ptr.To[int32](0),
	}
	s.DiscoveredEndpoints = e.discoveredStatus()
	if e.xr.Spec.AutoDiscovery != nil && e.discovery != nil {
		s.LastSync = e.discovery.Status.AtProvider.LastChanged
	}
	if !e.composed {
		return s
	}
	for _, g := range e.groups() {
		g.addStatus(&s)
	}
	for i, g := range e.wantedGroups() {
		// An autoscaler reckons by as many pods as there are replicas, so it
		// is shown those of one group.
		if i == 0 {
			s.Selector = labels.SelectorFromSet(g.options(nil, p).PodLabels()).String()
			s.Replicas = ptr.To(g.readyReplicas())
		}
		s.Replicas = ptr.To(min(*s.Replicas, g.readyReplicas()))
	}
	s.EgressTargets = e.egressTargets(p)
	return s
}

// addStatus of a group's replicas to that of all.
func (g *group) addStatus(s *gatewayv1alpha1.TailscaleEndpointsStatus) {
	*s.TotalEndpoints += g.count
	// Pods that are ready, not all that exist: each write of the composite counts
	// against it in Crossplane's circuit breaker, and this one comes with replicas.
	s.StatefulSetRefs = append(s.StatefulSetRefs, gatewayv1alpha1.StatefulSetRef{
		Name:            g.set,
		Namespace:       g.owner.Namespace,
		ConnectionType:  g.connectionType(),
		ReadyReplicas:   g.readyReplicas(),
		DesiredReplicas: g.count,
	})
	s.StatefulSets = append(s.StatefulSets, g.statefulSetStatus())
	for _, i := range g.wanted() {
		e := g.endpoint(i)
		if e.HealthStatus == healthy {
			*s.HealthyEndpoints++
		}
		s.EndpointStatus = append(s.EndpointStatus, e)
		if m := g.machines[i]; m != nil && m.Status.AtProvider.NodeID != "" {
			s.Devices = append(s.Devices, device(compose.MachineName(g.set, i), m))
		}
	}
}

func (g *group) statefulSetStatus() gatewayv1alpha1.StatefulSetStatus {
	s := gatewayv1alpha1.StatefulSetStatus{
		Name:          g.set,
		Namespace:     g.owner.Namespace,
		Type:          g.connectionType(),
		Replicas:      g.count,
		ReadyReplicas: g.readyReplicas(),
		Service:       compose.ServiceName(g.set),
	}
	if g.statefulSet == nil {
		return s
	}
	if t := g.statefulSet.GetCreationTimestamp(); !t.IsZero() {
		s.CreatedAt = &t
	}
	return s
}

func device(pod string, m *tailnetv1alpha1.Machine) gatewayv1alpha1.DeviceStatus {
	o := m.Status.AtProvider
	d := gatewayv1alpha1.DeviceStatus{
		Hostname:       o.Hostname,
		TailscaleFQDN:  o.Name,
		TailscaleIP:    address(m),
		Addresses:      o.Addresses,
		NodeID:         o.NodeID,
		StatefulSetPod: pod,
		Online:         ptr.Deref(o.Online, false),
		Tags:           o.Tags,
	}
	if d.Hostname == "" {
		d.Hostname = m.Spec.ForProvider.Hostname
	}
	return d
}

// address of a machine: its first, which is IPv4 if it has one.
func address(m *tailnetv1alpha1.Machine) string {
	if a := m.Status.AtProvider.Addresses; len(a) > 0 {
		return a[0]
	}
	return ""
}

func (g *group) endpoint(i int32) gatewayv1alpha1.EndpointStatus {
	e := gatewayv1alpha1.EndpointStatus{Name: compose.MachineName(g.set, i), Type: g.connectionType(), HealthStatus: unhealthy}
	m := g.machines[i]
	if m != nil {
		e.TailscaleIP = address(m)
	}
	e.Message = problem(m)
	if e.Message == "" {
		e.HealthStatus = healthy
		e.PodIP, e.Ports = podAddress(m)
	}
	return e
}

// podAddress and ports of a healthy machine. Of others the address may be that of
// a pod that is gone, and telling it would cost more writes of the composite:
// agents report once their machine has joined.
func podAddress(m *tailnetv1alpha1.Machine) (string, []gatewayv1alpha1.EndpointPort) {
	if m.Status.Agent == nil || m.Status.Agent.PodIP == "" {
		return "", nil
	}
	var out []gatewayv1alpha1.EndpointPort
	for _, p := range proxy.Ports() {
		out = append(out, gatewayv1alpha1.EndpointPort{Name: p.Name, Port: p.ContainerPort, Protocol: p.Protocol})
	}
	return m.Status.Agent.PodIP, out
}

// problem tells why a machine is not in the tailnet. Empty if it is.
func problem(m *tailnetv1alpha1.Machine) string {
	switch {
	case m != nil && m.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionFalse:
		return m.GetCondition(xpv2.TypeSynced).Message
	case m == nil || m.Status.AtProvider.NodeID == "":
		return "Waiting for the pod to log in to the tailnet with the auth key that the provider issues"
	case !ptr.Deref(m.Status.AtProvider.Authorized, true):
		return "Waiting for an admin of the tailnet to authorize the device"
	case !ptr.Deref(m.Status.AtProvider.Online, true):
		return "The device is offline; see whether its pod runs and reaches the control server"
	case m.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue:
		return "Waiting for the device to be ready"
	}
	return ""
}
