// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"slices"
	"sync"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
)

// A reader reads from the extension's cache, and from the API server what the cache does not show.
type reader struct {
	cache   cache.Cache
	server  client.Reader
	options Options
	log     logging.Logger

	// mu guards the fields below.
	mu      sync.Mutex
	watched map[string]bool

	// policies are the informers of Envoy Gateway's policies, by kind. A kind that does not exist has
	// no informer.
	policies map[string]cache.Informer
}

// has reports whether a kind is watched, so that reading it sends no request.
func (rd *reader) has(kind string) bool {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	return rd.watched[kind]
}

// setWatched records that a kind is watched.
func (rd *reader) setWatched(kind string) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.watched[kind] = true
}

// list lists objects from the cache without copies. The objects are read-only.
func (rd *reader) list(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return rd.cache.List(ctx, l, append(opts, client.UnsafeDisableDeepCopy)...)
}

// get gets an object from the cache without a copy, and returns false if it does not exist. The
// object is read-only.
func (rd *reader) get(ctx context.Context, n types.NamespacedName, o client.Object) (bool, error) {
	err := rd.cache.Get(ctx, n, o, client.UnsafeDisableDeepCopy)
	if kerrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// A view holds the objects that concern a TailscaleGateway.
type view struct {
	// The input of plan. If its object is nil, no objects are desired.
	input

	// foreign reports that another extension manages the TailscaleGateway.
	foreign bool

	// policies are the existing generated BackendTLSPolicies.
	policies []*gwapiv1.BackendTLSPolicy
}

// reports returns the existing reports.
func (rd *reader) reports(ctx context.Context) []*tailnetv1alpha1.GatewayReport {
	l := &tailnetv1alpha1.GatewayReportList{}
	if !rd.has(kindReport) || rd.list(ctx, l) != nil {
		// The cache fails only when it stops.
		return nil
	}
	out := make([]*tailnetv1alpha1.GatewayReport, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// gatewayServices returns the TailscaleServices with a Gateway as backend.
func (rd *reader) gatewayServices(ctx context.Context) []*gatewayv1alpha1.TailscaleServices {
	l := &gatewayv1alpha1.TailscaleServicesList{}
	if !rd.has(routes.KindServices) || rd.list(ctx, l, client.MatchingFields{byBackend: backendGateway}) != nil {
		// The cache fails only when it stops.
		return nil
	}
	out := make([]*gatewayv1alpha1.TailscaleServices, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// all returns all TailscaleGateways, or those that match the options.
func (rd *reader) all(ctx context.Context, opts ...client.ListOption) []types.NamespacedName {
	return rd.matching(ctx, func(*gatewayv1alpha1.TailscaleGateway) bool { return true }, opts...)
}

// matching returns the TailscaleGateways that match a predicate and the options.
func (rd *reader) matching(ctx context.Context, matches func(*gatewayv1alpha1.TailscaleGateway) bool, opts ...client.ListOption) []types.NamespacedName {
	if !rd.has(routes.KindTailscaleGateway) {
		return nil
	}
	l := &gatewayv1alpha1.TailscaleGatewayList{}
	if err := rd.list(ctx, l, opts...); err != nil {
		// The cache fails only when it stops.
		return nil
	}
	var out []types.NamespacedName
	for i := range l.Items {
		if matches(&l.Items[i]) {
			out = append(out, client.ObjectKeyFromObject(&l.Items[i]))
		}
	}
	return out
}

// dedicated returns the Gateway of a TailscaleGateway, and whether the Gateway has a dedicated
// extension. A dedicated extension reads one namespace only, so it needs a Gateway in the
// namespace of the TailscaleGateway.
func dedicated(o *gatewayv1alpha1.TailscaleGateway) (types.NamespacedName, bool) {
	n := o.GatewayName()
	return n, o.Spec.ExtensionServer != nil && n.Namespace == o.Namespace && n.Name != ""
}

// manages reports whether this extension manages the objects of a TailscaleGateway.
func (rd *reader) manages(o *gatewayv1alpha1.TailscaleGateway) bool {
	n, own := dedicated(o)
	if rd.options.Gateway == nil {
		return !own
	}
	return own && n == *rd.options.Gateway
}

// setPolicies sets the informer of a kind of Envoy Gateway's policies.
func (rd *reader) setPolicies(kind string, i cache.Informer) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.policies[kind] = i
}

// policiesSynced reports whether the cache has all policies of Envoy Gateway of some kinds.
func (rd *reader) policiesSynced(kinds ...string) bool {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	return !slices.ContainsFunc(kinds, func(kind string) bool {
		i := rd.policies[kind]
		return i == nil || !i.HasSynced()
	})
}
