// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"net/http"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// Names of pseudo-headers.
const (
	pathHeader   = ":path"
	methodHeader = ":method"
)

// A WeightedCluster is a cluster with its weight in the requests that a policy's rule forwards.
type WeightedCluster struct {
	Cluster string
	Weight  uint32

	// Missing reports that the cluster does not exist, because its backend does not.
	Missing bool
}

// PolicyRoute returns a route with the action of a policy's rule, for the requests that also meet the
// match. It does not change the given route. to are the clusters of the rule's backends, and as is
// a route of the rule that the policy's rule names.
func PolicyRoute(r *routev3.Route, rule *ir.PolicyRule, m *ir.PolicyMatch, to []WeightedCluster, as *routev3.Route) (*routev3.Route, error) {
	if m != nil && m.NamesOnly {
		rule = &ir.PolicyRule{Deny: true}
	}
	from, named := r, rule.Named != nil && canHandle(as, r)
	if named {
		from = as
	}
	if from == nil || r.GetMatch() == nil {
		return nil, nil
	}
	out := proto.CloneOf(from)
	if named {
		out.Match = proto.CloneOf(r.GetMatch())
	}
	narrow(out.GetMatch(), m)
	changeHeaders(&out.RequestHeadersToAdd, &out.RequestHeadersToRemove, rule.Request)
	changeHeaders(&out.ResponseHeadersToAdd, &out.ResponseHeadersToRemove, rule.Response)
	switch {
	case rule.Deny:
		out.Action = Answer(http.StatusForbidden)
	case rule.Redirect != nil:
		out.Action = &routev3.Route_Redirect{Redirect: redirect(rule.Redirect)}
	case len(rule.Backends) > 0:
		if err := send(out, to); err != nil {
			return nil, err
		}
	case named:
		if err := retryUnsafe(out); err != nil {
			return nil, err
		}
	case rule.Named != nil:
		out.Action = Answer(http.StatusInternalServerError)
	}
	if rule.RateLimit != nil {
		if err := limitRate(out, rule.RateLimit); err != nil {
			return nil, err
		}
	}
	if a := out.GetRoute(); a != nil && rule.Timeout != nil {
		a.Timeout = durationpb.New(*rule.Timeout)
	}
	return out, nil
}

// CheckRule returns an error if Envoy would refuse a route made from a policy's rule. Envoy refuses
// all routes of a listener with one invalid route.
func CheckRule(rule *ir.PolicyRule) error {
	const some = "some"
	base := &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: some}}},
	}
	var to []WeightedCluster
	for _, b := range rule.Backends {
		to = append(to, WeightedCluster{Cluster: some, Weight: b.Weight})
	}
	for i := range max(len(rule.Matches), 1) {
		var m *ir.PolicyMatch
		if i < len(rule.Matches) {
			m = &rule.Matches[i]
		}
		made, err := PolicyRoute(base, rule, m, to, base)
		if err != nil {
			return errors.Wrapf(err, "cannot make a route from matches[%d]", i)
		}
		if err := made.ValidateAll(); err != nil {
			return errors.Wrapf(err, "Envoy would refuse the route of matches[%d]", i)
		}
		for _, h := range made.GetMatch().GetHeaders() {
			if re := h.GetStringMatch().GetSafeRegex(); re != nil {
				if err := parse.CheckExpression(re.GetRegex()); err != nil {
					return errors.Wrapf(err, "matches[%d]: %q", i, re.GetRegex())
				}
			}
		}
	}
	return nil
}

// narrow adds a policy's conditions to a route's match. The path stays the route's, because a
// rewrite may depend on it: the policy's path is a condition on the pseudo-header of the path.
func narrow(to *routev3.RouteMatch, m *ir.PolicyMatch) {
	if m == nil {
		return
	}
	if e := ir.PathExpression(m.PathType, m.Path); e != "" {
		to.Headers = append(to.Headers, headerMatcher(pathHeader, matches(e)))
	}
	if m.Method != "" {
		to.Headers = append(to.Headers, headerMatcher(methodHeader, equals(m.Method)))
	}
	for _, h := range m.Headers {
		name, value, _ := strings.Cut(h, "=")
		if e, ok := strings.CutPrefix(value, "~"); ok {
			to.Headers = append(to.Headers, headerMatcher(name, matches(e)))
			continue
		}
		to.Headers = append(to.Headers, headerMatcher(name, equals(value)))
	}
	if m.Clients != nil {
		to.FilterState = append(to.FilterState, clientMatcher(m.Clients))
	}
}

func headerMatcher(name string, m *matcherv3.StringMatcher) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: m}}
}

func equals(value string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}}
}

func matches(expression string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: expression}}}
}

// changeHeaders adds header changes after those of the route itself.
func changeHeaders(add *[]*corev3.HeaderValueOption, remove *[]string, c ir.HeaderChange) {
	replaced := map[string]bool{}
	for _, h := range c.Set {
		replaced[strings.ToLower(h.Name)] = true
	}
	for _, n := range c.Remove {
		replaced[strings.ToLower(n)] = true
		*remove = append(*remove, n)
	}
	// Envoy removes headers before it adds others.
	*add = slices.DeleteFunc(*add, func(o *corev3.HeaderValueOption) bool { return replaced[strings.ToLower(o.GetHeader().GetKey())] })
	for _, h := range c.Set {
		*add = append(*add, headerValue(h, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD))
	}
	for _, h := range c.Add {
		*add = append(*add, headerValue(h, corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD))
	}
}

// Change changes requests to a weighted cluster of a route, and their responses.
func Change(w *routev3.WeightedCluster_ClusterWeight, c *ir.Changes) {
	changeHeaders(&w.RequestHeadersToAdd, &w.RequestHeadersToRemove, c.Request)
	changeHeaders(&w.ResponseHeadersToAdd, &w.ResponseHeadersToRemove, c.Response)
	if c.Hostname != "" {
		w.HostRewriteSpecifier = &routev3.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: c.Hostname}
	}
}

// headerValue returns a header with a literal value: Envoy reads a percent sign as the start of a
// command.
func headerValue(h ir.Header, a corev3.HeaderValueOption_HeaderAppendAction) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:         &corev3.HeaderValue{Key: h.Name, Value: strings.ReplaceAll(h.Value, "%", "%%")},
		AppendAction:   a,
		KeepEmptyValue: h.Value == "",
	}
}

// Answer returns a direct response with a status.
func Answer(status uint32) *routev3.Route_DirectResponse {
	return &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: status}}
}

func redirect(in *ir.PolicyRedirect) *routev3.RedirectAction {
	out := &routev3.RedirectAction{HostRedirect: in.Hostname, PortRedirect: uint32(max(in.Port, 0)), ResponseCode: routev3.RedirectAction_FOUND}
	if in.StatusCode == http.StatusMovedPermanently {
		out.ResponseCode = routev3.RedirectAction_MOVED_PERMANENTLY
	}
	if in.Scheme != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: in.Scheme}
	}
	if in.Path != "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: in.Path}
	}
	return out
}

// send sends a route's requests to clusters. The requests of a missing cluster are answered with
// 500.
func send(r *routev3.Route, to []WeightedCluster) error {
	to = slices.DeleteFunc(slices.Clone(to), func(s WeightedCluster) bool { return s.Weight == 0 })
	if !slices.ContainsFunc(to, func(s WeightedCluster) bool { return !s.Missing }) {
		r.Action = Answer(http.StatusInternalServerError)
		return nil
	}
	a := r.GetRoute()
	if a == nil {
		a = &routev3.RouteAction{}
		r.Action = &routev3.Route_Route{Route: a}
	}
	if len(to) == 1 {
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: to[0].Cluster}
		return Retry(a, Safe(r.GetMatch()))
	}
	w := &routev3.WeightedCluster{}
	for _, s := range to {
		if s.Missing {
			a.ClusterNotFoundResponseCode = routev3.RouteAction_INTERNAL_SERVER_ERROR
		}
		w.Clusters = append(w.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: s.Cluster, Weight: wrapperspb.UInt32(s.Weight)})
	}
	a.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: w}
	return Retry(a, Safe(r.GetMatch()))
}
