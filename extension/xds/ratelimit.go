// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// RateLimitFilter is the name of the filter for policies' rate limits. Envoy Gateway's filter,
	// for BackendTrafficPolicies, counts separately.
	RateLimitFilter = "gateway.tailscale.com/rate-limit"

	rateLimitStats = "tailscale_route_policy"
)

// LimitRates returns the filter, which limits only routes with a rate limit.
func LimitRates() (*hcmv3.HttpFilter, error) {
	a, err := packAny(&ratelimitv3.LocalRateLimit{StatPrefix: rateLimitStats})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the rate limit filter")
	}
	return &hcmv3.HttpFilter{Name: RateLimitFilter, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: a}}, nil
}

// limitRate returns the filter's configuration for a route with a rate limit.
func limitRate(l *ir.RateLimit) (*anypb.Any, error) {
	always := &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 100}}
	a, err := packAny(&ratelimitv3.LocalRateLimit{
		StatPrefix: rateLimitStats,
		TokenBucket: &typev3.TokenBucket{
			MaxTokens: l.Requests, TokensPerFill: wrapperspb.UInt32(l.Requests), FillInterval: durationpb.New(l.Period),
		},
		FilterEnabled: always, FilterEnforced: always,
	})
	return a, errors.Wrap(err, "cannot limit the rate of a route")
}
