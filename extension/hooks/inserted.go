// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"net/http"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// An insertion is what a policy's rule inserts before each route for one of its matches.
type insertion struct {
	*xds.Insertion
	rule *ir.PolicyRule

	// prefix of the names of the inserted routes.
	prefix string

	// clients reports that the routes match on the client.
	clients bool
}

// An insertionKey identifies a rule, the kind of the routes that it inserts routes before, and the
// settings of the clusters of its backends.
type insertionKey struct {
	rule     *ir.PolicyRule
	kind     ir.RouteKind
	settings string
}

// insertionsOf returns what a rule inserts before each route of a kind whose clusters have the settings.
// It omits what Envoy would refuse.
func (e *policyApplier) insertionsOf(kind ir.RouteKind, rule *ir.PolicyRule, settings *policySettings) []insertion {
	k := insertionKey{rule: rule, kind: kind}
	if len(rule.Backends) > 0 {
		k.settings = settings.suffix
	}
	out, ok := e.insertions[k]
	if ok {
		return out
	}
	clusters := e.weightedClusters(kind, rule, settings)
	alternatives := parse.Alternatives(rule)
	if len(alternatives) == 0 {
		alternatives = []parse.Alternative{{}}
	}
	for _, alternative := range alternatives {
		m := &alternative.PolicyMatch
		if len(rule.Matches) == 0 {
			m = nil
		}
		ins, err := xds.NewInsertion(rule, m, clusters)
		if err != nil || !accepted(ins) {
			continue
		}
		out = append(out, insertion{
			Insertion: ins, rule: rule, clients: m != nil && m.Clients != nil,
			prefix: policyPrefix + strings.Join([]string{rule.Policy.Namespace, rule.Policy.Name, rule.Name, strconv.Itoa(alternative.First)}, "/") + "/",
		})
	}
	e.insertions[k] = out
	return out
}

// accepted reports whether Envoy accepts an insertion, before a route that it accepts.
func accepted(ins *xds.Insertion) bool {
	result, err := ins.Route(&routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: xds.Answer(http.StatusOK),
	}, nil)
	return err == nil && result.ValidateAll() == nil
}

// A routeSize is the number of bytes of a route: of its action, and of all else.
type routeSize struct{ action, rest int }

// newRouteSize returns the size of a route, which no other goroutine may read meanwhile.
func newRouteSize(r *routev3.Route) routeSize {
	action, metadata := r.Action, r.Metadata
	defer func() { r.Action, r.Metadata = action, metadata }()
	s := routeSize{}
	if r.GetRoute() != nil {
		s.action = proto.Size(r.GetRoute())
		s.rest += tag + protowire.SizeBytes(s.action) - s.action
		r.Action = nil
	}
	if metadata != nil {
		s.rest += tag + protowire.SizeBytes(metadataSize(metadata))
		r.Metadata = nil
	}
	s.rest += proto.Size(r)
	return s
}

// with returns the number of bytes of the route with an insertion.
func (s routeSize) with(ins *xds.Insertion) int {
	if ins.Answers() {
		return s.rest + ins.Size()
	}
	return s.rest + s.action + ins.Size()
}

// measured is the number of times by which inserted routes may exceed the index's estimate. The index
// does not know what Envoy Gateway attaches to routes, which inserted ones keep, nor the listeners of
// a ListenerSet.
const measured = 2

// inserted are the bytes of the routes that policies insert into a message.
type inserted struct {
	total      int
	namespaces map[string]int
}

// admits reports whether as many bytes more may be inserted before the routes of a namespace.
func (i *inserted) admits(namespace string, size int) bool {
	return i.namespaces[namespace]+size <= measured*limits.NamespaceInsertions && i.total+size <= measured*limits.GatewayInsertions
}

// add counts inserted routes.
func (i *inserted) add(namespace string, size int) {
	i.namespaces[namespace] += size
	i.total += size
}

// refuse returns a route that denies all requests of a route whose policies cannot be applied.
func refuse(r *routev3.Route) *routev3.Route {
	return &routev3.Route{
		Name:   policyPrefix + "refused/" + r.GetName(),
		Match:  r.GetMatch(),
		Action: xds.Answer(http.StatusForbidden),
	}
}
