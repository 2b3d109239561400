// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Resource names of a group's children, before a dash and the direction. Those of
// an endpoint's Service end in the endpoint's name.
const (
	nameStatefulSet    = "statefulset"
	nameServiceAccount = "serviceaccount"
	nameRole           = "role"
	nameRoleBinding    = "rolebinding"
	nameService        = "service"
	nameBudget         = "poddisruptionbudget"
	namePodMonitor     = "podmonitor"
	nameNetworkPolicy  = "networkpolicy"
	nameConfigMap      = "configmap"
	nameMachineSet     = "machineset"
	nameTargetService  = "service-endpoint"
)

// defaultReplicas is the schema's default, for who calls the function without it.
const defaultReplicas = 2

// A group is the proxies of one direction of a TailscaleEndpoints: what is wanted
// of them, and what was seen.
type group struct {
	*endpoints

	// direction as internal/proxy calls it.
	direction string

	// wants tells whether the group is to be. One that is not goes once its pods
	// have gone.
	wants bool

	// set is the name of the StatefulSet.
	set string

	// count of replicas wanted.
	count int32

	// statefulSet that was observed. Nil when there is none.
	statefulSet *appsv1.StatefulSet

	// machines that were observed, by replica.
	machines map[int32]*tailnetv1alpha1.MachineSummary

	// budget was observed.
	budget bool
}

func newGroup(e *endpoints, direction string) *group {
	g := &group{
		endpoints: e,
		direction: direction,
		set:       compose.ChildName(e.owner.Name, direction),
		machines:  map[int32]*tailnetv1alpha1.MachineSummary{},
	}
	t := e.xr.Spec.Proxy.ConnectionType
	if t == "" {
		t = gatewayv1alpha1.ConnectionTypeIngress
	}
	g.wants = t == g.connectionType() || t == gatewayv1alpha1.ConnectionTypeBidirectional
	if g.wants {
		g.count = e.replicas()
	}
	return g
}

func (g *group) connectionType() gatewayv1alpha1.ConnectionType {
	if g.direction == proxy.DirectionEgress {
		return gatewayv1alpha1.ConnectionTypeEgress
	}
	return gatewayv1alpha1.ConnectionTypeIngress
}

// name of a child.
func (g *group) name(kind string) string { return kind + "-" + g.direction }

func (g *group) observe(r *compose.Run) error {
	sts := &appsv1.StatefulSet{}
	ok, err := r.Observed(g.name(nameStatefulSet), sts)
	if err != nil {
		return err
	}
	if ok {
		g.statefulSet = sts
	}
	for _, name := range r.ObservedNames() {
		g.budget = g.budget || name == g.name(nameBudget)
	}
	ms := &tailnetv1alpha1.MachineSet{}
	if _, err := r.Observed(g.name(nameMachineSet), ms); err != nil {
		return err
	}
	// One that is listed and not summed up yet may be there, too.
	for _, m := range ms.Spec.Machines {
		g.observeMachine(tailnetv1alpha1.MachineSummary{Name: m.Name, Message: waitingForLogin})
	}
	for _, m := range ms.Status.Machines {
		g.observeMachine(m)
	}
	return nil
}

func (g *group) observeMachine(m tailnetv1alpha1.MachineSummary) {
	n, ok := strings.CutPrefix(m.Name, g.set+"-")
	if i, err := strconv.ParseInt(n, 10, 32); ok && err == nil {
		g.machines[int32(i)] = &m
	}
}

// exists tells whether the group is to be, or has pods yet.
func (g *group) exists() bool { return g.wants || g.shrinking() }

// wanted are the replicas that are to be: 0 up to count.
func (g *group) wanted() []int32 {
	out := make([]int32, 0, g.count)
	for i := range g.count {
		out = append(out, i)
	}
	return out
}

// condemned are the replicas whose Machines are to go once their pods have gone,
// in order. A Machine that went first would leave its pod with a key that was
// revoked. They go all together: each step would be a change of several children,
// for each of which Crossplane's circuit breaker charges the composite.
func (g *group) condemned() []int32 {
	var out []int32
	for i := range g.machines {
		if i >= g.count && g.shrinking() {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// shrinking tells whether there may be more pods than are wanted. Status counts
// only once the controller has seen the spec, and the spec only once it is what is
// wanted.
func (g *group) shrinking() bool {
	s := g.statefulSet
	if s == nil {
		return false
	}
	settled := ptr.Deref(s.Spec.Replicas, 1) == g.count && s.Status.ObservedGeneration >= s.GetGeneration()
	return !settled || s.Status.Replicas > g.count
}

// podsReady tells whether all pods that the StatefulSet asks for are ready and of
// its template. A run that scales it does not judge by what it asks for itself:
// Crossplane writes the composite's references in that run, and conditions that
// change with them cost twice.
func (g *group) podsReady() bool {
	s := g.statefulSet
	if s == nil {
		return false
	}
	asked := ptr.Deref(s.Spec.Replicas, 1)
	return s.Status.ObservedGeneration >= s.GetGeneration() &&
		s.Status.ReadyReplicas >= asked &&
		s.Status.UpdatedReplicas >= asked
}

// readyReplicas are the pods that are ready, as far as they are wanted: what is
// about to go changes nothing for who reads the status.
func (g *group) readyReplicas() int32 {
	if g.statefulSet == nil {
		return 0
	}
	return min(g.statefulSet.Status.ReadyReplicas, g.count)
}

// wantsBudget tells whether there is to be a PodDisruptionBudget. One pod cannot
// be spared, so it has none. And a budget is made once the pods are there: before,
// it protects nothing, and its status changes with each of them.
func (g *group) wantsBudget() bool {
	if g.count < 2 {
		return false
	}
	return g.budget || g.podsReady() && ptr.Deref(g.statefulSet.Spec.Replicas, 1) == g.count
}

// allMachinesReady tells whether all wanted machines serve: in the tailnet, and
// run by pods that are ready.
func (g *group) allMachinesReady() bool {
	if !g.podsReady() {
		return false
	}
	for i, m := range g.machines {
		if i < g.count && !m.Ready {
			return false
		}
	}
	return len(g.machines) > 0 || g.count == 0
}
