// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

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

// comparePeers compares TailscaleGateways of one Gateway by precedence: the older one comes
// first, and of the same age they are sorted by namespace and name. Existing routes do not
// matter, so the result does not depend on the order of events.
func comparePeers(a, b *gatewayv1alpha1.TailscaleGateway) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// A PeerRoute was generated for another TailscaleGateway of the Gateway.
type PeerRoute struct {
	*Route

	// owner describes the route's target and its TailscaleGateway in messages.
	owner string
}

// Preceding returns the generated routes of TailscaleGateways with higher precedence, in
// their order. It ignores routes whose TailscaleGateway is gone, may not share the Gateway, or may not
// use the tailnet, because they will be deleted.
func (inputs Input) Preceding(ls []Listener) []PeerRoute {
	rank, refused := map[types.NamespacedName]int{}, map[types.NamespacedName]map[string]bool{}
	for i, p := range slices.SortedFunc(slices.Values(inputs.Peers), comparePeers) {
		if comparePeers(p, inputs.Object) < 0 && inputs.Grants.PermitGateway(p.Namespace, p.GatewayName()) {
			rank[client.ObjectKeyFromObject(p)] = i
			refused[client.ObjectKeyFromObject(p)] = parse.RefusedTailnets(p)
		}
	}
	if len(rank) == 0 {
		return nil
	}
	owners := map[ir.RouteKey]types.NamespacedName{}
	var out []PeerRoute
	for _, o := range inputs.Routes {
		refs := generatedParents(o)
		if refs == nil {
			continue
		}
		key := Owner(o)
		if _, ok := rank[key]; !ok || refused[key][o.GetLabels()[meta.LabelGatewayTailnet]] {
			continue
		}
		kind, _ := StatusOf(o)
		p := PeerRoute{Route: &Route{Route: parse.ParseRoute(o), Kind: kind}}
		p.attachRefs(refs, ls)
		p.owner = withGateway(generatedFor(o, p.Route), key)
		owners[p.Key] = key
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b PeerRoute) int {
		return cmp.Or(cmp.Compare(rank[owners[a.Key]], rank[owners[b.Key]]), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return out
}

// generatedParents returns the parents of a generated route, and nil for other objects.
func generatedParents(o client.Object) []gwapiv1.ParentReference {
	if !IsManaged(o) {
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

// attachRefs attaches a route to the listeners in its parent references. A generated route
// occupies its place at them before it is accepted.
func (r *Route) attachRefs(refs []gwapiv1.ParentReference, ls []Listener) {
	for _, l := range ls {
		if slices.ContainsFunc(refs, func(p gwapiv1.ParentReference) bool {
			k, ok := ParentOf(p, r.Key.Namespace)
			return ok && k == l.Parent && ptr.Deref(p.SectionName, l.Name) == l.Name
		}) {
			r.Listeners = append(r.Listeners, l)
		}
	}
}

// generatedFor describes the target of a generated route in messages.
func generatedFor(r client.Object, parsed *Route) string {
	tailnet := r.GetLabels()[meta.LabelGatewayTailnet]
	if e := endpointOf(r); e.Name != "" {
		return discoveredIn(e, tailnet)
	}
	if rules := parsed.Rules; len(rules) > 0 && len(rules[0].Backends) > 0 {
		kind, b := "Service", rules[0].Backends[0]
		if b.Kind == ir.BackendServices {
			kind = KindServices
		}
		return forTailnet(kind+" "+b.String(), tailnet)
	}
	return forTailnet(parsed.Kind+" "+parsed.Key.String(), tailnet)
}

// forTailnet adds the tailnet to the description of a target.
func forTailnet(target, tailnet string) string { return target + " for tailnet " + tailnet }

// withGateway adds the TailscaleGateway to the description of a target.
func withGateway(target string, key types.NamespacedName) string {
	return target + " of TailscaleGateway " + key.String()
}

// withGateway describes the target of a desired route in messages about several
// TailscaleGateways.
func (w *Desired) withGateway(o *gatewayv1alpha1.TailscaleGateway) string {
	target := w.target
	if w.Direction == tailnetv1alpha1.DirectionIngress {
		target = forTailnet(target, w.Tailnet)
	}
	return withGateway(target, client.ObjectKeyFromObject(o))
}
