// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// parseNamedRule parses the reference to a rule of a route in the policy's namespace.
func parseNamedRule(namespace string, ref *gatewayv1alpha1.RoutePolicyRouteRule) (*ir.NamedRule, error) {
	n := &ir.NamedRule{PolicyTarget: ir.PolicyTarget{
		Route: ir.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}, Section: string(ref.SectionName),
	}}
	if ref.Kind != "" {
		n.Route = ir.RouteKinds[string(ref.Kind)]
	}
	if n.Section == "" || n.Route != ir.KindHTTPRoute && n.Route != ir.KindGRPCRoute {
		return nil, errors.Errorf("%s %s has no rule %q", ref.Kind, ref.Name, ref.SectionName)
	}
	return n, nil
}

// ParseRoutePolicy parses a policy, without the state of its targets. The API server has
// validated most policies by the schema, but policies from files were not validated: a rule
// that Envoy would refuse must not reach Envoy, which would refuse all routes with it.
func ParseRoutePolicy(o *gatewayv1alpha1.TailscaleRoutePolicy) *ir.RoutePolicy {
	p := &ir.RoutePolicy{
		Name:       client.ObjectKeyFromObject(o),
		Generation: o.GetGeneration(),
		Created:    o.GetCreationTimestamp().UTC(),
	}
	for _, r := range o.Spec.TargetRefs {
		if r.Group != gwapiv1.GroupName {
			continue
		}
		t := ir.PolicyTarget{
			NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: string(r.Name)},
			Section:        string(ptr.Deref(r.SectionName, "")),
		}
		switch k := ir.RouteKinds[string(r.Kind)]; {
		case r.Kind == KindGateway:
		case k == ir.KindHTTPRoute, k == ir.KindGRPCRoute:
			t.Route = k
		default:
			continue
		}
		p.Targets = append(p.Targets, ir.Attachment{PolicyTarget: t})
	}
	ps := ir.NewPrograms()
	for i := range o.Spec.Rules {
		r := &ir.PolicyRule{
			Policy: p.Name, Created: p.Created, Index: i,
			Name: string(o.Spec.Rules[i].Name), Priority: o.Spec.Rules[i].Priority,
		}
		if err := parsePolicyRule(ps, r, &o.Spec.Rules[i]); err != nil {
			r.Omit(err)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// parsePolicyRule fills a rule from its spec.
func parsePolicyRule(ps *ir.Programs, r *ir.PolicyRule, spec *gatewayv1alpha1.RoutePolicyRule) error {
	r.Deny = slices.ContainsFunc(spec.Actions, func(a gatewayv1alpha1.RoutePolicyAction) bool { return a.Type == gatewayv1alpha1.ActionDeny })
	for i := range spec.Matches {
		m, err := parsePolicyMatch(ps, &spec.Matches[i])
		if err != nil && r.Deny {
			r.Widened = fmt.Sprintf("matches[%d]: %v", i, err)
			m, err = parsePolicyMatch(ps, widen(ps, spec.Matches[i].DeepCopy()))
		}
		if err != nil {
			return errors.Wrapf(err, "matches[%d]", i)
		}
		r.Matches = append(r.Matches, m)
	}
	for i := range spec.Actions {
		if err := parsePolicyAction(r, &spec.Actions[i]); err != nil {
			return errors.Wrapf(err, "actions[%d]", i)
		}
	}
	return nil
}

// widen drops the conditions of a Deny rule's match that cannot be parsed: the rule must not
// admit a client that it is meant to deny.
func widen(ps *ir.Programs, m *gatewayv1alpha1.RoutePolicyMatch) *gatewayv1alpha1.RoutePolicyMatch {
	fails := func(m gatewayv1alpha1.RoutePolicyMatch) bool {
		_, err := parsePolicyMatch(ps, &m)
		return err != nil
	}
	if fails(gatewayv1alpha1.RoutePolicyMatch{Path: m.Path}) {
		m.Path = nil
	}
	m.Headers = slices.DeleteFunc(m.Headers, func(h gwapiv1.HTTPHeaderMatch) bool {
		return fails(gatewayv1alpha1.RoutePolicyMatch{Headers: []gwapiv1.HTTPHeaderMatch{h}})
	})
	if fails(gatewayv1alpha1.RoutePolicyMatch{TailnetDevice: m.TailnetDevice}) {
		m.TailnetDevice = nil
	}
	return m
}

// parsePolicyMatch parses a match of a policy's rule.
func parsePolicyMatch(ps *ir.Programs, match *gatewayv1alpha1.RoutePolicyMatch) (ir.PolicyMatch, error) {
	out := ir.PolicyMatch{Match: ir.Match{Method: string(ptr.Deref(match.Method, ""))}}
	if match.Path != nil {
		out.PathType = string(ptr.Deref(match.Path.Type, gwapiv1.PathMatchPathPrefix))
		out.Path = ptr.Deref(match.Path.Value, "/")
		var err error
		if out.PathSize, err = ps.CheckPath(out.PathType, out.Path); err != nil {
			return out, err
		}
	}
	for _, h := range match.Headers {
		regular := ptr.Deref(h.Type, "") == gwapiv1.HeaderMatchRegularExpression
		if regular {
			if _, err := ps.Check(h.Value); err != nil {
				return out, err
			}
		}
		if err := checkHeader(string(h.Name), ""); err != nil {
			return out, err
		}
		if !regular && strings.HasPrefix(h.Value, "~") {
			// Envoy would read the value as an expression because it has the form of one.
			h.Value, regular = regexp.QuoteMeta(h.Value), true
		}
		out.Headers = append(out.Headers, condition(strings.ToLower(string(h.Name)), h.Value, regular))
	}
	slices.Sort(out.Headers)
	if match.TailnetDevice != nil {
		var err error
		if out.Clients, err = parseClients(match.TailnetDevice.Addresses); err != nil {
			return out, err
		}
		out.Devices = queryOf(match.TailnetDevice)
		// The schema refuses such a match, but older objects may have been stored without
		// that rule.
		out.NamesOnly = len(match.TailnetDevice.Hostnames) > 0 && len(match.TailnetDevice.Tags) == 0 && len(match.TailnetDevice.Users) == 0
	}
	return out, nil
}

// checkHeader returns an error for a header that Envoy refuses. Envoy would refuse all
// routes with it.
func checkHeader(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
		return errors.Errorf("%q is no header, or cannot have this value", name)
	}
	return nil
}

// parseClients parses addresses and ranges. It returns nil if there are none.
func parseClients(addresses []string) ([]netip.Prefix, error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	out := make([]netip.Prefix, 0, len(addresses))
	for _, s := range addresses {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, errors.Errorf("%q is neither an IP address nor a range", s)
		}
		if p, err = unmapped(p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out), nil
}

// unmapped returns a range in canonical form: Envoy compares the address of an IPv4 client with
// ranges of IPv4 addresses only (envoyproxy/envoy source/common/network/cidr_range.cc, isInRange),
// also where a range is written in the form of IPv4-mapped addresses.
func unmapped(p netip.Prefix) (netip.Prefix, error) {
	const mapped = 96 // The length of ::ffff:0:0/96, in which all these addresses are.
	if !p.Addr().Is4In6() {
		return p.Masked(), nil
	}
	if p.Bits() < mapped {
		return p, errors.Errorf("%q contains more than IPv4-mapped addresses; write ranges of IPv4 addresses as such", p)
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped).Masked(), nil
}

// rateUnits are the periods of rate limits.
var rateUnits = map[gatewayv1alpha1.RateUnit]time.Duration{
	gatewayv1alpha1.RatePerSecond: time.Second,
	gatewayv1alpha1.RatePerMinute: time.Minute,
	gatewayv1alpha1.RatePerHour:   time.Hour,
}

// parsePolicyAction adds an action to a rule.
func parsePolicyAction(r *ir.PolicyRule, action *gatewayv1alpha1.RoutePolicyAction) error {
	switch {
	case action.Type == gatewayv1alpha1.ActionDeny:
		r.Deny = true
	case action.Type == gatewayv1alpha1.ActionRedirect && action.Redirect != nil:
		r.Redirect = parseRedirect(action.Redirect)
		for _, part := range []string{r.Redirect.Scheme, r.Redirect.Hostname, r.Redirect.Path} {
			if !httpguts.ValidHeaderFieldValue(part) {
				return errors.Errorf("%q cannot be part of a URL", part)
			}
		}
	case action.Type == gatewayv1alpha1.ActionRoute && action.Route != nil && action.Route.Rule != nil:
		var err error
		r.Named, err = parseNamedRule(r.Policy.Namespace, action.Route.Rule)
		return err
	case action.Type == gatewayv1alpha1.ActionRoute && action.Route != nil:
		for i, b := range action.Route.BackendRefs {
			r.Backends = append(r.Backends, parsePolicyBackend(r.Policy.Namespace, b, i))
		}
	case action.Type == gatewayv1alpha1.ActionRequestHeaderModifier && action.RequestHeaderModifier != nil:
		var err error
		r.Request, err = parseHeaders(action.RequestHeaderModifier)
		return err
	case action.Type == gatewayv1alpha1.ActionResponseHeaderModifier && action.ResponseHeaderModifier != nil:
		var err error
		r.Response, err = parseHeaders(action.ResponseHeaderModifier)
		return err
	case action.Type == gatewayv1alpha1.ActionTimeouts && action.Timeouts != nil:
		d, err := time.ParseDuration(string(action.Timeouts.Request))
		if err != nil || d < 0 {
			return errors.Errorf("%q is no duration", action.Timeouts.Request)
		}
		r.Timeout = &d
	case action.Type == gatewayv1alpha1.ActionRateLimit && action.RateLimit != nil && action.RateLimit.Requests > 0 && rateUnits[action.RateLimit.Unit] > 0:
		r.RateLimit = &ir.RateLimit{Requests: uint32(action.RateLimit.Requests), Period: rateUnits[action.RateLimit.Unit]}
	case action.Type == gatewayv1alpha1.ActionBackendTLS && action.BackendTLS != nil && IsSecret(action.BackendTLS.ClientCertificateRef):
		r.Certificate = ParseCertificateRef(r.Policy.Namespace, action.BackendTLS.ClientCertificateRef)
	default:
		return errors.Errorf("%s says nothing of what to do", action.Type)
	}
	return nil
}

// parseRedirect parses a redirect.
func parseRedirect(redirect *gatewayv1alpha1.RoutePolicyRedirect) *ir.PolicyRedirect {
	return &ir.PolicyRedirect{
		Scheme:     ptr.Deref(redirect.Scheme, ""),
		Hostname:   string(ptr.Deref(redirect.Hostname, "")),
		Port:       ptr.Deref(redirect.Port, 0),
		Path:       ptr.Deref(redirect.Path, ""),
		StatusCode: redirect.StatusCode,
	}
}

// parsePolicyBackend parses a backendRef of a policy with its index.
func parsePolicyBackend(ns string, ref gatewayv1alpha1.RoutePolicyBackendRef, i int) ir.BackendRef {
	out := ir.BackendRef{
		Kind:           ir.BackendServices,
		NamespacedName: types.NamespacedName{Namespace: ns, Name: string(ref.Name)},
		Port:           ref.Port,
		Weight:         uint32(max(ptr.Deref(ref.Weight, 1), 0)),
		Index:          i,
	}
	if ref.Kind == KindTailscaleEndpoints {
		out.Kind = ir.BackendEndpoints
	}
	return out
}

// parseHeaders parses the changes of a header filter.
func parseHeaders(filter *gwapiv1.HTTPHeaderFilter) (ir.HeaderChange, error) {
	out := ir.HeaderChange{}
	for _, pair := range []struct {
		from []gwapiv1.HTTPHeader
		to   *[]ir.Header
	}{{filter.Set, &out.Set}, {filter.Add, &out.Add}} {
		for _, h := range pair.from {
			if err := checkChange(string(h.Name), h.Value); err != nil {
				return ir.HeaderChange{}, err
			}
			*pair.to = append(*pair.to, ir.Header{Name: string(h.Name), Value: h.Value})
		}
	}
	for _, n := range filter.Remove {
		if err := checkChange(n, ""); err != nil {
			return ir.HeaderChange{}, err
		}
	}
	out.Remove = slices.Clone(filter.Remove)
	return out, nil
}

// checkChange returns an error for a header that must not be changed.
func checkChange(name, value string) error {
	if strings.EqualFold(name, "host") {
		return fmt.Errorf("%q cannot be changed", name)
	}
	return checkHeader(name, value)
}
