// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/discovery"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/forwarding"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/proxies"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/targets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// manyAtOnce is the number of new children that exceeds the limit of Crossplane's circuit breaker:
// all discovered endpoints of a tailnet appear at the same time.
const manyAtOnce = 32

// An endpointsPlan is what follows from complete facts about a TailscaleEndpoints: plans, each of which is
// a function of the facts and of the plans before it.
type endpointsPlan struct {
	facts

	// verdict reports whether the namespace may use the tailnet in the way of the spec.
	verdict compose.TailnetVerdict

	// composed reports whether there are proxies at all.
	composed bool

	// tags are the tags of the proxies, including the tailnet's.
	tags []tailnetv1alpha1.Tag

	proxies    proxies.Proxies
	search     discovery.Plan
	forwarding forwarding.Plan
}

// newEndpointsPlan returns the plans. If the tailnet no longer exists or its selector is invalid,
// running proxies stay, because their tags are in the ProxySet. If the tailnet does not allow the
// namespace, there are no proxies.
func newEndpointsPlan(f facts) (*endpointsPlan, error) {
	p := &endpointsPlan{facts: f, verdict: f.access, proxies: proxiesOf(f)}
	if f.access.Accepted {
		p.verdict = f.access.Within(violations(f, f.access.Grant)...)
	}
	switch v := p.verdict; {
	case v.Accepted:
		p.composed = true
		p.tags = compose.Tags(f.tailnetTags, compose.Tags(f.spec.Tags))
	case v.Reason == meta.ReasonTailnetNotFound || v.Reason == meta.ReasonInvalidSelector || v.Reason == meta.ReasonNotGranted:
		p.composed = len(f.children) > 0
		p.tags = compose.Tags(f.spec.Tags)
		if f.proxySet != nil {
			p.tags = f.proxySet.Spec.Tags
		}
	}
	p.search = searchOf(f, p.proxies)
	var err error
	p.forwarding, err = forwarding.New(forwarding.Facts{
		Targets: targets.New(targetFacts(f, p.proxies, p.search)), Proxies: p.proxies.Egress,
		Kernel: proxies.Kernel(f.spec), Config: f.egressConfig,
	})
	return p, err
}

// proxiesOf returns the proxies that follow from the spec and the observed children, even if other
// facts are missing.
func proxiesOf(f facts) proxies.Proxies {
	return proxies.New(proxies.Facts{
		Owner: f.owner, Spec: f.spec, Hosts: f.hosts,
		MachineSets: map[string]*tailnetv1alpha1.MachineSet{
			proxy.DirectionIngress: f.machineSets[nameOf(nameMachineSet, proxy.DirectionIngress)],
			proxy.DirectionEgress:  f.machineSets[nameOf(nameMachineSet, proxy.DirectionEgress)],
		},
	})
}

// searchOf returns the search of the tailnet for endpoints.
func searchOf(f facts, px proxies.Proxies) discovery.Plan {
	return discovery.New(discovery.Facts{Owner: f.owner, Spec: f.spec, Discovery: f.discovery, NodeIDs: px.NodeIDs()})
}

// targetFacts returns what the targets follow from.
func targetFacts(f facts, px proxies.Proxies, search discovery.Plan) targets.Facts {
	return targets.Facts{
		Spec: f.spec, Discovered: search.Endpoints(), Attachments: f.attachments,
		ProxySet: f.proxySet, MagicDNSSuffix: px.MagicDNSSuffix(),
	}
}

// violations returns how the spec violates the namespace's grant. Elements without a violation are
// nil.
func violations(f facts, g *allow.Grant) []*allow.ViolationError {
	out := []*allow.ViolationError{
		g.Kind("spec.tailnet", tailnetv1alpha1.MachineKind),
		allow.Tags(g, "spec.tags", f.spec.Tags),
		g.Pods("spec.proxy", f.spec.Proxy.PodSettings),
	}
	if f.spec.AutoDiscovery != nil {
		out = append(out, g.Kind("spec.autoDiscovery", tailnetv1alpha1.DiscoveryKind))
	}
	return out
}

// plan returns the desired state of the object and its children. It depends only on the facts.
func plan(f facts) (compose.Plan, error) {
	if f.waiting != "" {
		return compose.Wait(f.waiting, alwaysTypes...), nil
	}
	ep, err := newEndpointsPlan(f)
	if err != nil {
		return compose.Plan{}, err
	}
	p := compose.Plan{Conditions: conditions(ep), Status: status(ep), NotReady: !ep.verdict.Accepted}
	if ep.verdict.Reason == meta.ReasonNotGranted || ep.spec.Tailnet == "" {
		// The new spec cannot be applied, so the existing children stay.
		p.KeepExisting = true
		return p, nil
	}
	p.Children = children(ep)
	fresh := 0
	for _, c := range p.Children {
		if !f.has(c.Name) {
			fresh++
		}
		// Crossplane would list the children that are not ready, and write the composite each time
		// one becomes ready.
		p.NotReady = p.NotReady || !c.Ready
	}
	if fresh > manyAtOnce {
		p.RequeueAfter = compose.RequeueInterval
	}
	return p, nil
}
