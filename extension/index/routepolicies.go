// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"iter"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// A TailscaleRoutePolicy depends on its targets, and on the routes that it names rules of,
// which need not name one of our kinds. So the section reads the attachments of every
// HTTPRoute and GRPCRoute.

// policyObjects are the TailscaleRoutePolicies, and the objects that their state depends on.
type policyObjects struct {
	policies map[types.NamespacedName]*ir.RoutePolicy

	// policyDependents are the names of policies by the routes and Gateways that they depend on.
	policyDependents map[ir.PolicyTarget]map[types.NamespacedName]struct{}

	// sites are the sites of all HTTPRoutes and GRPCRoutes.
	sites map[ir.RouteKey]*site

	// discovered are the results of Discoveries, and discoverers the policies that own them.
	discovered  map[types.NamespacedName]*parse.Discovered
	discoverers map[types.NamespacedName]types.NamespacedName

	// insertions are what policies add to Envoy's configuration.
	insertions *insertions
}

func newPolicyObjects() policyObjects {
	return policyObjects{
		policies:         map[types.NamespacedName]*ir.RoutePolicy{},
		policyDependents: map[ir.PolicyTarget]map[types.NamespacedName]struct{}{},
		sites:            map[ir.RouteKey]*site{},
		discovered:       map[types.NamespacedName]*parse.Discovered{},
		discoverers:      map[types.NamespacedName]types.NamespacedName{},
		insertions:       newInsertions(),
	}
}

// putPolicy stores a policy or an object that the state of policies depends on.
func putPolicy(all *objects, change *input, p *pending) (bool, error) {
	switch o := change.Object.(type) {
	case *gatewayv1alpha1.TailscaleRoutePolicy:
		putRoutePolicy(all, change, p)
	case *tailnetv1alpha1.Discovery:
		putDiscovery(all, o, change.name, change.Deleted, p)
	case *gwapiv1.Gateway:
		all.insertions.dirtyParents[parse.Parent{NamespacedName: change.name}] = struct{}{}
		markDependents(all, ir.PolicyTarget{NamespacedName: change.name}, p)
	case *gwapiv1.ListenerSet:
		all.insertions.dirtyParents[parse.Parent{ListenerSet: true, NamespacedName: change.name}] = struct{}{}
		markAttached(all, change.name, p)
	case *gwapiv1beta1.ReferenceGrant:
		for n, policy := range all.policies {
			if policy.NamesForeignSecret() {
				p.markName(policySection, n)
			}
		}
	default:
		if change.route == nil {
			return false, nil
		}
		putSite(all, change.route, change.Deleted || ir.IsPlaceholder(change.Object), p)
	}
	return true, nil
}

// servePolicies marks all policies.
func servePolicies(all *objects, p *pending) {
	for n := range all.policies {
		p.markName(policySection, n)
	}
}

// putRoutePolicy stores a policy, and the objects that its state depends on.
func putRoutePolicy(all *objects, change *input, d *pending) {
	n, p := change.name, change.policy
	if old := all.policies[n]; old != nil {
		for _, t := range old.DependsOn() {
			delete(all.policyDependents[t], n)
			if len(all.policyDependents[t]) == 0 {
				delete(all.policyDependents, t)
			}
		}
		for q := range old.Discoveries() {
			delete(all.discoverers, q)
		}
	}
	d.markName(policySection, n)
	if p == nil {
		delete(all.policies, n)
		return
	}
	all.policies[n] = p
	for q := range p.Discoveries() {
		all.discoverers[q] = n
	}
	for _, t := range p.DependsOn() {
		if all.policyDependents[t] == nil {
			all.policyDependents[t] = map[types.NamespacedName]struct{}{}
		}
		all.policyDependents[t][n] = struct{}{}
	}
}

// putSite stores the attachments of a route.
func putSite(all *objects, p *parse.RouteObject, deleted bool, d *pending) {
	k := p.Route.Key
	if k.Kind != ir.KindHTTPRoute && k.Kind != ir.KindGRPCRoute {
		return
	}
	if deleted {
		delete(all.sites, k)
	} else {
		s := &site{parents: p.Parents, created: p.Route.Info.Created, hosts: max(len(p.Route.Info.Hostnames), 1)}
		for _, r := range p.Route.Rules {
			s.ruleMatches = append(s.ruleMatches, madeRule{name: r.Name, matches: max(len(r.Matches), 1)})
			if r.Name != "" {
				s.rules = append(s.rules, r.Name)
			}
		}
		all.sites[k] = s
	}
	all.insertions.dirty[k] = struct{}{}
	markDependents(all, ir.PolicyTarget{Route: k.Kind, NamespacedName: k.NamespacedName}, d)
}

// recomputePolicies updates the marked policies, and those whose Secrets are read now and were not
// before, or the reverse. It attaches the rules of the policies at the targets of those that changed.
func recomputePolicies(s *Store, e *edit) {
	built := map[entry]*ir.RoutePolicy{}
	for c := range e.marked(policySection) {
		policy := s.objects.buildPolicy(c.NamespacedName)
		want := objectWant{names: s.objects.readableSecrets(policy)}
		if policy != nil {
			want.created = policy.Created
		}
		readSecrets(s, c, s.objects.policySecrets, want)
		built[c] = policy
	}
	for c := range s.objects.policySecrets.settle() {
		if _, ok := built[c]; !ok {
			built[c] = s.objects.buildPolicy(c.NamespacedName)
		}
	}
	for c, policy := range built {
		recomputePolicy(s, e, c, policy)
	}
	refuseInsertions(s, e)
	if e.policies {
		e.next.PolicyRevision++
	}
	for t := range e.attached {
		rules := ir.RulesAt(t, policiesAt(s, e, t))
		e.next.Attached.Put(e.next, t, rules, len(rules) == 0)
	}
}

// policiesAt returns the policies that may have a target.
func policiesAt(s *Store, e *edit, t ir.PolicyTarget) iter.Seq[*ir.RoutePolicy] {
	return func(yield func(*ir.RoutePolicy) bool) {
		for n := range s.objects.policyDependents[t.Whole()] {
			if p := e.next.Policies.Get(n); p != nil && !yield(p) {
				return
			}
		}
	}
}

// buildPolicy returns the state of a policy without that of its certificates. Nil if the policy does
// not exist.
func (all *objects) buildPolicy(n types.NamespacedName) *ir.RoutePolicy {
	p := all.policies[n]
	if p == nil {
		return nil
	}
	built := &ir.RoutePolicy{}
	*built = *p
	config, _ := all.envoyGatewayConfig()
	built.Targets, built.FailOpen = nil, config.FailOpen
	for _, t := range p.Targets {
		at := all.attachment(t.PolicyTarget)
		built.Targets = append(built.Targets, at)
		for _, g := range at.Gateways {
			if all.serves(g) && !slices.Contains(built.Served, g) {
				built.Served = append(built.Served, g)
			}
		}
	}
	built.Rules = slices.Clone(p.Rules)
	findDevices(all, built)
	findNamedRules(all, built)
	return built
}

// recomputePolicy updates a policy to a new state.
func recomputePolicy(s *Store, e *edit, c entry, current *ir.RoutePolicy) {
	n := c.NamespacedName
	old := e.next.Policies.Get(n)
	if current != nil {
		s.objects.checkCertificates(current)
		if old != nil {
			current.Refused = old.Refused
		}
	}
	if current != nil {
		readmit(s, e, c, s.objects.admitting(current.Served, n.Namespace))
	}
	if reflect.DeepEqual(old, current) {
		return
	}
	s.objects.insertions.setPolicy(n, current)
	e.digest(c, policySum(old), policySum(current))
	e.digest(c, refusedSum(old), refusedSum(current))
	e.policies = true
	for _, p := range []*ir.RoutePolicy{old, current} {
		if p == nil {
			continue
		}
		for _, t := range p.Targets {
			e.attached[t.PolicyTarget] = struct{}{}
		}
	}
	e.next.Policies.Put(e.next, n, current, current == nil)
	nameDependents(s, e, c, policyDependents(old), policyDependents(current))
}

// policyDependents returns the targets that a policy's rules send requests to, with the
// protocols of the routes that the policy is attached to.
func policyDependents(p *ir.RoutePolicy) map[dependent]struct{} {
	out := map[dependent]struct{}{}
	if p == nil {
		return out
	}
	for _, t := range p.Targets {
		kinds := []ir.RouteKind{t.Route}
		if t.Route == "" {
			kinds = []ir.RouteKind{ir.KindHTTPRoute, ir.KindGRPCRoute}
		}
		for _, k := range kinds {
			for _, r := range p.Rules {
				for _, b := range r.Backends {
					out[dependent{target: b.Target(k)}] = struct{}{}
				}
			}
		}
	}
	return out
}

// policySum returns a part of a policy in digests. It leaves out information for people, and refusedSum.
func policySum(p *ir.RoutePolicy) any {
	if p == nil {
		return nil
	}
	out := *p
	out.Generation, out.Notices, out.Devices, out.FailOpen, out.Refused = 0, nil, nil, false, nil
	return out
}

// refusedSum returns the part of a policy's refused routes in digests. Other objects change them.
func refusedSum(p *ir.RoutePolicy) any {
	if p == nil || len(p.Refused) == 0 {
		return nil
	}
	return ir.RoutePolicy{Name: p.Name, Refused: p.Refused}
}

// digestPolicy returns the part of a policy in the digests of the Gateways where it takes effect, and that
// admit its routes.
func digestPolicy(s *Store, e *edit, c entry) digestPart {
	p := e.next.Policies.Get(c.NamespacedName)
	if p == nil {
		return digestPart{}
	}
	out := digestPart{gateways: s.objects.admitting(p.Served, c.Namespace), sum: ir.Sum(policySum(p)) + ir.Sum(refusedSum(p))}
	for named := range policyDependents(p) {
		out.sum += s.digests.targets[named.target]
	}
	return out
}

// checkRules omits the rules that Envoy refuses. A Deny rule denies more instead: it loses
// the conditions that Envoy refuses.
func checkRules(p *ir.RoutePolicy) {
	for _, r := range p.Rules {
		if r.Problem != "" {
			continue
		}
		err := xds.CheckRule(r)
		if err == nil {
			continue
		}
		if !r.Deny {
			r.Omit(err)
			continue
		}
		for i, m := range r.Matches {
			single := *r
			if single.Matches = []ir.PolicyMatch{m}; xds.CheckRule(&single) != nil {
				r.Matches[i] = ir.PolicyMatch{}
			}
		}
		r.Widened = err.Error()
	}
}
