// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package proxies holds the proxies of a TailscaleEndpoints, a group for each direction: those that its spec
// wants, and what the provider reports on their machines and pods.
package proxies

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// directions maps the names in internal/proxy to those in the API.
var directions = map[string]tailnetv1alpha1.Direction{
	proxy.DirectionIngress: tailnetv1alpha1.DirectionIngress,
	proxy.DirectionEgress:  tailnetv1alpha1.DirectionEgress,
}

// connectionTypes maps the directions in internal/proxy to those of a spec.
var connectionTypes = map[string]gatewayv1alpha1.ConnectionType{
	proxy.DirectionIngress: gatewayv1alpha1.ConnectionTypeIngress,
	proxy.DirectionEgress:  gatewayv1alpha1.ConnectionTypeEgress,
}

// defaultReplicas is the schema's default for requests that did not pass the API server.
const defaultReplicas = 2

// WaitingForLogin is the message for a machine on which the provider has not reported yet.
const WaitingForLogin = "Waiting for the pod to log in to the tailnet with the auth key that the provider issues"

// Facts are what the proxies follow from.
type Facts struct {
	Owner compose.Owner
	Spec  gatewayv1alpha1.TailscaleEndpointsSpec

	// Hosts reports whether there is a service to host. It counts only if IngressOnRequest is true.
	Hosts bool

	// MachineSets are the observed ones, by direction. One that does not exist is nil or missing.
	MachineSets map[string]*tailnetv1alpha1.MachineSet
}

// wantsDirection reports whether there are proxies of a direction: because the spec lists it or
// needs it.
func (f Facts) wantsDirection(direction string) bool {
	switch t := f.Spec.Proxy.ConnectionType; {
	case t == connectionTypes[direction] || t == gatewayv1alpha1.ConnectionTypeBidirectional:
		return true
	case t != "":
		return false
	case direction == proxy.DirectionEgress:
		return reachesOut(f.Spec)
	}
	return !reachesOut(f.Spec) || f.Spec.DNS != nil || f.Hosts
}

// reachesOut reports whether a spec has targets or discovers some.
func reachesOut(spec gatewayv1alpha1.TailscaleEndpointsSpec) bool {
	return len(spec.Endpoints) > 0 || spec.AutoDiscovery != nil
}

// IngressOnRequest reports whether ingress proxies are added to the egress proxies once there is a
// service to host: the spec does not list the directions.
func IngressOnRequest(spec gatewayv1alpha1.TailscaleEndpointsSpec) bool {
	return spec.Proxy.ConnectionType == "" && reachesOut(spec)
}

// Kernel reports whether the proxies of a spec use the kernel's networking.
func Kernel(spec gatewayv1alpha1.TailscaleEndpointsSpec) bool {
	return spec.Proxy.Networking == tailnetv1alpha1.NetworkingKernel
}

// Proxies are the proxies of each direction. A group that is no longer wanted may still have pods.
type Proxies struct {
	Ingress, Egress *Group
}

// New returns the proxies that follow from a spec and the observed MachineSets.
func New(f Facts) Proxies {
	return Proxies{Ingress: newGroup(f, proxy.DirectionIngress), Egress: newGroup(f, proxy.DirectionEgress)}
}

// Groups returns the groups that are wanted or still exist.
func (p Proxies) Groups() []*Group {
	return slices.DeleteFunc([]*Group{p.Ingress, p.Egress}, func(g *Group) bool { return !g.Exists() })
}

// WantedGroups returns the groups that are wanted.
func (p Proxies) WantedGroups() []*Group {
	return slices.DeleteFunc(p.Groups(), func(g *Group) bool { return !g.Wants })
}

// MagicDNSSuffix returns the domain of the proxies' machines once one has joined.
func (p Proxies) MagicDNSSuffix() string {
	for _, g := range []*Group{p.Ingress, p.Egress} {
		for _, i := range slices.Sorted(maps.Keys(g.Machines)) {
			if _, suffix, ok := strings.Cut(g.Machines[i].DNSName, "."); ok {
				return strings.ToLower(suffix)
			}
		}
	}
	return ""
}

// NodeIDs returns the node IDs of the proxies' machines.
func (p Proxies) NodeIDs() map[string]bool {
	out := map[string]bool{}
	for _, g := range []*Group{p.Ingress, p.Egress} {
		for _, m := range g.Machines {
			out[m.NodeID] = true
		}
	}
	return out
}

// A Group is the proxies of one direction of a TailscaleEndpoints.
type Group struct {
	// Direction is the name of the direction in internal/proxy.
	Direction string

	// Wants reports whether the group is wanted. A group that is no longer wanted is deleted once
	// its pods have ended.
	Wants bool

	// Set is the name of the StatefulSet.
	Set string

	// Count is the number of replicas that are wanted.
	Count int32

	// MachineSet is the observed MachineSet, or nil if there is none.
	MachineSet *tailnetv1alpha1.MachineSet

	// Machines are the observed machines by replica.
	Machines map[int32]*tailnetv1alpha1.MachineSummary

	// Ports are the machines' ports that lead into the tailnet, as the machines report them.
	Ports map[ReportedPort]tailnetv1alpha1.MachineSetEgressPort
}

// A ReportedPort is a port of the proxies, as they report it.
type ReportedPort struct {
	Port     int32
	Protocol corev1.Protocol

	// Target is the key of the target.
	Target string
}

// newGroup returns the proxies of one direction.
func newGroup(f Facts, direction string) *Group {
	g := &Group{
		Direction:  direction,
		Wants:      f.wantsDirection(direction),
		Set:        names.Child(f.Owner.Name, direction),
		MachineSet: f.MachineSets[direction],
	}
	if g.Wants {
		g.Count = ptr.Deref(f.Spec.Proxy.Replicas, defaultReplicas)
	}
	g.Machines, g.Ports = summarize(g.MachineSet, g.Set)
	return g
}

// APIDirection returns the direction as ProxySets and MachineSets name it.
func (g *Group) APIDirection() tailnetv1alpha1.Direction { return directions[g.Direction] }

// ConnectionType returns the direction as a spec names it.
func (g *Group) ConnectionType() gatewayv1alpha1.ConnectionType { return connectionTypes[g.Direction] }

// summarize returns the machines of a set's StatefulSet by replica, and their ports that lead into
// the tailnet. A listed machine without a summary may also exist.
func summarize(ms *tailnetv1alpha1.MachineSet, set string) (map[int32]*tailnetv1alpha1.MachineSummary, map[ReportedPort]tailnetv1alpha1.MachineSetEgressPort) {
	machines, ports := map[int32]*tailnetv1alpha1.MachineSummary{}, map[ReportedPort]tailnetv1alpha1.MachineSetEgressPort{}
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
		add(tailnetv1alpha1.MachineSummary{Name: m.Name, Message: WaitingForLogin})
	}
	for _, m := range ms.Status.Machines {
		add(m)
	}
	for _, p := range ms.Status.Egress {
		ports[ReportedPort{p.Port, p.Protocol, p.Target}] = p
	}
	return machines, ports
}

// Exists reports whether the group is wanted, or still has pods or machines. The provider keeps
// machines until their pods have ended.
func (g *Group) Exists() bool {
	if g.Wants || g.MachineSet == nil {
		return g.Wants
	}
	return !g.Seen() || len(g.Machines) > 0 || g.Pods().Replicas > 0
}

// Wanted returns the replicas that are wanted: 0 up to Count.
func (g *Group) Wanted() []int32 {
	out := make([]int32, 0, g.Count)
	for i := range g.Count {
		out = append(out, i)
	}
	return out
}

// Surplus returns the replicas that are not wanted and whose pods may still run, in order.
func (g *Group) Surplus() []int32 {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g.Machines)), func(i int32) bool { return i < g.Count })
}

// Seen reports whether the provider has processed the current MachineSet. Otherwise the status
// describes an older one.
func (g *Group) Seen() bool {
	return g.MachineSet != nil && g.MachineSet.Status.ObservedGeneration >= g.MachineSet.GetGeneration()
}

// Pods returns the summary of the pods in the MachineSet's status.
func (g *Group) Pods() tailnetv1alpha1.StatefulSetSummary {
	if g.MachineSet == nil || g.MachineSet.Status.StatefulSet == nil {
		return tailnetv1alpha1.StatefulSetSummary{}
	}
	return *g.MachineSet.Status.StatefulSet
}

// shrinks reports whether the provider has yet to process a MachineSet with fewer replicas. Its
// status remains valid for the replicas that stay, because no pod is started to remove others.
func (g *Group) shrinks() bool {
	return g.MachineSet != nil && !g.Seen() && g.Pods().Replicas > g.Count
}

// PodsReady reports whether all pods of the StatefulSet are ready and match its template. A run
// that scales the StatefulSet does not use its new number of replicas: Crossplane writes the
// composite's references in that run, and conditions that change with them cost twice as many
// writes.
func (g *Group) PodsReady() bool {
	p := g.Pods()
	return (g.Seen() || g.shrinks()) && p.Observed && p.Message == "" && p.ReadyReplicas >= p.Replicas && p.UpdatedReplicas >= p.Replicas
}

// ReadyReplicas returns the number of wanted pods that are ready. It omits pods that are about to
// be removed.
func (g *Group) ReadyReplicas() int32 { return min(g.Pods().ReadyReplicas, g.Count) }

// AllMachinesReady reports whether all wanted machines serve: they are in the tailnet, and their
// pods are ready.
func (g *Group) AllMachinesReady() bool {
	if !g.PodsReady() {
		return false
	}
	for i, m := range g.Machines {
		if i < g.Count && !m.Ready {
			return false
		}
	}
	return len(g.Machines) > 0 || g.Count == 0
}

// Reports returns the pods' reports of their ports. A replica that may run and has not yet read the
// config may use any port of an earlier config.
func (g *Group) Reports(config string) egress.Reports {
	acted := egress.Revision(config)
	// An older status may lack a replica that has ended since.
	r := egress.Reports{Complete: g.Seen()}
	for _, i := range slices.Sorted(maps.Keys(g.Machines)) {
		r.Complete = r.Complete && g.Machines[i].EgressConfig == acted
	}
	if g.MachineSet != nil {
		for _, p := range g.MachineSet.Status.Egress {
			r.Ports = append(r.Ports, egress.ReleasedPort{ProxyPort: p.Port, Protocol: p.Protocol, Key: p.Target})
		}
	}
	return r
}
