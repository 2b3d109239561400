// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// wantedChildren returns all children. Children without a state are ready: if Crossplane cannot
// apply one, it reports that in Synced.
func (e *endpoints) wantedChildren(t *egressPlan) []compose.Child {
	if !e.composed {
		return nil
	}
	out := []compose.Child{{Name: nameProxySet, Object: e.composeProxySet(t), Ready: true}}
	if e.spec.AutoDiscovery != nil {
		out = append(out, compose.Child{Name: nameDiscovery, Object: e.composeDiscovery(), Ready: e.discovered()})
	}
	for _, g := range e.groups() {
		out = append(out, g.children(t)...)
	}
	return out
}

// children returns the children of a group.
func (g *group) children(t *egressPlan) []compose.Child {
	o := g.options(t)
	out := []compose.Child{
		{Name: g.name(nameServiceAccount), Object: proxy.ServiceAccount(o), Ready: true},
		{Name: g.name(nameRole), Object: proxy.Role(o), Ready: true},
		{Name: g.name(nameService), Object: proxy.Service(o), Ready: true},
	}
	// Crossplane applies children in no order and stops at the first failure. Without the right
	// to bind any Role it cannot create a RoleBinding before its Role.
	if g.role {
		out = append(out, compose.Child{Name: g.name(nameRoleBinding), Object: proxy.RoleBinding(o), Ready: true})
	}
	if wantsPodMonitor(g.spec.Proxy) {
		out = append(out, compose.Child{Name: g.name(namePodMonitor), Object: proxy.PodMonitor(o), Ready: true})
	}
	if wantsNetworkPolicy(g.spec.Proxy) {
		out = append(out, compose.Child{Name: g.name(nameNetworkPolicy), Object: proxy.NetworkPolicy(o), Ready: true})
	}
	if g.direction == proxy.DirectionEgress {
		out = append(out, g.egressChildren(o, t)...)
	}
	return append(out, compose.Child{Name: g.name(nameMachineSet), Object: g.composeMachineSet(o, t), Ready: g.allMachinesReady()})
}

// options returns the inputs of the group's objects. Pods that are about to be removed may use
// their Secrets while they run, because they need them to log out of the tailnet.
func (g *group) options(t *egressPlan) proxy.Options {
	p := g.spec.Proxy
	o := proxy.Options{
		Name:      g.set,
		Namespace: g.owner.Namespace,
		Tailnet:   g.spec.Tailnet,
		Pods: tailnetv1alpha1.MachineSetPods{
			Replicas:    g.count,
			Direction:   directions[g.direction],
			Endpoints:   g.owner.Name,
			ServiceName: names.Service(g.set),
			PodSettings: p.PodSettings,
		},
		AccountAnnotations: p.ServiceAccountAnnotations,
		Metrics:            p.Metrics != nil && ptr.Deref(p.Metrics.Enabled, true),
	}
	if wantsPodMonitor(p) {
		o.PodMonitor = proxy.PodMonitorOptions{Labels: labelsOf(p.Metrics.PodMonitor.Labels), Interval: p.Metrics.PodMonitor.Interval}
	}
	if g.direction == proxy.DirectionIngress {
		o.CertificateSecrets = g.certificateSecrets()
		if d := g.spec.DNS; d != nil {
			o.Pods.DNSConfigMap = d.ZoneRef.Name
		}
	}
	g.setPolicyOptions(&o, t)
	for _, i := range append(g.wanted(), g.surplus()...) {
		o.Machines = append(o.Machines, names.Machine(g.set, i))
	}
	return o
}

// labels returns the labels of the group's MachineSet.
func (g *group) labels() map[string]string {
	return map[string]string{
		meta.LabelTailnet:   g.spec.Tailnet,
		meta.LabelEndpoints: g.owner.Name,
		meta.LabelDirection: g.direction,
	}
}

// composeMachineSet returns the MachineSet of the group's machines. The provider also creates the
// pods of the machines, so their state reaches the composite together with that of the machines.
// The provider adds the tailnet's tags.
func (g *group) composeMachineSet(o proxy.Options, t *egressPlan) *tailnetv1alpha1.MachineSet {
	ms := &tailnetv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: g.set, Namespace: g.owner.Namespace, Labels: g.labels()},
		Spec: tailnetv1alpha1.MachineSetSpec{
			ProviderConfigReference: *compose.ProviderConfigRef(g.spec.Tailnet),
			Tags:                    compose.Tags(g.spec.Tags),
			AcceptRoutes:            g.direction == proxy.DirectionEgress && t.acceptRoutes,
			Pods:                    &o.Pods,
		},
	}
	for _, i := range g.wanted() {
		n := names.Machine(g.set, i)
		ms.Spec.Machines = append(ms.Spec.Machines, tailnetv1alpha1.MachineSetMember{Name: n, Hostname: names.Host(g.owner.Namespace, n)})
	}
	return ms
}

// composeProxySet returns the ProxySet, by which other objects find the proxies. It has the user's
// labels for selectors; the function's labels take precedence. It omits proxies that are about to
// be removed, because no object should use them any more.
func (e *endpoints) composeProxySet(t *egressPlan) *tailnetv1alpha1.ProxySet {
	labels := map[string]string{}
	maps.Copy(labels, e.owner.Labels)
	labels[meta.LabelProxySet] = "true"
	labels[meta.LabelEndpoints] = e.owner.Name
	labels[meta.LabelTailnet] = e.spec.Tailnet
	ps := &tailnetv1alpha1.ProxySet{
		ObjectMeta: metav1.ObjectMeta{Name: e.owner.Name, Namespace: e.owner.Namespace, Labels: labels},
		Spec: tailnetv1alpha1.ProxySetSpec{
			Endpoints: e.owner.Name,
			Tailnet:   e.spec.Tailnet,
			Tags:      e.tags,
			Targets:   t.proxySetTargets(),

			IngressOnRequest: e.ingressOnRequest(),
			IngressPorts:     e.ingressPorts(),
		},
	}
	networking := tailnetv1alpha1.NetworkingUserspace
	if e.kernel() {
		networking = tailnetv1alpha1.NetworkingKernel
	}
	for _, g := range e.wantedGroups() {
		ps.Spec.Sets = append(ps.Spec.Sets, tailnetv1alpha1.ProxySetMember{
			Name:       g.set,
			Direction:  directions[g.direction],
			Replicas:   g.count,
			Networking: string(networking),
		})
	}
	return ps
}

// certificateSecrets returns the Secrets of the certificates that ServiceAttachments name, sorted
// and without duplicates.
func (e *endpoints) certificateSecrets() []string {
	names := map[string]bool{}
	for _, a := range e.attachments {
		if a.Spec.Direction != tailnetv1alpha1.DirectionIngress {
			continue
		}
		for _, p := range a.Spec.Ports {
			if p.TLS != nil && p.TLS.SecretName != "" {
				names[p.TLS.SecretName] = true
			}
		}
	}
	return sortedKeys(names)
}
