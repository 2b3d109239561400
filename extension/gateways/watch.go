// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A watched kind.
type watched struct {
	object  client.Object
	indexes map[string]client.IndexerFunc

	// onChange is called for each change, by all replicas. It may be nil.
	onChange func(ctx context.Context)

	// affected returns the TailscaleGateways that a change of an object affects.
	affected func(ctx context.Context, o client.Object) []types.NamespacedName
}

// kinds returns the watched kinds by name.
func (c *Controller) kinds() map[string]watched {
	out := map[string]watched{
		routes.KindGateway: {object: &gwapiv1.Gateway{}, affected: func(ctx context.Context, o client.Object) []types.NamespacedName {
			return c.gatewaysOf(ctx, routes.KeyOf(routes.KindGateway, client.ObjectKeyFromObject(o)))
		}},
		routes.KindListenerSet:      {object: &gwapiv1.ListenerSet{}, indexes: map[string]client.IndexerFunc{byParent: parents}, affected: c.attached},
		kindReferenceGrant:          {object: &gwapiv1beta1.ReferenceGrant{}, affected: allOf(c)},
		routes.KindTailscaleGateway: {object: &gatewayv1alpha1.TailscaleGateway{}, indexes: map[string]client.IndexerFunc{byParent: parents}, onChange: c.notifyDedicated, affected: c.affectedPeers},
		kindRoutePolicy:             {object: &gatewayv1alpha1.TailscaleRoutePolicy{}, affected: publishing(c)},
		kindReport:                  {object: &tailnetv1alpha1.GatewayReport{}, affected: owner},
		kindEndpoints:               {object: &gatewayv1alpha1.TailscaleEndpoints{}, indexes: map[string]client.IndexerFunc{byOwner: byLabels}, affected: c.affectedByEndpoints},
		routes.KindServices:         {object: &gatewayv1alpha1.TailscaleServices{}, indexes: map[string]client.IndexerFunc{byOwner: byLabels, byBackend: gatewayBackend}, affected: c.affectedByServices},
		routes.KindTLSPolicy:        {object: &gwapiv1.BackendTLSPolicy{}, indexes: map[string]client.IndexerFunc{byOwner: byLabels}, affected: ownerByLabel},
	}
	for _, kind := range parse.PolicyKinds() {
		out[kind] = watched{object: parse.NewPolicy(kind), affected: publishing(c)}
	}
	for kind, o := range routeKinds() {
		out[kind] = watched{object: o, indexes: map[string]client.IndexerFunc{byParent: parents}, affected: c.attached}
	}
	out[routes.KindHTTPRoute].indexes[byOwner] = byLabels
	out[routes.KindGRPCRoute].indexes[byOwner] = byLabels
	return out
}

// allOf returns a function that returns all TailscaleGateways.
func allOf(c *Controller) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, _ client.Object) []types.NamespacedName { return c.all(ctx) }
}

// publishing returns a function that returns the TailscaleGateways that publish backends which no
// policy protects.
func publishing(c *Controller) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, _ client.Object) []types.NamespacedName {
		return c.matching(ctx, publishesUnprotected)
	}
}

func routeKinds() map[string]client.Object {
	return map[string]client.Object{
		"HTTPRoute": &gwapiv1.HTTPRoute{}, "GRPCRoute": &gwapiv1.GRPCRoute{}, "TCPRoute": &gwapiv1.TCPRoute{},
		"TLSRoute": &gwapiv1.TLSRoute{}, "UDPRoute": &gwapiv1.UDPRoute{},
	}
}

// parents returns the keys of the parents that an object attaches to.
func parents(o client.Object) []string {
	var refs []gwapiv1.ParentReference
	switch o := o.(type) {
	case *gwapiv1.HTTPRoute:
		refs = o.Spec.ParentRefs
	case *gwapiv1.GRPCRoute:
		refs = o.Spec.ParentRefs
	case *gwapiv1.TCPRoute:
		refs = o.Spec.ParentRefs
	case *gwapiv1.TLSRoute:
		refs = o.Spec.ParentRefs
	case *gwapiv1.UDPRoute:
		refs = o.Spec.ParentRefs
	case *gwapiv1.ListenerSet:
		r := o.Spec.ParentRef
		refs = []gwapiv1.ParentReference{{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}}
	case *gatewayv1alpha1.TailscaleGateway:
		if o.GatewayName().Name == "" {
			return nil
		}
		return []string{string(routes.KeyOf(routes.KindGateway, o.GatewayName()))}
	}
	var out []string
	for _, r := range refs {
		if k, ok := routes.ParentOf(r, o.GetNamespace()); ok && !slices.Contains(out, string(k)) {
			out = append(out, string(k))
		}
	}
	return out
}

// affectedPeers returns a TailscaleGateway and the others of its Gateway, because their
// precedence may change. If a Tailscale Service leads to a Gateway it returns all
// TailscaleGateways, because the routing loops may change.
func (c *Controller) affectedPeers(ctx context.Context, o client.Object) []types.NamespacedName {
	out := append(c.attached(ctx, o), client.ObjectKeyFromObject(o))
	if len(c.gatewayServices(ctx)) > 0 {
		out = append(out, c.all(ctx)...)
	}
	return out
}

// owner returns the TailscaleGateway of a GatewayReport.
func owner(_ context.Context, o client.Object) []types.NamespacedName {
	r, ok := o.(*tailnetv1alpha1.GatewayReport)
	if !ok {
		return nil
	}
	return []types.NamespacedName{{Namespace: r.Namespace, Name: r.Spec.Gateway}}
}

// ownerByLabel returns the TailscaleGateway in the labels of an object, if there is one.
func ownerByLabel(_ context.Context, o client.Object) []types.NamespacedName {
	if n := routes.Owner(o); n.Name != "" {
		return []types.NamespacedName{n}
	}
	return nil
}

// byLabels is ownerByLabel as an index function. It indexes only generated routes and policies.
func byLabels(o client.Object) []string {
	switch o.(type) {
	case *gwapiv1.HTTPRoute, *gwapiv1.GRPCRoute, *gwapiv1.BackendTLSPolicy:
		if !routes.IsManaged(o) {
			return nil
		}
	}
	var out []string
	for _, n := range ownerByLabel(context.Background(), o) {
		out = append(out, n.String())
	}
	return out
}

// gatewayBackend is the index function of byBackend.
func gatewayBackend(o client.Object) []string {
	s, ok := o.(*gatewayv1alpha1.TailscaleServices)
	if !ok || !routes.LeadsToGateway(s) {
		return nil
	}
	return []string{backendGateway}
}

// affectedByServices returns the TailscaleGateways that a TailscaleServices affects. If its
// backend is a Gateway it returns all, because any of them may have discovered it.
func (c *Controller) affectedByServices(ctx context.Context, o client.Object) []types.NamespacedName {
	if gatewayBackend(o) != nil {
		return c.all(ctx)
	}
	return append(ownerByLabel(ctx, o), c.selecting(ctx, o)...)
}

// selecting returns the TailscaleGateways whose selectors may select an object.
func (c *Controller) selecting(ctx context.Context, o client.Object) []types.NamespacedName {
	if _, composed := o.GetLabels()[meta.LabelGateway]; composed {
		return nil
	}
	return c.matching(ctx, func(g *gatewayv1alpha1.TailscaleGateway) bool {
		return slices.ContainsFunc(g.Spec.Tailnets, routes.HasSelector)
	}, client.InNamespace(o.GetNamespace()))
}

// affectedByEndpoints returns the TailscaleGateways that a TailscaleEndpoints affects: the one
// that it discovers for, and those that may select it. If it discovered a Tailscale Service
// that leads to a Gateway it returns all, because the routing loops may change.
func (c *Controller) affectedByEndpoints(ctx context.Context, o client.Object) []types.NamespacedName {
	e, ok := o.(*gatewayv1alpha1.TailscaleEndpoints)
	if !ok || len(e.Status.DiscoveredEndpoints) == 0 {
		return append(ownerByLabel(ctx, o), c.selecting(ctx, o)...)
	}
	names := map[string]bool{}
	for _, s := range c.gatewayServices(ctx) {
		if vip := s.Status.VIPServiceStatus; vip != nil {
			names[routes.DNSName(vip.DNSName)] = true
		}
	}
	if slices.ContainsFunc(e.Status.DiscoveredEndpoints, func(d gatewayv1alpha1.DiscoveredEndpoint) bool { return names[routes.DNSName(d.TailscaleFQDN)] }) {
		return c.all(ctx)
	}
	return append(ownerByLabel(ctx, o), c.selecting(ctx, o)...)
}

// attached returns the TailscaleGateways of the Gateways that an object attaches to. For a
// generated object it also returns the TailscaleGateway in its labels, whose Gateway may have
// changed.
func (c *Controller) attached(ctx context.Context, o client.Object) []types.NamespacedName {
	var out []types.NamespacedName
	if routes.IsGenerated(o) {
		out = ownerByLabel(ctx, o)
	}
	for _, p := range parents(o) {
		out = append(out, c.gatewaysOf(ctx, routes.ParentKey(p))...)
	}
	return out
}

// gatewaysOf returns the TailscaleGateways of a Gateway, or of the Gateway of a ListenerSet.
func (c *Controller) gatewaysOf(ctx context.Context, k routes.ParentKey) []types.NamespacedName {
	kind, n := k.Split()
	if kind == routes.KindListenerSet {
		if !c.has(routes.KindListenerSet) {
			return nil
		}
		s := &gwapiv1.ListenerSet{}
		if found, err := c.get(ctx, n, s); err != nil || !found {
			// Its own event follows once it is in the cache.
			return nil
		}
		return c.attached(ctx, s)
	}
	return c.all(ctx, client.MatchingFields{byParent: string(k)})
}

// Watch watches all kinds until ctx ends. It finds a kind whose CRD is installed later within
// 10 seconds. Write begins only after all existing kinds are watched, because it deletes the
// objects that a partial view does not require.
func (c *Controller) Watch(ctx context.Context) error {
	all := c.kinds()
	objects := make(map[string]client.Object, len(all))
	for name, k := range all {
		objects[name] = k.object
	}
	kinds := watch.NewKinds(c.cache, objects, c.log)
	retry := time.NewTicker(watch.RetryInterval)
	defer retry.Stop()
	for {
		kinds.Try(ctx, func(name string, i cache.Informer) error {
			err := c.watch(ctx, all[name], i)
			if err == nil {
				c.setWatched(name)
			}
			return err
		})
		if kinds.Complete() && ctx.Err() == nil {
			c.markReady()
		}
		c.checkSynced(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
		}
	}
}

// watch adds the indexes and event handlers of a kind.
func (c *Controller) watch(ctx context.Context, k watched, i cache.Informer) error {
	for field, fn := range k.indexes {
		if err := c.cache.IndexField(ctx, k.object, field, fn); err != nil {
			return errors.Wrap(err, "cannot index")
		}
	}
	affected := func(o client.Object) {
		if k.onChange != nil {
			k.onChange(ctx)
		}
		if c.writes() {
			c.enqueue(k.affected(ctx, o)...)
		}
	}
	if o, ok := k.object.(*unstructured.Unstructured); ok {
		c.setPolicies(o.GetKind(), i)
	}
	_, err := i.AddEventHandler(watch.Handler(func(old, updated client.Object) {
		if old != nil && updated != nil && same(old, updated) {
			return
		}
		for _, o := range []client.Object{old, updated} {
			if o != nil {
				affected(o)
			}
		}
	}))
	return errors.Wrap(err, "cannot add an event handler")
}

// same reports whether the relevant fields of an object are unchanged.
func same(a, b client.Object) bool {
	if a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() || !maps.Equal(a.GetLabels(), b.GetLabels()) ||
		a.GetDeletionTimestamp().IsZero() != b.GetDeletionTimestamp().IsZero() {
		return false
	}
	if e, ok := b.(*gatewayv1alpha1.TailscaleEndpoints); ok {
		previous, ok := a.(*gatewayv1alpha1.TailscaleEndpoints)
		return ok && equality.Semantic.DeepEqual(previous.Status, e.Status)
	}
	if g, ok := b.(*gatewayv1alpha1.TailscaleGateway); ok {
		previous, ok := a.(*gatewayv1alpha1.TailscaleGateway)
		return ok && maps.Equal(parse.RefusedTailnets(previous), parse.RefusedTailnets(g))
	}
	if s, ok := b.(*gatewayv1alpha1.TailscaleServices); ok {
		previous, ok := a.(*gatewayv1alpha1.TailscaleServices)
		return ok && equality.Semantic.DeepEqual(previous.Status, s.Status)
	}
	_, previous := routes.StatusOf(a)
	_, current := routes.StatusOf(b)
	if b.GetGeneration() == 0 {
		// The kind has no generations.
		return reflect.DeepEqual(a, b)
	}
	return equality.Semantic.DeepEqual(previous, current)
}

// checkSynced enqueues all TailscaleGateways once the cache has all policies of Envoy Gateway. If
// there are none, no event does so.
func (c *Controller) checkSynced(ctx context.Context) {
	synced := c.policiesSynced(parse.PolicyKinds()...)
	c.mu.Lock()
	completed := synced && !c.synced
	c.synced = synced
	c.mu.Unlock()
	if completed {
		c.enqueue(c.all(ctx)...)
	}
}

// owners returns the TailscaleGateways of all existing reports and generated objects.
func (c *Controller) owners(ctx context.Context) []types.NamespacedName {
	var out []types.NamespacedName
	for kind, source := range map[string]struct {
		list  client.ObjectList
		owner func(context.Context, client.Object) []types.NamespacedName
	}{
		kindReport:           {&tailnetv1alpha1.GatewayReportList{}, owner},
		routes.KindHTTPRoute: {&gwapiv1.HTTPRouteList{}, generatedOwner},
		routes.KindGRPCRoute: {&gwapiv1.GRPCRouteList{}, generatedOwner},
		routes.KindTLSPolicy: {&gwapiv1.BackendTLSPolicyList{}, generatedOwner},
	} {
		if !c.has(kind) || c.list(ctx, source.list) != nil {
			// The cache fails only when it stops.
			continue
		}
		_ = kmeta.EachListItem(source.list, func(o runtime.Object) error { // It fails only for objects that are no lists.
			if o, ok := o.(client.Object); ok {
				out = append(out, source.owner(ctx, o)...)
			}
			return nil
		})
	}
	return out
}

// generatedOwner returns the TailscaleGateway of a generated object.
func generatedOwner(ctx context.Context, o client.Object) []types.NamespacedName {
	if !routes.IsManaged(o) {
		return nil
	}
	return ownerByLabel(ctx, o)
}
