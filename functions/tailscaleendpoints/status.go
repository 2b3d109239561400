// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Values of EndpointStatus.HealthStatus.
const (
	healthy   = "Healthy"
	unhealthy = "Unhealthy"
)

// status returns the status of the TailscaleEndpoints.
func (e *endpoints) status(p *egressPlan) gatewayv1alpha1.TailscaleEndpointsStatus {
	s := gatewayv1alpha1.TailscaleEndpointsStatus{
		TotalEndpoints:   ptr.To[int32](0),
		HealthyEndpoints: ptr.To[int32](0),
		Replicas:         ptr.To[int32](0),
	}
	if e.tailnetOpen {
		s.Tailnet = e.spec.Tailnet
	}
	s.DiscoveredEndpoints = e.discoveredStatus()
	if e.spec.AutoDiscovery != nil && e.discovery != nil {
		s.LastSync = e.discovery.Status.AtProvider.LastChanged
	}
	if !e.composed {
		return s
	}
	for _, g := range e.groups() {
		g.addStatus(&s)
	}
	for i, g := range e.wantedGroups() {
		// An autoscaler expects as many pods as there are replicas, so the selector is that of
		// one group.
		if i == 0 {
			s.Selector = labels.SelectorFromSet(g.options(p).PodLabels()).String()
			s.Replicas = ptr.To(g.readyReplicas())
		}
		s.Replicas = ptr.To(min(*s.Replicas, g.readyReplicas()))
	}
	s.EgressTargets = e.egressTargets(p)
	return s
}

// addStatus adds the group's replicas to the status.
func (g *group) addStatus(s *gatewayv1alpha1.TailscaleEndpointsStatus) {
	*s.TotalEndpoints += g.count
	// Count only ready pods, not all: each write of the composite counts against it in Crossplane's
	// circuit breaker, and this one is made together with that of replicas.
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
		if m := g.machines[i]; m != nil && m.NodeID != "" {
			name := names.Machine(g.set, i)
			d := device(name, names.Host(g.owner.Namespace, name), m)
			s.Devices = append(s.Devices, d)
			s.Machines = append(s.Machines, gatewayv1alpha1.MachineStatus{
				Name:           cmp.Or(names.InTailnet(d.TailscaleFQDN), d.Hostname),
				TailscaleIP:    d.TailscaleIP,
				Connected:      d.Connected,
				StatefulSetPod: d.StatefulSetPod,
			})
		}
	}
}

// statefulSetStatus returns the status of the group's StatefulSet.
func (g *group) statefulSetStatus() gatewayv1alpha1.StatefulSetStatus {
	out := gatewayv1alpha1.StatefulSetStatus{
		Name:          g.set,
		Namespace:     g.owner.Namespace,
		Type:          g.connectionType(),
		Replicas:      g.count,
		ReadyReplicas: g.readyReplicas(),
		Service:       names.Service(g.set),
	}
	// The time of creation is added together with the first ready pod: alone it would cost a
	// write of the composite.
	reported := slices.ContainsFunc(g.reported, func(s gatewayv1alpha1.StatefulSetStatus) bool {
		return s.Name == g.set && s.CreatedAt != nil
	})
	if out.ReadyReplicas > 0 || reported {
		out.CreatedAt = g.pods().CreatedAt
	}
	return out
}

// device returns the status of a machine as a device of the tailnet.
func device(pod, hostname string, m *tailnetv1alpha1.MachineSummary) gatewayv1alpha1.DeviceStatus {
	return gatewayv1alpha1.DeviceStatus{
		Hostname:       cmp.Or(m.Hostname, hostname),
		TailscaleFQDN:  m.DNSName,
		TailscaleIP:    firstAddress(m),
		Addresses:      m.Addresses,
		NodeID:         m.NodeID,
		StatefulSetPod: pod,
		Online:         m.Online,
		// Agents report once their machine has joined.
		Connected: m.Online && m.PodIP != "",
		LastSeen:  m.LastSeen,
		Tags:      m.Tags,
	}
}

// firstAddress returns a machine's first address, which is IPv4 if it has one.
func firstAddress(m *tailnetv1alpha1.MachineSummary) string {
	if len(m.Addresses) > 0 {
		return m.Addresses[0]
	}
	return ""
}

// waitingForLogin is the message for a machine on which the provider has not reported yet.
const waitingForLogin = "Waiting for the pod to log in to the tailnet with the auth key that the provider issues"

// endpoint returns the status of a replica.
func (g *group) endpoint(i int32) gatewayv1alpha1.EndpointStatus {
	e := gatewayv1alpha1.EndpointStatus{Name: names.Machine(g.set, i), Type: g.connectionType(), HealthStatus: unhealthy, Message: waitingForLogin}
	m := g.machines[i]
	if m == nil {
		return e
	}
	e.TailscaleIP, e.Message = firstAddress(m), m.Message
	// A machine that the provider cannot reconcile continues to serve, for example while
	// Tailscale's API is unavailable. The message reports this.
	if m.Ready || m.Failed && m.Online {
		e.HealthStatus = healthy
		e.PodIP, e.Ports = podAddress(m)
		e.UnhealthyTargets = g.unhealthyTargets(e.PodIP)
	}
	return e
}

// podAddress returns the address and the ports of a healthy machine's pod. The address of
// another machine may be that of a pod that has ended, and reporting it would cost more writes
// of the composite: agents report once their machine has joined.
func podAddress(m *tailnetv1alpha1.MachineSummary) (string, []gatewayv1alpha1.EndpointPort) {
	if m.PodIP == "" {
		return "", nil
	}
	return m.PodIP, podPorts(m)
}
