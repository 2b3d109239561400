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
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Resource names of children. Those of a Machine end in its replica's number.
const (
	nameStatefulSet    = "statefulset-ingress"
	nameServiceAccount = "serviceaccount-ingress"
	nameRole           = "role-ingress"
	nameRoleBinding    = "rolebinding-ingress"
	nameService        = "service-ingress"
	nameBudget         = "poddisruptionbudget-ingress"
	namePodMonitor     = "podmonitor-ingress"
	nameProxySet       = "proxyset"
	prefixMachine      = "machine-ingress-"
)

// defaultReplicas is the schema's default, for who calls the function without it.
const defaultReplicas = 2

// A group is the proxies of one direction of a TailscaleEndpoints: what is wanted
// of them, and what was seen.
type group struct {
	owner compose.Owner
	xr    *gatewayv1alpha1.TailscaleEndpoints
	img   images

	// set is the name of the StatefulSet.
	set      string
	replicas int32

	// statefulSet that was observed. Nil when there is none.
	statefulSet *appsv1.StatefulSet

	// proxySet that was observed. Nil when there is none.
	proxySet *tailnetv1alpha1.ProxySet

	// machines that were observed, by replica.
	machines map[int32]*tailnetv1alpha1.Machine

	// children were observed, of any kind.
	children bool

	// budget was observed.
	budget bool

	// composed tells whether there are to be proxies at all.
	composed bool

	// tags of the proxies, the tailnet's included.
	tags []tailnetv1alpha1.Tag
}

func newGroup(owner compose.Owner, xr *gatewayv1alpha1.TailscaleEndpoints, img images) *group {
	if i := xr.Spec.Proxy.Image; i != "" {
		img.tailscale = i
	}
	return &group{
		owner:    owner,
		xr:       xr,
		img:      img,
		set:      compose.ChildName(owner.Name, proxy.DirectionIngress),
		replicas: ptr.Deref(xr.Spec.Proxy.Replicas, defaultReplicas),
		machines: map[int32]*tailnetv1alpha1.Machine{},
	}
}

func (g *group) observe(r *compose.Run) error {
	sts := &appsv1.StatefulSet{}
	ok, err := r.Observed(nameStatefulSet, sts)
	if err != nil {
		return err
	}
	if ok {
		g.statefulSet = sts
	}
	ps := &tailnetv1alpha1.ProxySet{}
	if ok, err = r.Observed(nameProxySet, ps); err != nil {
		return err
	}
	if ok {
		g.proxySet = ps
	}
	for _, name := range r.ObservedNames() {
		g.children = true
		g.budget = g.budget || name == nameBudget
		n, isMachine := strings.CutPrefix(name, prefixMachine)
		i, err := strconv.ParseInt(n, 10, 32)
		if !isMachine || err != nil {
			continue
		}
		m := &tailnetv1alpha1.Machine{}
		if _, err := r.Observed(name, m); err != nil {
			return err
		}
		g.machines[int32(i)] = m
	}
	return nil
}

// judge what a tailnet's verdict means for the group. A tailnet that is gone, or
// does not say who may use it, harms no proxy that runs: what was known of it is
// in the ProxySet. One that does not allow the namespace leaves none.
func (g *group) judge(v compose.TailnetVerdict, t *tailnetv1alpha1.ClusterProviderConfig) {
	switch {
	case v.Accepted:
		g.composed = true
		g.tags = compose.Tags(t.Spec.Tags, compose.Tags(g.xr.Spec.Tags))
	case v.Reason == meta.ReasonTailnetNotFound || v.Reason == meta.ReasonInvalidSelector:
		g.composed = g.children
		g.tags = compose.Tags(g.xr.Spec.Tags)
		if g.proxySet != nil {
			g.tags = g.proxySet.Spec.Tags
		}
	}
}

// wanted are the replicas that are to be: 0 up to replicas.
func (g *group) wanted() []int32 {
	out := make([]int32, 0, g.replicas)
	for i := range g.replicas {
		out = append(out, i)
	}
	return out
}

// condemned are the replicas whose Machines are to go once their pods have gone,
// in order. A Machine that went first would leave its pod with a key that was
// revoked.
func (g *group) condemned() []int32 {
	var out []int32
	for i := range g.machines {
		if i >= g.replicas && g.mayRun(i) {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// mayRun tells whether a replica's pod may exist. Status counts only once the
// controller has seen the spec, and the spec only once it is what is wanted.
func (g *group) mayRun(i int32) bool {
	s := g.statefulSet
	if s == nil {
		return false
	}
	settled := ptr.Deref(s.Spec.Replicas, 1) == g.replicas && s.Status.ObservedGeneration >= s.GetGeneration()
	return !settled || s.Status.Replicas > i
}
