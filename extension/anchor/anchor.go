// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package anchor gives TCPRoutes, UDPRoutes and TLSRoutes a true status. Envoy Gateway
// loads objects of ours only for HTTPRoutes and GRPCRoutes that name them
// (envoyproxy/gateway internal/provider/kubernetes/routes.go): of a TCPRoute it says
// BackendNotFound though the object is there, and its traffic flows. What it has loaded
// for one route it finds for all of the GatewayClass.
//
// So for each Gateway there is, in each namespace with such routes to it, an HTTPRoute
// that names the same objects. It attaches to no listener: its sectionName is one that
// no Gateway has. Envoy Gateway still loads what it names, makes nothing else of it, and
// says NoMatchingParent in its status. Listeners, their counts of routes, virtual hosts
// and certificates are as without it.
package anchor

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/keep"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Gateway API lets a route have 16 rules of 16 backends each.
const (
	maxRules    = 16
	maxBackends = 16
)

// Anchors keeps the anchors.
type Anchors struct {
	keeper *keep.Keeper
	store  *index.Store
}

// New returns Anchors that are written by the client once they run.
func New(c client.Client, s *index.Store, log logging.Logger) *Anchors {
	k := keep.NewKeeper("HTTPRoute", &writer{client: c}, log)
	k.Leave(func(_ types.NamespacedName, state string) bool {
		g, _, err := decode(state)
		return err == nil && !s.Serves(g)
	})
	return &Anchors{keeper: k, store: s}
}

// Run until ctx ends. The store must be complete.
func (a *Anchors) Run(ctx context.Context, from watch.Informers) error {
	if err := a.keeper.Watch(ctx, from, &gwapiv1.HTTPRoute{}, state); err != nil || ctx.Err() != nil {
		return err
	}
	changed, end := a.store.Revised()
	defer end()
	want := func() { a.keeper.Want(wanted(a.store.Snapshot())) }
	want()
	return a.keeper.Follow(ctx, changed, want)
}

// An anchored object, as KIND/NAME.
type anchored string

// A place where an anchor is: a namespace with routes to a Gateway.
type place struct {
	namespace string
	gateway   types.NamespacedName
}

// wanted anchors, by name, with their states.
func wanted(s *ir.Snapshot) map[types.NamespacedName]string {
	places := map[place]map[anchored]struct{}{}
	for r := range s.Routes() {
		if r.Key.Kind == ir.KindHTTPRoute || r.Key.Kind == ir.KindGRPCRoute {
			continue
		}
		for _, rule := range r.Rules {
			for _, b := range rule.Backends {
				// What is in another namespace is refused before it is looked for.
				if !b.Ours() || b.Namespace != r.Key.Namespace {
					continue
				}
				for _, g := range r.Gateways {
					p := place{namespace: r.Key.Namespace, gateway: g}
					if places[p] == nil {
						places[p] = map[anchored]struct{}{}
					}
					places[p][object(b)] = struct{}{}
				}
			}
		}
	}
	out := map[types.NamespacedName]string{}
	for p, of := range places {
		i := 0
		for chunk := range slices.Chunk(slices.Sorted(maps.Keys(of)), maxRules*maxBackends) {
			out[types.NamespacedName{Namespace: p.namespace, Name: p.name(i)}] = encode(p.gateway, chunk)
			i++
		}
	}
	return out
}

func object(b ir.BackendRef) anchored {
	kind := v1alpha1.TailscaleServicesKind
	if b.Kind == ir.BackendEndpoints {
		kind = v1alpha1.TailscaleEndpointsKind
	}
	return anchored(kind + "/" + b.Name)
}

// name of the i-th anchor of a place.
func (p place) name(i int) string {
	parts := []string{"tailscale-anchor", p.gateway.Namespace, p.gateway.Name}
	if i > 0 {
		parts = append(parts, strconv.Itoa(i))
	}
	return names.Child(parts...)
}

// encode what an anchor is for: NAMESPACE/GATEWAY, then KIND/NAME of each object, with
// spaces between.
func encode(g types.NamespacedName, of []anchored) string {
	var b strings.Builder
	b.WriteString(g.Namespace + "/" + g.Name)
	for _, o := range of {
		b.WriteString(" " + string(o))
	}
	return b.String()
}

func decode(state string) (types.NamespacedName, []anchored, error) {
	fields := strings.Fields(state)
	if len(fields) == 0 {
		return types.NamespacedName{}, nil, errors.New("an anchor without a Gateway")
	}
	ns, name, _ := strings.Cut(fields[0], "/")
	of := make([]anchored, 0, len(fields)-1)
	for _, f := range fields[1:] {
		of = append(of, anchored(f))
	}
	return types.NamespacedName{Namespace: ns, Name: name}, of, nil
}

// state of an HTTPRoute. It is empty for one that is no anchor.
func state(o client.Object) string {
	r, ok := o.(*gwapiv1.HTTPRoute)
	if !ok || !ir.IsAnchor(o) {
		return ""
	}
	if len(r.Spec.ParentRefs) != 1 || !slices.Equal(r.Spec.Hostnames, []gwapiv1.Hostname{hostname}) {
		return altered
	}
	p := r.Spec.ParentRefs[0]
	if p.SectionName == nil || *p.SectionName != section || p.Namespace == nil || p.Port != nil {
		return altered
	}
	var of []anchored
	for _, rule := range r.Spec.Rules {
		for _, b := range rule.BackendRefs {
			if b.Kind == nil {
				return altered
			}
			of = append(of, anchored(string(*b.Kind)+"/"+string(b.Name)))
		}
	}
	return encode(types.NamespacedName{Namespace: string(*p.Namespace), Name: string(p.Name)}, of)
}

// labelOf the Gateway: its name, as far as a label can have it.
func labelOf(g types.NamespacedName) string {
	const most = 63
	return cmp.Or(strings.TrimRight(g.Name[:min(len(g.Name), most)], "-."), "gateway")
}
