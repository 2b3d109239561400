// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// share returns a message with the fields of another one, whose messages it shares.
func share[M proto.Message](m M) M {
	from := m.ProtoReflect()
	to := from.New()
	from.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to.Set(f, v)
		return true
	})
	to.SetUnknown(from.GetUnknown())
	out, _ := to.Interface().(M)
	return out
}

// shareRoute does the same as share in a fifth of the time.
func shareRoute(r *routev3.Route) *routev3.Route {
	out := &routev3.Route{
		Name:                       r.GetName(),
		Match:                      r.GetMatch(),
		Action:                     r.GetAction(),
		Metadata:                   r.GetMetadata(),
		Decorator:                  r.GetDecorator(),
		TypedPerFilterConfig:       r.GetTypedPerFilterConfig(),
		RequestHeadersToAdd:        r.GetRequestHeadersToAdd(),
		RequestHeadersToRemove:     r.GetRequestHeadersToRemove(),
		ResponseHeadersToAdd:       r.GetResponseHeadersToAdd(),
		ResponseHeadersToRemove:    r.GetResponseHeadersToRemove(),
		Tracing:                    r.GetTracing(),
		PerRequestBufferLimitBytes: r.PerRequestBufferLimitBytes, //nolint:staticcheck // Envoy Gateway may set it.
		StatPrefix:                 r.GetStatPrefix(),
		RequestBodyBufferLimit:     r.GetRequestBodyBufferLimit(),
	}
	shareUnknown(out, r)
	return out
}

// shareMatch does the same as share in a fifth of the time.
func shareMatch(m *routev3.RouteMatch) *routev3.RouteMatch {
	out := &routev3.RouteMatch{
		PathSpecifier:   m.GetPathSpecifier(),
		CaseSensitive:   m.GetCaseSensitive(),
		RuntimeFraction: m.GetRuntimeFraction(),
		Headers:         m.GetHeaders(),
		QueryParameters: m.GetQueryParameters(),
		Cookies:         m.GetCookies(),
		Grpc:            m.GetGrpc(),
		TlsContext:      m.GetTlsContext(),
		DynamicMetadata: m.GetDynamicMetadata(),
		FilterState:     m.GetFilterState(),
	}
	shareUnknown(out, m)
	return out
}

// shareAction does the same as share in a fifth of the time.
//
//nolint:staticcheck // Envoy Gateway, or a patch, may set fields that are deprecated.
func shareAction(a *routev3.RouteAction) *routev3.RouteAction {
	out := &routev3.RouteAction{
		ClusterSpecifier:            a.ClusterSpecifier,
		ClusterNotFoundResponseCode: a.ClusterNotFoundResponseCode,
		MetadataMatch:               a.MetadataMatch,
		PrefixRewrite:               a.PrefixRewrite,
		RegexRewrite:                a.RegexRewrite,
		PathRewritePolicy:           a.PathRewritePolicy,
		PathRewrite:                 a.PathRewrite,
		HostRewriteSpecifier:        a.HostRewriteSpecifier,
		AppendXForwardedHost:        a.AppendXForwardedHost,
		Timeout:                     a.Timeout,
		IdleTimeout:                 a.IdleTimeout,
		FlushTimeout:                a.FlushTimeout,
		EarlyDataPolicy:             a.EarlyDataPolicy,
		RetryPolicy:                 a.RetryPolicy,
		RetryPolicyTypedConfig:      a.RetryPolicyTypedConfig,
		RequestMirrorPolicies:       a.RequestMirrorPolicies,
		Priority:                    a.Priority,
		RateLimits:                  a.RateLimits,
		IncludeVhRateLimits:         a.IncludeVhRateLimits,
		HashPolicy:                  a.HashPolicy,
		Cors:                        a.Cors,
		MaxGrpcTimeout:              a.MaxGrpcTimeout,
		GrpcTimeoutOffset:           a.GrpcTimeoutOffset,
		UpgradeConfigs:              a.UpgradeConfigs,
		InternalRedirectPolicy:      a.InternalRedirectPolicy,
		InternalRedirectAction:      a.InternalRedirectAction,
		MaxInternalRedirects:        a.MaxInternalRedirects,
		HedgePolicy:                 a.HedgePolicy,
		MaxStreamDuration:           a.MaxStreamDuration,
	}
	shareUnknown(out, a)
	return out
}

// shareUnknown copies the fields that this version of the API does not have.
func shareUnknown(to, from proto.Message) {
	if u := from.ProtoReflect().GetUnknown(); len(u) > 0 {
		to.ProtoReflect().SetUnknown(u)
	}
}

// concat returns the elements of two lists, neither of which changes.
func concat[T any](a, b []T) []T {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	return slices.Concat(a, b)
}
