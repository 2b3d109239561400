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

// Resource names of a group's children, followed by a dash and the direction. Those of an
// endpoint's Service end in the endpoint's name.
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

// directions maps the names in internal/proxy to those in the API.
var directions = map[string]tailnetv1alpha1.Direction{
	proxy.DirectionIngress: tailnetv1alpha1.DirectionIngress,
	proxy.DirectionEgress:  tailnetv1alpha1.DirectionEgress,
}

// defaultReplicas is the schema's default for requests that did not pass the API server.
const defaultReplicas = 2

// A group is the proxies of one direction of a TailscaleEndpoints.
type group struct {
	*endpoints

	// direction is the name of the direction in internal/proxy.
	direction string

	// wants reports whether the group is wanted. A group that is no longer wanted is deleted once
	// its pods have ended.
	wants bool

	// set is the name of the StatefulSet.
	set string

	// count is the number of replicas that are wanted.
	count int32

	// machineSet is the observed MachineSet, or nil if there is none.
	machineSet *tailnetv1alpha1.MachineSet

	// machines are the observed machines by replica.
	machines map[int32]*tailnetv1alpha1.MachineSummary

	// ports are the machines' ports that lead into the tailnet, as the machines report them.
	ports map[reportedPort]tailnetv1alpha1.MachineSetEgressPort

	// role reports whether the Role or its RoleBinding was observed.
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

// wantsDirection reports whether there are proxies of a direction: because the spec lists it or
// needs it.
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

// connectionTypes maps the directions in internal/proxy to those in the API.
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

// summarize returns the machines of a set's StatefulSet by replica, and their ports that lead into
// the tailnet. A listed machine without a summary may also exist.
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

// seen reports whether the provider has processed the current MachineSet. Otherwise the status
// describes an older one.
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

// shrinks reports whether the provider has yet to process a MachineSet with fewer replicas. Its
// status remains valid for the replicas that stay, because no pod is started to remove others.
func (g *group) shrinks() bool {
	return g.machineSet != nil && !g.seen() && g.pods().Replicas > g.count
}

// podsReady reports whether all pods of the StatefulSet are ready and match its template. A run
// that scales the StatefulSet does not use its new number of replicas: Crossplane writes the
// composite's references in that run, and conditions that change with them cost twice as many
// writes.
func (g *group) podsReady() bool {
	p := g.pods()
	return (g.seen() || g.shrinks()) && p.Observed && p.Message == "" && p.ReadyReplicas >= p.Replicas && p.UpdatedReplicas >= p.Replicas
}

// readyReplicas returns the number of wanted pods that are ready. It omits pods that are about to
// be removed.
func (g *group) readyReplicas() int32 { return min(g.pods().ReadyReplicas, g.count) }

// allMachinesReady reports whether all wanted machines serve: they are in the tailnet, and their
// pods are ready.
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
