// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// desire the group's children. What has no state of its own is ready: if it
// cannot be applied, Crossplane says so in Synced.
func (g *group) desire(r *compose.Run) error {
	if !g.composed {
		return nil
	}
	condemned := g.condemned()
	o := g.options(condemned)
	type child struct {
		name   string
		object runtime.Object
		ready  bool
	}
	children := []child{
		{name: nameServiceAccount, object: proxy.ServiceAccount(o), ready: true},
		{name: nameRole, object: proxy.Role(o), ready: true},
		{name: nameRoleBinding, object: proxy.RoleBinding(o), ready: true},
		{name: nameService, object: proxy.Service(o), ready: true},
		{name: nameProxySet, object: g.composeProxySet(), ready: true},
		{name: nameStatefulSet, object: proxy.StatefulSet(o), ready: g.podsReady()},
	}
	if g.wantsBudget() {
		children = append(children, child{name: nameBudget, object: proxy.PodDisruptionBudget(o), ready: true})
	}
	if wantsPodMonitor(g.xr.Spec.Proxy) {
		children = append(children, child{name: namePodMonitor, object: proxy.PodMonitor(o), ready: true})
	}
	for _, c := range children {
		if err := r.Desire(c.name, c.object, c.ready); err != nil {
			return err
		}
	}
	// All at once: the composite's condition names those that are not.
	ready := g.allMachinesReady()
	for _, i := range g.wanted() {
		if err := r.Desire(machineKey(i), g.composeMachine(i), ready); err != nil {
			return err
		}
	}
	for _, i := range condemned {
		if err := r.Desire(machineKey(i), g.composeMachine(i), true); err != nil {
			return err
		}
	}
	return nil
}

func machineKey(i int32) string { return prefixMachine + strconv.Itoa(int(i)) }

func (g *group) options(condemned []int32) proxy.Options {
	o := proxy.Options{
		Name:           g.set,
		ServiceName:    compose.ServiceName(g.set),
		Namespace:      g.owner.Namespace,
		Endpoints:      g.owner.Name,
		Tailnet:        g.xr.Spec.Tailnet,
		Direction:      proxy.DirectionIngress,
		Replicas:       g.replicas,
		TailscaleImage: g.img.tailscale,
		AgentImage:     g.img.agent,
	}
	setPodOptions(&o, g.xr.Spec.Proxy)
	for _, i := range append(g.wanted(), condemned...) {
		o.Machines = append(o.Machines, compose.MachineName(g.set, i))
	}
	return o
}

func (g *group) labels() map[string]string {
	return map[string]string{
		meta.LabelTailnet:   g.xr.Spec.Tailnet,
		meta.LabelEndpoints: g.owner.Name,
		meta.LabelDirection: proxy.DirectionIngress,
	}
}

// composeMachine makes a replica's machine. The provider adds the tailnet's tags.
func (g *group) composeMachine(i int32) *tailnetv1alpha1.Machine {
	name := compose.MachineName(g.set, i)
	return &tailnetv1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: g.owner.Namespace,
			Labels:    g.labels(),
			// The provider would add it first of all, in a write that counts
			// against the composite in Crossplane's circuit breaker.
			Finalizers: []string{meta.FinalizerManaged},
		},
		Spec: tailnetv1alpha1.MachineSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: compose.ProviderConfigRef(g.xr.Spec.Tailnet)},
			ForProvider: tailnetv1alpha1.MachineParameters{
				Hostname: compose.HostName(g.owner.Namespace, name),
				Tags:     compose.Tags(g.xr.Spec.Tags),
			},
		},
	}
}

// composeProxySet tells others of the proxies. It carries the user's labels, for
// selectors; our own win.
func (g *group) composeProxySet() *tailnetv1alpha1.ProxySet {
	labels := map[string]string{}
	maps.Copy(labels, g.owner.Labels)
	labels[meta.LabelProxySet] = "true"
	labels[meta.LabelEndpoints] = g.owner.Name
	labels[meta.LabelTailnet] = g.xr.Spec.Tailnet
	return &tailnetv1alpha1.ProxySet{
		ObjectMeta: metav1.ObjectMeta{Name: g.owner.Name, Namespace: g.owner.Namespace, Labels: labels},
		Spec: tailnetv1alpha1.ProxySetSpec{
			Endpoints: g.owner.Name,
			Tailnet:   g.xr.Spec.Tailnet,
			Tags:      g.tags,
			Sets: []tailnetv1alpha1.ProxySetMember{
				{Name: g.set, Direction: tailnetv1alpha1.DirectionIngress, Replicas: g.replicas},
			},
		},
	}
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

// wantsBudget tells whether there is to be a PodDisruptionBudget. One pod cannot
// be spared, so it has none. And a budget is made once the pods are there: before,
// it protects nothing, and its status changes with each of them.
func (g *group) wantsBudget() bool {
	if g.replicas < 2 {
		return false
	}
	return g.budget || g.podsReady() && ptr.Deref(g.statefulSet.Spec.Replicas, 1) == g.replicas
}

// allMachinesReady tells whether all wanted machines serve: in the tailnet, and
// run by pods that are ready.
func (g *group) allMachinesReady() bool {
	if !g.podsReady() {
		return false
	}
	for i, m := range g.machines {
		if i < g.replicas && !machineReady(m) {
			return false
		}
	}
	return len(g.machines) > 0 || g.replicas == 0
}

// machineReady tells whether a machine is in the tailnet and as it is wanted.
func machineReady(m *tailnetv1alpha1.Machine) bool {
	return m != nil &&
		m.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue &&
		m.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionFalse
}
