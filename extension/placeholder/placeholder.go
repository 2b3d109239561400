// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package placeholder maintains placeholder routes, which give TCPRoutes, UDPRoutes and
// TLSRoutes a correct status. Envoy Gateway loads our objects only if HTTPRoutes or GRPCRoutes
// reference them (envoyproxy/gateway internal/provider/kubernetes/routes.go). The status of a
// TCPRoute is BackendNotFound although the object exists and traffic flows. An object that
// Envoy Gateway has loaded for one route is available to all routes of the GatewayClass.
//
// Therefore each namespace with such routes to a Gateway has a placeholder route for that
// Gateway: an HTTPRoute with references to the same objects. It attaches to no listener,
// because its sectionName exists on no Gateway. Envoy Gateway loads the referenced objects,
// generates nothing else for the route, and sets NoMatchingParent in its status. Listeners,
// their numbers of attached routes, virtual hosts and certificates stay the same.
package placeholder

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
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Gateway API limits a route to 16 rules with 16 backends each.
const (
	maxRules    = 16
	maxBackends = 16
)

// A Controller reconciles the placeholder routes.
type Controller struct {
	reconciler *reconcile.Reconciler
	store      *index.Store
}

// New returns a Controller that writes with the client. Start it with Run.
func New(c client.Client, s *index.Store, log logging.Logger) *Controller {
	r := reconcile.NewReconciler("HTTPRoute", &writer{client: c}, log)
	r.Exclude(func(_ types.NamespacedName, state string) bool {
		g, _, err := decode(state)
		return err == nil && !s.Serves(g)
	})
	return &Controller{reconciler: r, store: s}
}

// Run reconciles the placeholder routes until ctx ends. The store must be complete.
func (c *Controller) Run(ctx context.Context, informers watch.Informers) error {
	if err := c.reconciler.Watch(ctx, informers, &gwapiv1.HTTPRoute{}, state); err != nil || ctx.Err() != nil {
		return err
	}
	changed, end := c.store.Revised()
	defer end()
	update := func() { c.reconciler.SetDesired(desired(c.store.Snapshot())) }
	update()
	return c.reconciler.Follow(ctx, changed, update)
}

// A reference to an object, as KIND/NAME.
type reference string

// A place is a namespace with routes to a Gateway. It has one or more placeholder routes.
type place struct {
	namespace string
	gateway   types.NamespacedName
}

// desired returns the states of the placeholder routes that a snapshot requires, by name.
func desired(s *ir.Snapshot) map[types.NamespacedName]string {
	places := map[place]map[reference]struct{}{}
	for r := range s.Routes() {
		if r.Key.Kind == ir.KindHTTPRoute || r.Key.Kind == ir.KindGRPCRoute {
			continue
		}
		for _, rule := range r.Rules {
			for _, b := range rule.Backends {
				// Envoy Gateway refuses references to other namespaces before it looks for the
				// object.
				if !b.Ours() || b.Namespace != r.Key.Namespace {
					continue
				}
				for _, g := range r.Gateways {
					p := place{namespace: r.Key.Namespace, gateway: g}
					if places[p] == nil {
						places[p] = map[reference]struct{}{}
					}
					places[p][referenceTo(b)] = struct{}{}
				}
			}
		}
	}
	out := map[types.NamespacedName]string{}
	for p, references := range places {
		i := 0
		for chunk := range slices.Chunk(slices.Sorted(maps.Keys(references)), maxRules*maxBackends) {
			out[types.NamespacedName{Namespace: p.namespace, Name: p.name(i)}] = encode(p.gateway, chunk)
			i++
		}
	}
	return out
}

// referenceTo returns the reference to a backend.
func referenceTo(b ir.BackendRef) reference {
	kind := v1alpha1.TailscaleServicesKind
	if b.Kind == ir.BackendEndpoints {
		kind = v1alpha1.TailscaleEndpointsKind
	}
	return reference(kind + "/" + b.Name)
}

// name returns the name of the i-th placeholder route of a place.
func (p place) name(i int) string {
	parts := []string{"tailscale-placeholder", p.gateway.Namespace, p.gateway.Name}
	if i > 0 {
		parts = append(parts, strconv.Itoa(i))
	}
	return names.Child(parts...)
}

// encode returns the state of a placeholder route: NAMESPACE/GATEWAY, then KIND/NAME of each
// object, separated by spaces.
func encode(g types.NamespacedName, references []reference) string {
	var b strings.Builder
	b.WriteString(g.Namespace + "/" + g.Name)
	for _, o := range references {
		b.WriteString(" " + string(o))
	}
	return b.String()
}

// decode parses a state that encode returned.
func decode(state string) (types.NamespacedName, []reference, error) {
	fields := strings.Fields(state)
	if len(fields) == 0 {
		return types.NamespacedName{}, nil, errors.New("a placeholder route without a Gateway")
	}
	ns, name, _ := strings.Cut(fields[0], "/")
	references := make([]reference, 0, len(fields)-1)
	for _, f := range fields[1:] {
		references = append(references, reference(f))
	}
	return types.NamespacedName{Namespace: ns, Name: name}, references, nil
}

// state returns the state of an HTTPRoute. It is empty if the route is no placeholder route.
func state(o client.Object) string {
	r, ok := o.(*gwapiv1.HTTPRoute)
	if !ok || !ir.IsPlaceholder(o) {
		return ""
	}
	if len(r.Spec.ParentRefs) != 1 || !slices.Equal(r.Spec.Hostnames, []gwapiv1.Hostname{hostname}) {
		return altered
	}
	p := r.Spec.ParentRefs[0]
	if p.SectionName == nil || *p.SectionName != section || p.Namespace == nil || p.Port != nil {
		return altered
	}
	var references []reference
	for _, rule := range r.Spec.Rules {
		for _, b := range rule.BackendRefs {
			if b.Kind == nil {
				return altered
			}
			references = append(references, reference(string(*b.Kind)+"/"+string(b.Name)))
		}
	}
	return encode(types.NamespacedName{Namespace: string(*p.Namespace), Name: string(p.Name)}, references)
}

// labelOf returns the label value for a Gateway: its name, cut to the length of a label.
func labelOf(g types.NamespacedName) string {
	const maxLength = 63
	return cmp.Or(strings.TrimRight(g.Name[:min(len(g.Name), maxLength)], "-."), "gateway")
}
