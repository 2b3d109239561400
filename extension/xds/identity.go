// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/identity"
)

// IdentityMutation is the name of the header mutation that removes identity headers.
const IdentityMutation = "gateway.tailscale.com/identity"

// StripIdentityHeaders returns a mutation that makes a listener remove identity headers of clients: before
// it matches routes, which may match on such a header, and before any filter reads one.
func StripIdentityHeaders() (*corev3.TypedExtensionConfig, error) {
	a, err := packAny(&earlyv3.HeaderMutation{Mutations: []*mutationv3.HeaderMutation{{
		Action: &mutationv3.HeaderMutation_RemoveOnMatch_{RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{
			KeyMatcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
				SafeRegex: &matcherv3.RegexMatcher{Regex: identity.Pattern()},
			}},
		}},
	}}})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the mutation of identity headers")
	}
	return &corev3.TypedExtensionConfig{Name: IdentityMutation, TypedConfig: a}, nil
}
