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
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/proxies"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Values of EndpointStatus.HealthStatus.
const (
	healthy   = "Healthy"
	unhealthy = "Unhealthy"
)

// status returns the status of the TailscaleEndpoints.
func status(p *endpointsPlan) gatewayv1alpha1.TailscaleEndpointsStatus {
	s := gatewayv1alpha1.TailscaleEndpointsStatus{
		TotalEndpoints:   ptr.To[int32](0),
		HealthyEndpoints: ptr.To[int32](0),
		Replicas:         ptr.To[int32](0),
	}
	if p.tailnetOpen {
		s.Tailnet = p.spec.Tailnet
	}
	s.DiscoveredEndpoints = p.search.Status()
	if p.search.Wanted() && p.discovery != nil {
		s.LastSync = p.discovery.Status.AtProvider.LastChanged
	}
	if !p.composed {
		return s
	}
	for _, g := range p.proxies.Groups() {
		addGroup(&s, p, g)
	}
	for i, g := range p.proxies.WantedGroups() {
		// An autoscaler expects as many pods as there are replicas, so the selector is that of
		// one group.
		if i == 0 {
			s.Selector = labels.SelectorFromSet(options(p, g).PodLabels()).String()
			s.Replicas = ptr.To(g.ReadyReplicas())
		}
		s.Replicas = ptr.To(min(*s.Replicas, g.ReadyReplicas()))
	}
	s.EgressTargets = p.forwarding.Status(p.serviceNames)
	return s
}

// addGroup adds the replicas of a group to the status.
func addGroup(s *gatewayv1alpha1.TailscaleEndpointsStatus, p *endpointsPlan, g *proxies.Group) {
	*s.TotalEndpoints += g.Count
	// Count only ready pods, not all: each write of the composite counts against it in Crossplane's
	// circuit breaker, and this one is made together with that of replicas.
	s.StatefulSetRefs = append(s.StatefulSetRefs, gatewayv1alpha1.StatefulSetRef{
		Name:            g.Set,
		Namespace:       p.owner.Namespace,
		ConnectionType:  g.ConnectionType(),
		ReadyReplicas:   g.ReadyReplicas(),
		DesiredReplicas: g.Count,
	})
	s.StatefulSets = append(s.StatefulSets, statefulSetStatus(p, g))
	for _, i := range g.Wanted() {
		e := endpoint(p, g, i)
		if e.HealthStatus == healthy {
			*s.HealthyEndpoints++
		}
		s.EndpointStatus = append(s.EndpointStatus, e)
		if m := g.Machines[i]; m != nil && m.NodeID != "" {
			name := names.Machine(g.Set, i)
			d := device(name, names.Host(p.owner.Namespace, name), m)
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

// statefulSetStatus returns the status of a group's StatefulSet.
func statefulSetStatus(p *endpointsPlan, g *proxies.Group) gatewayv1alpha1.StatefulSetStatus {
	out := gatewayv1alpha1.StatefulSetStatus{
		Name:          g.Set,
		Namespace:     p.owner.Namespace,
		Type:          g.ConnectionType(),
		Replicas:      g.Count,
		ReadyReplicas: g.ReadyReplicas(),
		Service:       names.Service(g.Set),
	}
	// The time of creation is added together with the first ready pod: alone it would cost a
	// write of the composite.
	reported := slices.ContainsFunc(p.reported, func(s gatewayv1alpha1.StatefulSetStatus) bool {
		return s.Name == g.Set && s.CreatedAt != nil
	})
	if out.ReadyReplicas > 0 || reported {
		out.CreatedAt = g.Pods().CreatedAt
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

// endpoint returns the status of a replica.
func endpoint(p *endpointsPlan, g *proxies.Group, i int32) gatewayv1alpha1.EndpointStatus {
	e := gatewayv1alpha1.EndpointStatus{Name: names.Machine(g.Set, i), Type: g.ConnectionType(), HealthStatus: unhealthy, Message: proxies.WaitingForLogin}
	m := g.Machines[i]
	if m == nil {
		return e
	}
	e.TailscaleIP, e.Message = firstAddress(m), m.Message
	// A machine that the provider cannot reconcile continues to serve, for example while
	// Tailscale's API is unavailable. The message reports this.
	if m.Ready || m.Failed && m.Online {
		e.HealthStatus = healthy
		e.PodIP, e.Ports = podAddress(m)
		e.UnhealthyTargets = unhealthyTargets(p.health, e.PodIP)
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
