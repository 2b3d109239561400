// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/proxies"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Resource names of the children that exist once, whatever the directions.
const (
	nameProxySet  = "proxyset"
	nameDiscovery = "discovery"
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

// nameOf returns the resource name of a child of a group.
func nameOf(kind, direction string) string { return kind + "-" + direction }

// children returns all children. Children without a state are ready: if Crossplane cannot
// apply one, it reports that in Synced.
func children(p *endpointsPlan) []compose.Child {
	if !p.composed {
		return nil
	}
	out := []compose.Child{{Name: nameProxySet, Object: composeProxySet(p), Ready: true}}
	if p.search.Wanted() {
		out = append(out, compose.Child{Name: nameDiscovery, Object: p.search.Compose(), Ready: p.search.Ready()})
	}
	for _, g := range p.proxies.Groups() {
		out = append(out, groupChildren(p, g)...)
	}
	return out
}

// groupChildren returns the children of a group.
func groupChildren(p *endpointsPlan, g *proxies.Group) []compose.Child {
	o := options(p, g)
	name := func(kind string) string { return nameOf(kind, g.Direction) }
	out := []compose.Child{
		{Name: name(nameServiceAccount), Object: proxy.ServiceAccount(o), Ready: true},
		{Name: name(nameRole), Object: proxy.Role(o), Ready: true},
		{Name: name(nameService), Object: proxy.Service(o), Ready: true},
	}
	// Crossplane applies children in no order and stops at the first failure. Without the right
	// to bind any Role it cannot create a RoleBinding before its Role.
	if p.has(name(nameRole)) || p.has(name(nameRoleBinding)) {
		out = append(out, compose.Child{Name: name(nameRoleBinding), Object: proxy.RoleBinding(o), Ready: true})
	}
	if wantsPodMonitor(p.spec.Proxy) {
		out = append(out, compose.Child{Name: name(namePodMonitor), Object: proxy.PodMonitor(o), Ready: true})
	}
	if wantsNetworkPolicy(p.spec.Proxy) {
		out = append(out, compose.Child{Name: name(nameNetworkPolicy), Object: proxy.NetworkPolicy(o), Ready: true})
	}
	if g.Direction == proxy.DirectionEgress {
		out = append(out, egressChildren(p, g, o)...)
	}
	return append(out, compose.Child{Name: name(nameMachineSet), Object: composeMachineSet(p, g, o), Ready: g.AllMachinesReady()})
}

// options returns the inputs of a group's objects. Pods that are about to be removed may use
// their Secrets while they run, because they need them to log out of the tailnet.
func options(p *endpointsPlan, g *proxies.Group) proxy.Options {
	spec := p.spec.Proxy
	o := proxy.Options{
		Name:      g.Set,
		Namespace: p.owner.Namespace,
		Tailnet:   p.spec.Tailnet,
		Pods: tailnetv1alpha1.MachineSetPods{
			Replicas:    g.Count,
			Direction:   g.APIDirection(),
			Endpoints:   p.owner.Name,
			ServiceName: names.Service(g.Set),
			PodSettings: spec.PodSettings,
		},
		AccountAnnotations: spec.ServiceAccountAnnotations,
		Metrics:            spec.Metrics != nil && ptr.Deref(spec.Metrics.Enabled, true),
	}
	if wantsPodMonitor(spec) {
		o.PodMonitor = proxy.PodMonitorOptions{Labels: labelsOf(spec.Metrics.PodMonitor.Labels), Interval: spec.Metrics.PodMonitor.Interval}
	}
	if g.Direction == proxy.DirectionIngress {
		o.CertificateSecrets = certificateSecrets(p.attachments)
		if d := p.spec.DNS; d != nil {
			o.Pods.DNSConfigMap = d.ZoneRef.Name
		}
	}
	setPolicyOptions(&o, p)
	for _, i := range append(g.Wanted(), g.Surplus()...) {
		o.Machines = append(o.Machines, names.Machine(g.Set, i))
	}
	return o
}

// egressChildren returns the children that only the egress group has: the ConfigMap of its
// agents, and a Service for each endpoint.
func egressChildren(p *endpointsPlan, g *proxies.Group, o proxy.Options) []compose.Child {
	out := []compose.Child{{Name: nameOf(nameConfigMap, g.Direction), Object: proxy.EgressConfigMap(o, p.forwarding.Data), Ready: true}}
	if !g.Wants {
		return out
	}
	ports := p.forwarding.ServicePorts()
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		s := proxy.TargetService(o, p.serviceNames[name], name, ports[name])
		for k, v := range serviceLabels(p.spec, name) {
			// The labels of the function take precedence.
			if _, ok := s.Labels[k]; !ok {
				s.Labels[k] = string(v)
			}
		}
		out = append(out, compose.Child{Name: serviceOf(name), Object: s, Ready: true})
	}
	return out
}

// serviceLabels returns the labels that the spec has for the Service of an endpoint.
func serviceLabels(spec gatewayv1alpha1.TailscaleEndpointsSpec, endpoint string) map[string]tailnetv1alpha1.LabelValue {
	for _, ep := range spec.Endpoints {
		if ep.Name == endpoint {
			return ep.ServiceLabels
		}
	}
	return nil
}

// labelsOfSet returns the labels of a group's MachineSet.
func labelsOfSet(p *endpointsPlan, g *proxies.Group) map[string]string {
	return map[string]string{
		meta.LabelTailnet:   p.spec.Tailnet,
		meta.LabelEndpoints: p.owner.Name,
		meta.LabelDirection: g.Direction,
	}
}

// composeMachineSet returns the MachineSet of a group's machines. The provider also creates the
// pods of the machines, so their state reaches the composite together with that of the machines.
// The provider adds the tailnet's tags.
func composeMachineSet(p *endpointsPlan, g *proxies.Group, o proxy.Options) *tailnetv1alpha1.MachineSet {
	ms := &tailnetv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: g.Set, Namespace: p.owner.Namespace, Labels: labelsOfSet(p, g)},
		Spec: tailnetv1alpha1.MachineSetSpec{
			ProviderConfigReference: *compose.ProviderConfigRef(p.spec.Tailnet),
			Tags:                    compose.Tags(p.spec.Tags),
			AcceptRoutes:            g.Direction == proxy.DirectionEgress && p.forwarding.AcceptRoutes,
			Pods:                    &o.Pods,
		},
	}
	for _, i := range g.Wanted() {
		n := names.Machine(g.Set, i)
		ms.Spec.Machines = append(ms.Spec.Machines, tailnetv1alpha1.MachineSetMember{Name: n, Hostname: names.Host(p.owner.Namespace, n)})
	}
	return ms
}

// composeProxySet returns the ProxySet, by which other objects find the proxies. It has the user's
// labels for selectors; the function's labels take precedence. It omits proxies that are about to
// be removed, because no object should use them any more.
func composeProxySet(p *endpointsPlan) *tailnetv1alpha1.ProxySet {
	labels := map[string]string{}
	maps.Copy(labels, p.owner.Labels)
	labels[meta.LabelProxySet] = "true"
	labels[meta.LabelEndpoints] = p.owner.Name
	labels[meta.LabelTailnet] = p.spec.Tailnet
	ps := &tailnetv1alpha1.ProxySet{
		ObjectMeta: metav1.ObjectMeta{Name: p.owner.Name, Namespace: p.owner.Namespace, Labels: labels},
		Spec: tailnetv1alpha1.ProxySetSpec{
			Endpoints: p.owner.Name,
			Tailnet:   p.spec.Tailnet,
			Tags:      p.tags,
			Targets:   p.forwarding.ProxySetTargets(),

			IngressOnRequest: proxies.IngressOnRequest(p.spec),
			IngressPorts:     ingressPorts(p.facts),
		},
	}
	networking := tailnetv1alpha1.NetworkingUserspace
	if proxies.Kernel(p.spec) {
		networking = tailnetv1alpha1.NetworkingKernel
	}
	for _, g := range p.proxies.WantedGroups() {
		ps.Spec.Sets = append(ps.Spec.Sets, tailnetv1alpha1.ProxySetMember{
			Name:       g.Set,
			Direction:  g.APIDirection(),
			Replicas:   g.Count,
			Networking: string(networking),
		})
	}
	return ps
}

// certificateSecrets returns the Secrets of the certificates that ServiceAttachments name, sorted
// and without duplicates.
func certificateSecrets(attachments []tailnetv1alpha1.ServiceAttachment) []string {
	names := map[string]bool{}
	for _, a := range attachments {
		if a.Spec.Direction != tailnetv1alpha1.DirectionIngress {
			continue
		}
		for _, p := range a.Spec.Ports {
			if p.TLS != nil && p.TLS.SecretName != "" {
				names[p.TLS.SecretName] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
