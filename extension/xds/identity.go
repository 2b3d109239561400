// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"slices"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	mutationfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
)

// IdentityMutation is the name of the header mutation that removes identity headers, of a listener and
// of virtual hosts.
const IdentityMutation = "gateway.tailscale.com/identity"

// StripIdentityHeaders returns a mutation that makes a listener remove identity headers of clients: before
// it matches routes, which may match on such a header, and before any filter reads one.
func StripIdentityHeaders() (*corev3.TypedExtensionConfig, error) {
	a, err := packAny(&earlyv3.HeaderMutation{Mutations: removeIdentityHeaders()})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the mutation of identity headers")
	}
	return &corev3.TypedExtensionConfig{Name: IdentityMutation, TypedConfig: a}, nil
}

func removeIdentityHeaders() []*mutationv3.HeaderMutation {
	return []*mutationv3.HeaderMutation{{
		Action: &mutationv3.HeaderMutation_RemoveOnMatch_{RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{
			KeyMatcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
				SafeRegex: &matcherv3.RegexMatcher{Regex: identity.Pattern()},
			}},
		}},
	}}
}

// IdentityFilter returns a filter that removes identity headers of clients at the virtual hosts that
// StripVirtualHost changes. Any other filter must come after it.
func IdentityFilter() (*hcmv3.HttpFilter, error) {
	a, err := packAny(&mutationfilterv3.HeaderMutation{})
	return &hcmv3.HttpFilter{Name: IdentityMutation, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: a}}, errors.Wrap(err, "cannot make the filter of identity headers")
}

// StripVirtualHost makes IdentityFilter remove identity headers at a virtual host. The filter runs
// after Envoy has selected the route, so the routes no longer match on these headers: they are as if
// clients sent none.
func StripVirtualHost(v *routev3.VirtualHost) error {
	a, err := packAny(&mutationfilterv3.HeaderMutationPerRoute{Mutations: &mutationfilterv3.Mutations{RequestMutations: removeIdentityHeaders()}})
	if err != nil {
		return errors.Wrap(err, "cannot make the mutation of identity headers")
	}
	if v.TypedPerFilterConfig == nil {
		v.TypedPerFilterConfig = map[string]*anypb.Any{}
	}
	v.TypedPerFilterConfig[IdentityMutation] = a
	v.Routes = slices.DeleteFunc(slices.Clone(v.GetRoutes()), func(r *routev3.Route) bool { return !matchesWithoutIdentity(r.GetMatch()) })
	return nil
}

// matchesWithoutIdentity removes the conditions on identity headers from a match, and reports whether
// requests without these headers can meet them. A header that is absent meets no condition but that it
// is absent, and this also if the condition is inverted (Envoy's HeaderMatcher). The exception is
// treat_missing_header_as_empty, which neither Envoy Gateway nor the extension sets.
func matchesWithoutIdentity(m *routev3.RouteMatch) bool {
	possible := true
	if m == nil {
		return possible
	}
	m.Headers = slices.DeleteFunc(m.GetHeaders(), func(h *routev3.HeaderMatcher) bool {
		if !identity.Is(h.GetName()) || h.GetTreatMissingHeaderAsEmpty() {
			return false
		}
		p, ok := h.GetHeaderMatchSpecifier().(*routev3.HeaderMatcher_PresentMatch)
		possible = possible && ok && p.PresentMatch == h.GetInvertMatch()
		return true
	})
	return possible
}
