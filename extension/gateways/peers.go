// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// comparePeers by who comes first of TailscaleGateways of one Gateway: the older one, and
// of one age by namespace and name. Whose route was there before does not count, so that
// it comes out the same whoever looks first.
func comparePeers(a, b *gatewayv1alpha1.TailscaleGateway) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// A peerRoute was generated for another TailscaleGateway of the Gateway.
type peerRoute struct {
	*route

	// who has it, for people.
	who string
}

// before are the routes of TailscaleGateways that come first, in their order. A route
// whose TailscaleGateway is gone is about to go, too.
func (in input) before(ls []listener) []peerRoute {
	rank := map[types.NamespacedName]int{}
	for i, p := range slices.SortedFunc(slices.Values(in.peers), comparePeers) {
		if comparePeers(p, in.object) < 0 {
			rank[client.ObjectKeyFromObject(p)] = i
		}
	}
	if len(rank) == 0 {
		return nil
	}
	owners := map[ir.RouteKey]types.NamespacedName{}
	var out []peerRoute
	for _, o := range in.routes {
		refs := generatedParents(o)
		if refs == nil {
			continue
		}
		of := ownerByLabels(o)
		if _, ok := rank[of]; !ok {
			continue
		}
		kind, _ := statusOf(o)
		p := peerRoute{route: &route{Route: parse.ParseRoute(o), kind: kind}}
		p.join(refs, ls)
		p.who = inFull(generatedFor(o, p.route), of)
		owners[p.Key] = of
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b peerRoute) int {
		return cmp.Or(cmp.Compare(rank[owners[a.Key]], rank[owners[b.Key]]), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return out
}

// generatedParents are the parents of a generated route. Nil for what is none.
func generatedParents(o client.Object) []gwapiv1.ParentReference {
	if !isOurs(o) {
		return nil
	}
	switch r := o.(type) {
	case *gwapiv1.HTTPRoute:
		return r.Spec.ParentRefs
	case *gwapiv1.GRPCRoute:
		return r.Spec.ParentRefs
	}
	return nil
}

// join a route to the listeners that it names. A generated one has its place at them
// before it is accepted.
func (r *route) join(refs []gwapiv1.ParentReference, ls []listener) {
	for _, l := range ls {
		if slices.ContainsFunc(refs, func(p gwapiv1.ParentReference) bool {
			k, ok := parentOf(p, r.Key.Namespace)
			return ok && k == l.parent && ptr.Deref(p.SectionName, l.name) == l.name
		}) {
			r.listeners = append(r.listeners, l)
		}
	}
}

// generatedFor says what a generated route leads to, for people.
func generatedFor(r client.Object, parsed *route) string {
	tailnet := r.GetLabels()[meta.LabelGatewayTailnet]
	if e := endpointOf(r); e.Name != "" {
		return discoveredIn(e, tailnet)
	}
	if rules := parsed.Rules; len(rules) > 0 && len(rules[0].Backends) > 0 {
		kind, b := "Service", rules[0].Backends[0]
		if b.Kind == ir.BackendServices {
			kind = kindServices
		}
		return forTailnet(kind+" "+b.String(), tailnet)
	}
	return forTailnet(parsed.kind+" "+parsed.Key.String(), tailnet)
}

func forTailnet(what, tailnet string) string { return what + " for tailnet " + tailnet }

// inFull names what a route is for with its TailscaleGateway.
func inFull(what string, of types.NamespacedName) string {
	return what + " of TailscaleGateway " + of.String()
}

// inFull names what a wanted route is for where several TailscaleGateways are told of.
func (w *wanted) inFull(of *gatewayv1alpha1.TailscaleGateway) string {
	what := w.what
	if w.Direction == tailnetv1alpha1.DirectionIngress {
		what = forTailnet(what, w.Tailnet)
	}
	return inFull(what, client.ObjectKeyFromObject(of))
}
