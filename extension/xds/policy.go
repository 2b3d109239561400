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

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
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

// CheckRule returns an error if Envoy would refuse a route made from a policy's rule. Envoy refuses
// all routes of a listener with one invalid route.
func CheckRule(rule *ir.PolicyRule) error {
	const some = "some"
	base := &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: some}}},
	}
	var clusters []WeightedCluster
	for _, b := range rule.Backends {
		clusters = append(clusters, WeightedCluster{Cluster: some, Weight: b.Weight})
	}
	for i := range max(len(rule.Matches), 1) {
		var m *ir.PolicyMatch
		if i < len(rule.Matches) {
			m = &rule.Matches[i]
		}
		ins, err := NewInsertion(rule, m, clusters)
		if err != nil {
			return errors.Wrapf(err, "cannot make a route from matches[%d]", i)
		}
		route, err := ins.Route(base, base)
		if err != nil {
			return errors.Wrapf(err, "cannot make a route from matches[%d]", i)
		}
		if err := route.ValidateAll(); err != nil {
			return errors.Wrapf(err, "Envoy would refuse the route of matches[%d]", i)
		}
		for _, h := range route.GetMatch().GetHeaders() {
			if re := h.GetStringMatch().GetSafeRegex(); re != nil {
				if err := ir.CheckExpression(re.GetRegex()); err != nil {
					return errors.Wrapf(err, "matches[%d]: %q", i, re.GetRegex())
				}
			}
		}
	}
	return nil
}

// conditions returns the conditions of a policy's match, for the match of a route. The path stays the
// route's, because a rewrite may depend on it: the policy's path is a condition on the pseudo-header
// of the path.
func conditions(m *ir.PolicyMatch) *routev3.RouteMatch {
	match := &routev3.RouteMatch{}
	if m == nil {
		return match
	}
	if e := ir.PathExpression(m.PathType, m.Path); e != "" {
		match.Headers = append(match.Headers, headerMatcher(pathHeader, matches(e)))
	}
	if m.Method != "" {
		match.Headers = append(match.Headers, headerMatcher(methodHeader, equals(m.Method)))
	}
	for _, h := range m.Headers {
		name, value, _ := strings.Cut(h, "=")
		if e, ok := strings.CutPrefix(value, "~"); ok {
			match.Headers = append(match.Headers, headerMatcher(name, matches(e)))
			continue
		}
		match.Headers = append(match.Headers, headerMatcher(name, equals(value)))
	}
	if m.Clients != nil {
		match.FilterState = append(match.FilterState, clientMatcher(m.Clients))
	}
	return match
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

// headers are the changes of a header filter, which follow those of the route itself.
type headers struct {
	add    []*corev3.HeaderValueOption
	remove []string

	// replaced are the lower-case names of headers that the route must not add.
	replaced map[string]bool
}

func newHeaders(c ir.HeaderChange) headers {
	out := headers{remove: c.Remove, replaced: map[string]bool{}}
	for _, h := range c.Set {
		out.replaced[strings.ToLower(h.Name)] = true
		out.add = append(out.add, headerValue(h, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD))
	}
	for _, h := range c.Add {
		out.add = append(out.add, headerValue(h, corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD))
	}
	for _, n := range c.Remove {
		out.replaced[strings.ToLower(n)] = true
	}
	return out
}

// change returns the lists of a route with the changes. It does not change the given lists.
func (h headers) change(add []*corev3.HeaderValueOption, remove []string) ([]*corev3.HeaderValueOption, []string) {
	if len(h.add)+len(h.remove) == 0 {
		return add, remove
	}
	// Envoy removes headers before it adds others.
	retained := slices.DeleteFunc(slices.Clone(add), func(o *corev3.HeaderValueOption) bool { return h.replaced[strings.ToLower(o.GetHeader().GetKey())] })
	return slices.Concat(retained, h.add), slices.Concat(remove, h.remove)
}

// Change changes requests to a weighted cluster of a route, and their responses.
func Change(w *routev3.WeightedCluster_ClusterWeight, c *ir.Changes) {
	w.RequestHeadersToAdd, w.RequestHeadersToRemove = newHeaders(c.Request).change(w.GetRequestHeadersToAdd(), w.GetRequestHeadersToRemove())
	w.ResponseHeadersToAdd, w.ResponseHeadersToRemove = newHeaders(c.Response).change(w.GetResponseHeadersToAdd(), w.GetResponseHeadersToRemove())
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

func redirect(src *ir.PolicyRedirect) *routev3.RedirectAction {
	out := &routev3.RedirectAction{HostRedirect: src.Hostname, PortRedirect: uint32(max(src.Port, 0)), ResponseCode: routev3.RedirectAction_FOUND}
	if src.StatusCode == http.StatusMovedPermanently {
		out.ResponseCode = routev3.RedirectAction_MOVED_PERMANENTLY
	}
	if src.Scheme != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: src.Scheme}
	}
	if src.Path != "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: src.Path}
	}
	return out
}
