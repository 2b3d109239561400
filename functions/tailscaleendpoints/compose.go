// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// manyAtOnce is how many new children Crossplane's circuit breaker may not let tell of
// themselves: what is found in a tailnet comes at once.
const manyAtOnce = 32

// A child is what is composed under a resource name.
type child struct {
	name   string
	object runtime.Object
	ready  bool
}

// desire the children. What has no state of its own is ready: if it cannot be
// applied, Crossplane says so in Synced.
func (e *endpoints) desire(r *compose.Run, t *egressPlan) error {
	if !e.composed {
		return nil
	}
	children := []child{{name: nameProxySet, object: e.composeProxySet(t), ready: true}}
	if e.xr.Spec.AutoDiscovery != nil {
		children = append(children, child{name: nameDiscovery, object: e.composeDiscovery(), ready: e.discovered()})
	}
	for _, g := range e.groups() {
		children = append(children, g.children(t)...)
	}
	fresh, known := 0, r.ObservedNames()
	slices.Sort(known)
	for _, c := range children {
		if _, ok := slices.BinarySearch(known, c.name); !ok {
			fresh++
		}
		// Crossplane would name those that are not ready, and write the composite each
		// time that one becomes so.
		if !c.ready {
			r.NotReady()
		}
		if err := r.Desire(c.name, c.object, c.ready); err != nil {
			return err
		}
	}
	if fresh > manyAtOnce {
		r.LookAgain()
	}
	return nil
}

// children of a group.
func (g *group) children(t *egressPlan) []child {
	o := g.options(t)
	out := []child{
		{name: g.name(nameServiceAccount), object: proxy.ServiceAccount(o), ready: true},
		{name: g.name(nameRole), object: proxy.Role(o), ready: true},
		{name: g.name(nameService), object: proxy.Service(o), ready: true},
	}
	// Crossplane applies children in no order and stops at the first failure. Who
	// may not bind any Role cannot make a RoleBinding before its Role.
	if g.role {
		out = append(out, child{name: g.name(nameRoleBinding), object: proxy.RoleBinding(o), ready: true})
	}
	if wantsPodMonitor(g.xr.Spec.Proxy) {
		out = append(out, child{name: g.name(namePodMonitor), object: proxy.PodMonitor(o), ready: true})
	}
	if wantsNetworkPolicy(g.xr.Spec.Proxy) {
		out = append(out, child{name: g.name(nameNetworkPolicy), object: proxy.NetworkPolicy(o), ready: true})
	}
	if g.direction == proxy.DirectionEgress {
		out = append(out, g.egressChildren(o, t)...)
	}
	return append(out, child{name: g.name(nameMachineSet), object: g.composeMachineSet(o, t), ready: g.allMachinesReady()})
}

// options of the group's objects. Pods that are to go may use their Secrets as
// long as they run: they need them to leave the tailnet in peace.
func (g *group) options(t *egressPlan) proxy.Options {
	p := g.xr.Spec.Proxy
	o := proxy.Options{
		Name:      g.set,
		Namespace: g.owner.Namespace,
		Tailnet:   g.xr.Spec.Tailnet,
		Pods: tailnetv1alpha1.MachineSetPods{
			Replicas:    g.count,
			Direction:   directions[g.direction],
			Endpoints:   g.owner.Name,
			ServiceName: compose.ServiceName(g.set),
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
		if d := g.xr.Spec.DNS; d != nil {
			o.Pods.DNSConfigMap = d.ZoneRef.Name
		}
	}
	g.setPolicyOptions(&o, t)
	for _, i := range append(g.wanted(), g.condemned()...) {
		o.Machines = append(o.Machines, compose.MachineName(g.set, i))
	}
	return o
}

func (g *group) labels() map[string]string {
	return map[string]string{
		meta.LabelTailnet:   g.xr.Spec.Tailnet,
		meta.LabelEndpoints: g.owner.Name,
		meta.LabelDirection: g.direction,
	}
}

// composeMachineSet makes the group's machines, and has the provider make the pods
// that run them: their state reaches the composite with that of the machines. The
// provider adds the tailnet's tags.
func (g *group) composeMachineSet(o proxy.Options, t *egressPlan) *tailnetv1alpha1.MachineSet {
	ms := &tailnetv1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: g.set, Namespace: g.owner.Namespace, Labels: g.labels()},
		Spec: tailnetv1alpha1.MachineSetSpec{
			ProviderConfigReference: *compose.ProviderConfigRef(g.xr.Spec.Tailnet),
			Tags:                    compose.Tags(g.xr.Spec.Tags),
			AcceptRoutes:            g.direction == proxy.DirectionEgress && t.acceptRoutes,
			Pods:                    &o.Pods,
		},
	}
	for _, i := range g.wanted() {
		n := compose.MachineName(g.set, i)
		ms.Spec.Machines = append(ms.Spec.Machines, tailnetv1alpha1.MachineSetMember{Name: n, Hostname: compose.HostName(g.owner.Namespace, n)})
	}
	return ms
}

// composeProxySet tells others of the proxies. It carries the user's labels, for
// selectors; our own win. Of proxies that are to go it says nothing: nobody is to
// use them any more.
func (e *endpoints) composeProxySet(t *egressPlan) *tailnetv1alpha1.ProxySet {
	labels := map[string]string{}
	maps.Copy(labels, e.owner.Labels)
	labels[meta.LabelProxySet] = "true"
	labels[meta.LabelEndpoints] = e.owner.Name
	labels[meta.LabelTailnet] = e.xr.Spec.Tailnet
	ps := &tailnetv1alpha1.ProxySet{
		ObjectMeta: metav1.ObjectMeta{Name: e.owner.Name, Namespace: e.owner.Namespace, Labels: labels},
		Spec: tailnetv1alpha1.ProxySetSpec{
			Endpoints: e.owner.Name,
			Tailnet:   e.xr.Spec.Tailnet,
			Tags:      e.tags,
			Targets:   t.proxySetTargets(),

			IngressOnRequest: e.ingressOnRequest(),
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

// certificateSecrets that ServiceAttachments want served with: sorted, each once.
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
