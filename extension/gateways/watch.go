// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// retryInterval between two attempts to watch kinds that are not there yet.
const retryInterval = 10 * time.Second

// Indexes of the cache.
const (
	// byParent finds what attaches to a Gateway or a ListenerSet, by its parentKey.
	byParent = "tailscale-gateway/parent"

	// byOwner finds what belongs to a TailscaleGateway, by its namespace and name.
	byOwner = "tailscale-gateway/owner"

	// byFront finds TailscaleServices that lead to Gateways, by isFront.
	byFront = "tailscale-gateway/front"
	isFront = "true"
)

// A watched kind.
type watched struct {
	object  client.Object
	indexes map[string]client.IndexerFunc

	// heard is called for each change, by all replicas. It may be nil.
	heard func(ctx context.Context)

	// concerns are the TailscaleGateways that an object concerns.
	concerns func(ctx context.Context, o client.Object) []types.NamespacedName
}

// kinds that are watched, by name.
func (c *Controller) kinds() map[string]watched {
	out := map[string]watched{
		kindGateway: {object: &gwapiv1.Gateway{}, concerns: func(ctx context.Context, o client.Object) []types.NamespacedName {
			return c.joined(ctx, keyOf(kindGateway, client.ObjectKeyFromObject(o)))
		}},
		kindListenerSet:      {object: &gwapiv1.ListenerSet{}, indexes: map[string]client.IndexerFunc{byParent: parents}, concerns: c.attached},
		kindReferenceGrant:   {object: &gwapiv1beta1.ReferenceGrant{}, concerns: everyone(c)},
		kindTailscaleGateway: {object: &gatewayv1alpha1.TailscaleGateway{}, indexes: map[string]client.IndexerFunc{byParent: parents}, heard: c.tellDedicated, concerns: c.withPeers},
		kindRoutePolicy:      {object: &gatewayv1alpha1.TailscaleRoutePolicy{}, concerns: everyone(c)},
		kindSecurityPolicy:   {object: securityPolicy(), concerns: everyone(c)},
		kindReport:           {object: &tailnetv1alpha1.GatewayReport{}, concerns: owner},
		kindEndpoints:        {object: &gatewayv1alpha1.TailscaleEndpoints{}, indexes: map[string]client.IndexerFunc{byOwner: byLabels}, concerns: c.searchers},
		kindServices:         {object: &gatewayv1alpha1.TailscaleServices{}, indexes: map[string]client.IndexerFunc{byOwner: byLabels, byFront: front}, concerns: c.frontOf},
		kindTLSPolicy:        {object: &gwapiv1.BackendTLSPolicy{}, indexes: map[string]client.IndexerFunc{byOwner: byLabels}, concerns: labelled},
	}
	for kind, o := range routeKinds() {
		out[kind] = watched{object: o, indexes: map[string]client.IndexerFunc{byParent: parents}, concerns: c.attached}
	}
	out[kindHTTPRoute].indexes[byOwner] = byLabels
	out[kindGRPCRoute].indexes[byOwner] = byLabels
	return out
}

// everyone is each TailscaleGateway there is.
func everyone(c *Controller) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, _ client.Object) []types.NamespacedName { return c.all(ctx) }
}

// securityPolicy is of the kind that is watched.
func securityPolicy() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: groupEnvoyGateway, Version: "v1alpha1", Kind: kindSecurityPolicy})
	return o
}

func routeKinds() map[string]client.Object {
	return map[string]client.Object{
		"HTTPRoute": &gwapiv1.HTTPRoute{}, "GRPCRoute": &gwapiv1.GRPCRoute{}, "TCPRoute": &gwapiv1.TCPRoute{},
		"TLSRoute": &gwapiv1.TLSRoute{}, "UDPRoute": &gwapiv1.UDPRoute{},
	}
}

// parents that an object attaches to.
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
		return []string{string(keyOf(kindGateway, gatewayOf(o)))}
	}
	var out []string
	for _, r := range refs {
		if k, ok := parentOf(r, o.GetNamespace()); ok && !slices.Contains(out, string(k)) {
			out = append(out, string(k))
		}
	}
	return out
}

// isOurs reports whether the extension wrote an object for a TailscaleGateway.
func isOurs(o client.Object) bool {
	return isGenerated(o) && o.GetLabels()[reconcile.ManagedByLabel] == reconcile.ManagedBy
}

// withPeers are a TailscaleGateway and the others of its Gateway: which of them comes
// first may be another now. Where a Tailscale Service leads to a Gateway it is all of them:
// which routes lead in a circle may be others now.
func (c *Controller) withPeers(ctx context.Context, o client.Object) []types.NamespacedName {
	out := append(c.attached(ctx, o), client.ObjectKeyFromObject(o))
	if len(c.fronts(ctx)) > 0 {
		out = append(out, c.all(ctx)...)
	}
	return out
}

// owner of a GatewayReport.
func owner(_ context.Context, o client.Object) []types.NamespacedName {
	r, ok := o.(*tailnetv1alpha1.GatewayReport)
	if !ok {
		return nil
	}
	return []types.NamespacedName{{Namespace: r.Namespace, Name: r.Spec.Gateway}}
}

// labelled is the TailscaleGateway that labels tell of: one of the same namespace, unless
// they tell that, too.
func labelled(_ context.Context, o client.Object) []types.NamespacedName {
	if n := ownerByLabels(o); n.Name != "" {
		return []types.NamespacedName{n}
	}
	return nil
}

// ownerByLabels has no name if labels do not tell.
func ownerByLabels(o client.Object) types.NamespacedName {
	l := o.GetLabels()
	return types.NamespacedName{Namespace: cmp.Or(l[meta.LabelGatewayNamespace], o.GetNamespace()), Name: l[meta.LabelGateway]}
}

// byLabels is labelled, for an index. Of routes and policies it has those that are ours.
func byLabels(o client.Object) []string {
	switch o.(type) {
	case *gwapiv1.HTTPRoute, *gwapiv1.GRPCRoute, *gwapiv1.BackendTLSPolicy:
		if !isOurs(o) {
			return nil
		}
	}
	var out []string
	for _, n := range labelled(context.Background(), o) {
		out = append(out, n.String())
	}
	return out
}

// front is isFront for a TailscaleServices that leads to a Gateway.
func front(o client.Object) []string {
	s, ok := o.(*gatewayv1alpha1.TailscaleServices)
	if !ok || !slices.ContainsFunc(s.Spec.Backends, func(b gatewayv1alpha1.Backend) bool { return b.Kind == gatewayv1alpha1.BackendKindGateway }) {
		return nil
	}
	return []string{isFront}
}

// frontOf are the TailscaleGateways that a TailscaleServices concerns: all of them if it
// leads to a Gateway, for any may have found it.
func (c *Controller) frontOf(ctx context.Context, o client.Object) []types.NamespacedName {
	if front(o) != nil {
		return c.all(ctx)
	}
	return append(labelled(ctx, o), c.pickers(ctx, o)...)
}

// pickers are the TailscaleGateways whose selectors may pick an object.
func (c *Controller) pickers(ctx context.Context, o client.Object) []types.NamespacedName {
	l := &gatewayv1alpha1.TailscaleGatewayList{}
	if _, composed := o.GetLabels()[meta.LabelGateway]; composed || !c.has(kindTailscaleGateway) || c.list(ctx, l, client.InNamespace(o.GetNamespace())) != nil {
		// The cache fails only when it ends.
		return nil
	}
	var out []types.NamespacedName
	for i := range l.Items {
		if slices.ContainsFunc(l.Items[i].Spec.Tailnets, picks) {
			out = append(out, client.ObjectKeyFromObject(&l.Items[i]))
		}
	}
	return out
}

// searchers are the TailscaleGateways that a TailscaleEndpoints concerns: the one that it
// discovers for, and those that lead to its Gateway, or may, if it found a way to another
// Gateway.
func (c *Controller) searchers(ctx context.Context, o client.Object) []types.NamespacedName {
	e, ok := o.(*gatewayv1alpha1.TailscaleEndpoints)
	if !ok || len(e.Status.DiscoveredEndpoints) == 0 {
		return append(labelled(ctx, o), c.pickers(ctx, o)...)
	}
	fronts := map[string]bool{}
	for _, s := range c.fronts(ctx) {
		if vip := s.Status.VIPServiceStatus; vip != nil {
			fronts[dnsNameOf(vip.DNSName)] = true
		}
	}
	if slices.ContainsFunc(e.Status.DiscoveredEndpoints, func(d gatewayv1alpha1.DiscoveredEndpoint) bool { return fronts[dnsNameOf(d.TailscaleFQDN)] }) {
		return c.all(ctx)
	}
	return append(labelled(ctx, o), c.pickers(ctx, o)...)
}

// fronts are the TailscaleServices that lead to Gateways.
func (c *Controller) fronts(ctx context.Context) []*gatewayv1alpha1.TailscaleServices {
	l := &gatewayv1alpha1.TailscaleServicesList{}
	if !c.has(kindServices) || c.list(ctx, l, client.MatchingFields{byFront: isFront}) != nil {
		// The cache fails only when it ends.
		return nil
	}
	out := make([]*gatewayv1alpha1.TailscaleServices, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// attached are the TailscaleGateways of the Gateways that an object attaches to, and that
// for which it was generated: that one's Gateway may be another by now.
func (c *Controller) attached(ctx context.Context, o client.Object) []types.NamespacedName {
	var out []types.NamespacedName
	if isGenerated(o) {
		out = labelled(ctx, o)
	}
	for _, p := range parents(o) {
		out = append(out, c.joined(ctx, parentKey(p))...)
	}
	return out
}

// joined are the TailscaleGateways of a Gateway, or of a ListenerSet's.
func (c *Controller) joined(ctx context.Context, k parentKey) []types.NamespacedName {
	kind, n := k.split()
	if kind == kindListenerSet {
		if !c.has(kindListenerSet) {
			return nil
		}
		s := &gwapiv1.ListenerSet{}
		if err := c.cache.Get(ctx, n, s); err != nil {
			// It tells of itself when it comes.
			return nil
		}
		return c.attached(ctx, s)
	}
	return c.all(ctx, client.MatchingFields{byParent: string(k)})
}

// all TailscaleGateways there are, or those of one Gateway.
func (c *Controller) all(ctx context.Context, opts ...client.ListOption) []types.NamespacedName {
	if !c.has(kindTailscaleGateway) {
		return nil
	}
	l := &gatewayv1alpha1.TailscaleGatewayList{}
	if err := c.list(ctx, l, opts...); err != nil {
		// The cache fails only when it ends.
		return nil
	}
	var out []types.NamespacedName
	for i := range l.Items {
		out = append(out, client.ObjectKeyFromObject(&l.Items[i]))
	}
	return out
}

// Watch all kinds, until ctx ends. A kind whose CRD comes later is picked up within 10
// seconds. Nothing is written before all that the API server knows are watched: half of
// it would be taken for all.
func (c *Controller) Watch(ctx context.Context) error {
	missing := c.kinds()
	retry := time.NewTicker(retryInterval)
	defer retry.Stop()
	for {
		all := true
		for _, k := range slices.Sorted(maps.Keys(missing)) {
			err := c.watch(ctx, missing[k])
			switch {
			case err == nil:
				c.knows(k)
				delete(missing, k)
			case !kmeta.IsNoMatchError(err) && ctx.Err() == nil:
				all = false
				c.log.Info("Cannot watch a kind, and will try again", "kind", k, "error", err)
			}
		}
		if all && ctx.Err() == nil {
			c.looked()
		}
		c.noticeSynced(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
		}
	}
}

func (c *Controller) watch(ctx context.Context, k watched) error {
	i, err := c.cache.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot get an informer")
	}
	for field, fn := range k.indexes {
		if err := c.cache.IndexField(ctx, k.object, field, fn); err != nil {
			return errors.Wrap(err, "cannot index")
		}
	}
	concerns := func(of any) {
		if t, ok := of.(toolscache.DeletedFinalStateUnknown); ok {
			of = t.Obj
		}
		if k.heard != nil {
			k.heard(ctx)
		}
		if o, ok := of.(client.Object); ok && c.writes() {
			c.enqueue(k.concerns(ctx, o)...)
		}
	}
	if _, ok := k.object.(*unstructured.Unstructured); ok {
		c.mu.Lock()
		c.securityPolicies = i
		c.mu.Unlock()
	}
	_, err = i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: concerns,
		UpdateFunc: func(old, now any) {
			if !same(old, now) {
				concerns(old)
				concerns(now)
			}
		},
		DeleteFunc: concerns,
	})
	return errors.Wrap(err, "cannot add an event handler")
}

// same reports whether nothing changed that the cache keeps.
func same(old, now any) bool {
	a, ok := old.(client.Object)
	b, also := now.(client.Object)
	if !ok || !also || a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() || !maps.Equal(a.GetLabels(), b.GetLabels()) ||
		a.GetDeletionTimestamp().IsZero() != b.GetDeletionTimestamp().IsZero() {
		return false
	}
	if e, ok := now.(*gatewayv1alpha1.TailscaleEndpoints); ok {
		was, ok := old.(*gatewayv1alpha1.TailscaleEndpoints)
		return ok && equality.Semantic.DeepEqual(was.Status, e.Status)
	}
	if s, ok := now.(*gatewayv1alpha1.TailscaleServices); ok {
		was, ok := old.(*gatewayv1alpha1.TailscaleServices)
		return ok && equality.Semantic.DeepEqual(was.Status, s.Status)
	}
	_, was := statusOf(a)
	_, is := statusOf(b)
	if b.GetGeneration() == 0 {
		// A kind without generations.
		return reflect.DeepEqual(a, b)
	}
	return equality.Semantic.DeepEqual(was, is)
}
