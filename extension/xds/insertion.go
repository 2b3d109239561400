// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"maps"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// maxHeaders is the number of header changes of a route above which Envoy refuses the route
// (request_headers_to_add in envoyproxy/envoy api/envoy/config/route/v3/route_components.proto).
const maxHeaders = 1000

// An Insertion is what a policy's rule changes in routes, for the requests that meet one of its
// matches. It is built once, and the routes made of it share its messages, and those of the routes
// that they precede. So none of these messages may be changed afterwards.
type Insertion struct {
	rule *ir.PolicyRule

	// match has the conditions that requests must meet in addition.
	match             *routev3.RouteMatch
	request, response headers

	// answer has an action that replaces that of the route. Nil if none does.
	answer *routev3.Route

	// to has the clusters that the rule sends to. Nil if the route's stay.
	to *routev3.RouteAction

	limit   *anypb.Any
	timeout *durationpb.Duration
	size    int
}

// NewInsertion returns the insertion of a rule for the requests that also meet the match. clusters
// are those of the rule's backends.
func NewInsertion(rule *ir.PolicyRule, m *ir.PolicyMatch, clusters []WeightedCluster) (*Insertion, error) {
	if m != nil && m.NamesOnly {
		rule = &ir.PolicyRule{Deny: true}
	}
	ins := &Insertion{rule: rule, match: conditions(m), request: newHeaders(rule.Request), response: newHeaders(rule.Response)}
	switch {
	case rule.Deny:
		ins.answer = &routev3.Route{Action: Answer(http.StatusForbidden)}
	case rule.Redirect != nil:
		ins.answer = &routev3.Route{Action: &routev3.Route_Redirect{Redirect: redirect(rule.Redirect)}}
	case len(rule.Backends) > 0:
		ins.send(clusters)
	}
	if rule.RateLimit != nil {
		var err error
		if ins.limit, err = limitRate(rule.RateLimit); err != nil {
			return nil, err
		}
	}
	if rule.Timeout != nil {
		ins.timeout = durationpb.New(*rule.Timeout)
	}
	route, err := ins.Route(&routev3.Route{Match: &routev3.RouteMatch{}}, nil)
	ins.size = proto.Size(route)
	return ins, err
}

// Size returns the number of bytes that the insertion adds to a route. It is exact to a few bytes.
func (ins *Insertion) Size() int { return ins.size }

// Answers reports whether the action of the insertion replaces that of the route.
func (ins *Insertion) Answers() bool { return ins.answer != nil }

// Route returns a route with the changes for the requests of a route, which it does not change. as is
// a route of the rule that the policy's rule names. Route returns nil for a route that it cannot use.
func (ins *Insertion) Route(r, as *routev3.Route) (*routev3.Route, error) {
	source, named := r, ins.rule.Named != nil && canHandle(as, r)
	if named {
		source = as
	}
	if source == nil || r.GetMatch() == nil {
		return nil, nil
	}
	out := shareRoute(source)
	out.Match = shareMatch(r.GetMatch())
	out.Match.Headers = concat(out.GetMatch().GetHeaders(), ins.match.GetHeaders())
	out.Match.FilterState = concat(out.GetMatch().GetFilterState(), ins.match.GetFilterState())
	out.RequestHeadersToAdd, out.RequestHeadersToRemove = ins.request.change(out.GetRequestHeadersToAdd(), out.GetRequestHeadersToRemove())
	out.ResponseHeadersToAdd, out.ResponseHeadersToRemove = ins.response.change(out.GetResponseHeadersToAdd(), out.GetResponseHeadersToRemove())
	if n := max(len(out.GetRequestHeadersToAdd()), len(out.GetResponseHeadersToAdd())); n > maxHeaders {
		return nil, errors.Errorf("cannot add %d headers, more than the %d that Envoy accepts", n, maxHeaders)
	}
	switch {
	case ins.answer != nil:
		out.Action = ins.answer.GetAction()
	case ins.to != nil:
		if err := ins.redirectTo(out); err != nil {
			return nil, err
		}
	case named:
		if err := retryUnsafe(out); err != nil {
			return nil, err
		}
	case ins.rule.Named != nil:
		out.Action = Answer(http.StatusInternalServerError)
	}
	if ins.limit != nil {
		configs := make(map[string]*anypb.Any, len(out.GetTypedPerFilterConfig())+1)
		maps.Copy(configs, out.GetTypedPerFilterConfig())
		configs[RateLimitFilter] = ins.limit
		out.TypedPerFilterConfig = configs
	}
	if ins.timeout != nil && out.GetRoute() != nil {
		OwnAction(out).Timeout = ins.timeout
	}
	return out, nil
}

// send sends requests to clusters. Those of a missing cluster are answered with 500.
func (ins *Insertion) send(clusters []WeightedCluster) {
	clusters = slices.DeleteFunc(slices.Clone(clusters), func(s WeightedCluster) bool { return s.Weight == 0 })
	if !slices.ContainsFunc(clusters, func(s WeightedCluster) bool { return !s.Missing }) {
		ins.answer = &routev3.Route{Action: Answer(http.StatusInternalServerError)}
		return
	}
	ins.to = &routev3.RouteAction{}
	if len(clusters) == 1 {
		ins.to.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: clusters[0].Cluster}
		return
	}
	w := &routev3.WeightedCluster{}
	for _, s := range clusters {
		if s.Missing {
			ins.to.ClusterNotFoundResponseCode = routev3.RouteAction_INTERNAL_SERVER_ERROR
		}
		w.Clusters = append(w.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: s.Cluster, Weight: wrapperspb.UInt32(s.Weight)})
	}
	ins.to.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: w}
}

// redirectTo makes a route send to the rule's clusters, with the route's other settings.
func (ins *Insertion) redirectTo(r *routev3.Route) error {
	a := OwnAction(r)
	a.ClusterSpecifier = ins.to.GetClusterSpecifier()
	if ins.to.GetClusterNotFoundResponseCode() != routev3.RouteAction_SERVICE_UNAVAILABLE {
		a.ClusterNotFoundResponseCode = ins.to.GetClusterNotFoundResponseCode()
	}
	if p := a.GetRetryPolicy(); p != nil && p.GetRetryPriority() == nil {
		a.RetryPolicy = share(p)
	}
	return Retry(a, Safe(r.GetMatch()))
}

// OwnAction replaces the action of a route, which others share, by a copy, and returns the copy. Only
// the fields of the copy itself may be changed: it shares their messages.
func OwnAction(r *routev3.Route) *routev3.RouteAction {
	a := &routev3.RouteAction{}
	if action := r.GetRoute(); action != nil {
		a = shareAction(action)
	}
	r.Action = &routev3.Route_Route{Route: a}
	return a
}
