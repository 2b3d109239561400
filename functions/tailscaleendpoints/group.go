// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"slices"
	"strconv"
	"strings"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Resource names of a group's children, before a dash and the direction. Those of
// an endpoint's Service end in the endpoint's name.
const (
	nameServiceAccount = "serviceaccount"
	nameRole           = "role"
	nameRoleBinding    = "rolebinding"
	nameService        = "service"
	namePodMonitor     = "podmonitor"
	nameNetworkPolicy  = "networkpolicy"
	nameConfigMap      = "configmap"
	nameMachineSet     = "machineset"
	nameTargetService  = "service-endpoint"
)

// directions by what internal/proxy calls them.
var directions = map[string]tailnetv1alpha1.Direction{
	proxy.DirectionIngress: tailnetv1alpha1.DirectionIngress,
	proxy.DirectionEgress:  tailnetv1alpha1.DirectionEgress,
}

// defaultReplicas is the schema's default, for requests that did not pass the API server.
const defaultReplicas = 2

// A group is the proxies of one direction of a TailscaleEndpoints.
type group struct {
	*endpoints

	// direction as internal/proxy calls it.
	direction string

	// wants reports whether the group is wanted. One that is not is deleted once its pods have
	// ended.
	wants bool

	// set is the name of the StatefulSet.
	set string

	// count of replicas wanted.
	count int32

	// machineSet that was observed. Nil when there is none.
	machineSet *tailnetv1alpha1.MachineSet

	// machines that were observed, by replica.
	machines map[int32]*tailnetv1alpha1.MachineSummary

	// ports of the machines that lead into the tailnet, as they report them.
	ports map[reportedPort]tailnetv1alpha1.MachineSetEgressPort

	// role was observed, or what binds it.
	role bool
}

// newGroup returns the proxies of one direction.
func newGroup(e *endpoints, direction string) *group {
	g := &group{
		endpoints:  e,
		direction:  direction,
		set:        names.Child(e.owner.Name, direction),
		machineSet: e.machineSets[nameOf(nameMachineSet, direction)],
		role:       e.has(nameOf(nameRole, direction)) || e.has(nameOf(nameRoleBinding, direction)),
		wants:      e.wantsDirection(direction),
	}
	if g.wants {
		g.count = e.replicas()
	}
	g.machines, g.ports = summarize(g.machineSet, g.set)
	return g
}

// wantsDirection reports whether there are proxies of a direction: those that the spec names, or
// those that it needs.
func (f facts) wantsDirection(direction string) bool {
	switch t := f.spec.Proxy.ConnectionType; {
	case t == connectionTypes[direction] || t == gatewayv1alpha1.ConnectionTypeBidirectional:
		return true
	case t != "":
		return false
	case direction == proxy.DirectionEgress:
		return f.reachesOut()
	}
	return !f.reachesOut() || f.spec.DNS != nil || f.hosts
}

// connectionTypes by what internal/proxy calls a direction.
var connectionTypes = map[string]gatewayv1alpha1.ConnectionType{
	proxy.DirectionIngress: gatewayv1alpha1.ConnectionTypeIngress,
	proxy.DirectionEgress:  gatewayv1alpha1.ConnectionTypeEgress,
}

// connectionType returns the direction as the API names it.
func (g *group) connectionType() gatewayv1alpha1.ConnectionType { return connectionTypes[g.direction] }

// nameOf returns the resource name of a child of a group.
func nameOf(kind, direction string) string { return kind + "-" + direction }

// name returns the resource name of a child.
func (g *group) name(kind string) string { return nameOf(kind, g.direction) }

// summarize returns the machines of a set's StatefulSet, by replica, and their ports that lead into
// the tailnet. A machine that is listed and has no summary yet may exist, too.
func summarize(ms *tailnetv1alpha1.MachineSet, set string) (map[int32]*tailnetv1alpha1.MachineSummary, map[reportedPort]tailnetv1alpha1.MachineSetEgressPort) {
	machines, ports := map[int32]*tailnetv1alpha1.MachineSummary{}, map[reportedPort]tailnetv1alpha1.MachineSetEgressPort{}
	if ms == nil {
		return machines, ports
	}
	add := func(m tailnetv1alpha1.MachineSummary) {
		n, ok := strings.CutPrefix(m.Name, set+"-")
		if i, err := strconv.ParseInt(n, 10, 32); ok && err == nil {
			machines[int32(i)] = &m
		}
	}
	for _, m := range ms.Spec.Machines {
		add(tailnetv1alpha1.MachineSummary{Name: m.Name, Message: waitingForLogin})
	}
	for _, m := range ms.Status.Machines {
		add(m)
	}
	for _, p := range ms.Status.Egress {
		ports[reportedPort{p.Port, p.Protocol, p.Target}] = p
	}
	return machines, ports
}

// exists reports whether the group is wanted, or still has pods or machines. The provider keeps
// machines until their pods have ended.
func (g *group) exists() bool {
	if g.wants || g.machineSet == nil {
		return g.wants
	}
	return !g.seen() || len(g.machines) > 0 || g.pods().Replicas > 0
}

// wanted returns the replicas that are wanted: 0 up to count.
func (g *group) wanted() []int32 {
	out := make([]int32, 0, g.count)
	for i := range g.count {
		out = append(out, i)
	}
	return out
}

// surplus returns the replicas that are not wanted and whose pods may still run, in order.
func (g *group) surplus() []int32 {
	return slices.DeleteFunc(sortedKeys(g.machines), func(i int32) bool { return i < g.count })
}

// seen reports whether the provider has acted on the MachineSet as it is. What the
// status says is of an older one until then.
func (g *group) seen() bool {
	return g.machineSet != nil && g.machineSet.Status.ObservedGeneration >= g.machineSet.GetGeneration()
}

// pods returns the summary of the pods in the MachineSet's status.
func (g *group) pods() tailnetv1alpha1.StatefulSetSummary {
	if g.machineSet == nil || g.machineSet.Status.StatefulSet == nil {
		return tailnetv1alpha1.StatefulSetSummary{}
	}
	return *g.machineSet.Status.StatefulSet
}

// shrinks reports whether the provider has yet to act on a MachineSet that asks for
// fewer replicas. What its status says of those that stay still holds: no pod is
// started for them to go.
func (g *group) shrinks() bool {
	return g.machineSet != nil && !g.seen() && g.pods().Replicas > g.count
}

// podsReady reports whether all pods that the StatefulSet asks for are ready and of
// its template. A run that scales it does not judge by what it asks for itself:
// Crossplane writes the composite's references in that run, and conditions that
// change with them cost twice.
func (g *group) podsReady() bool {
	p := g.pods()
	return (g.seen() || g.shrinks()) && p.Observed && p.Message == "" && p.ReadyReplicas >= p.Replicas && p.UpdatedReplicas >= p.Replicas
}

// readyReplicas returns how many of the wanted pods are ready. Pods that are about to be removed
// do not count.
func (g *group) readyReplicas() int32 { return min(g.pods().ReadyReplicas, g.count) }

// allMachinesReady reports whether all wanted machines serve: in the tailnet, and
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
