// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Values of EndpointStatus.HealthStatus.
const (
	healthy   = "Healthy"
	unhealthy = "Unhealthy"
)

func (g *group) status() gatewayv1alpha1.TailscaleEndpointsStatus {
	s := gatewayv1alpha1.TailscaleEndpointsStatus{
		TotalEndpoints:   ptr.To[int32](0),
		HealthyEndpoints: ptr.To[int32](0),
		Replicas:         ptr.To[int32](0),
	}
	if !g.composed {
		return s
	}
	s.TotalEndpoints = ptr.To(g.replicas)
	s.Selector = labels.SelectorFromSet(g.options(nil).PodLabels()).String()
	ref := gatewayv1alpha1.StatefulSetRef{
		Name:            g.set,
		Namespace:       g.owner.Namespace,
		ConnectionType:  gatewayv1alpha1.ConnectionTypeIngress,
		DesiredReplicas: g.replicas,
	}
	if g.statefulSet != nil {
		ref.ReadyReplicas = g.statefulSet.Status.ReadyReplicas
	}
	// Pods that are ready, not all that exist: each write of the composite counts
	// against it in Crossplane's circuit breaker, and this one comes with the ref's.
	s.Replicas = ptr.To(ref.ReadyReplicas)
	s.StatefulSetRefs = []gatewayv1alpha1.StatefulSetRef{ref}
	s.StatefulSets = []gatewayv1alpha1.StatefulSetStatus{g.statefulSetStatus()}
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
	return s
}

func (g *group) statefulSetStatus() gatewayv1alpha1.StatefulSetStatus {
	s := gatewayv1alpha1.StatefulSetStatus{
		Name:      g.set,
		Namespace: g.owner.Namespace,
		Type:      gatewayv1alpha1.ConnectionTypeIngress,
		Replicas:  g.replicas,
		Service:   compose.ServiceName(g.set),
	}
	if g.statefulSet == nil {
		return s
	}
	s.ReadyReplicas = g.statefulSet.Status.ReadyReplicas
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
	e := gatewayv1alpha1.EndpointStatus{Name: compose.MachineName(g.set, i), HealthStatus: unhealthy}
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

// machinesReady says what the user can mend first: what the provider cannot do.
// Its message does not count: each write of the composite counts against it in
// Crossplane's circuit breaker, and the status lists the machines anyway.
func (g *group) machinesReady() compose.Condition {
	c := compose.Condition{Type: meta.TypeMachinesReady, Status: compose.False}
	if !g.composed {
		c.Reason, c.Message = meta.ReasonMachinesNotReady, "There are no machines while the tailnet is not accepted"
		return c
	}
	waiting := false
	for _, i := range g.wanted() {
		name, m := compose.MachineName(g.set, i), g.machines[i]
		if m != nil && m.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionFalse {
			c.Reason = meta.ReasonCannotPrepareMachine
			c.Message = fmt.Sprintf("Machine %s: %s", name, m.GetCondition(xpv2.TypeSynced).Message)
			return c
		}
		// One that is made in this run is judged in the next, see podsReady.
		waiting = waiting || m != nil && problem(m) != ""
	}
	// Pods become ready once their machines have joined. Told together, both
	// cost one write of the composite.
	if waiting || !g.podsReady() || len(g.machines) == 0 && g.replicas > 0 {
		c.Reason = meta.ReasonMachinesNotReady
		c.Message = "Waiting for machines to join the tailnet; status.endpointStatus says what each waits for"
		return c
	}
	c.Status, c.Reason = compose.True, meta.ReasonAllMachinesReady
	c.Message = "All machines are in the tailnet"
	return c
}

func (g *group) statefulSetsReady() compose.Condition {
	c := compose.Condition{Type: meta.TypeStatefulSetsReady, Status: compose.False, Reason: meta.ReasonReplicasNotReady}
	if !g.composed {
		c.Message = "There are no proxies while the tailnet is not accepted"
		return c
	}
	switch {
	case g.podsReady():
		c.Status, c.Reason = compose.True, meta.ReasonAllReplicasReady
		c.Message = fmt.Sprintf("All replicas of StatefulSet %s are ready", g.set)
	case g.statefulSet != nil && g.statefulSet.Status.ReadyReplicas >= g.replicas:
		c.Message = fmt.Sprintf("StatefulSet %s is being rolled out", g.set)
	default:
		c.Message = fmt.Sprintf("Waiting for replicas of StatefulSet %s; status.statefulSetRefs counts them", g.set)
	}
	return c
}
