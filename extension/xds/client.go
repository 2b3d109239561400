// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"net/netip"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	commonstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	statev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Routes match on the client's address, which a filter records for each connection. The filter
// precedes the HTTP connection manager, because Envoy selects a route before it runs HTTP filters.
// The address is that of the connection, or that in its PROXY protocol header. Headers of requests,
// such as X-Forwarded-For, do not count.
const (
	// ClientFilter is the name of the filter, and of its filter state.
	ClientFilter = "gateway.tailscale.com/client"

	// addressFactory makes addresses of text (envoyproxy/envoy
	// source/common/network/ip_address.cc).
	addressFactory = "envoy.network.ip"

	clientAddress = "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"
)

// RecordClient returns the filter that records the client's address.
func RecordClient() (*listenerv3.Filter, error) {
	a, err := packAny(&statev3.Config{OnNewConnection: []*commonstatev3.FilterStateValue{{
		Key:        &commonstatev3.FilterStateValue_ObjectKey{ObjectKey: ClientFilter},
		FactoryKey: addressFactory,
		Value: &commonstatev3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: clientAddress},
			}},
		}},
	}}})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make the filter that records the client")
	}
	return &listenerv3.Filter{Name: ClientFilter, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: a}}, nil
}

// noClient is an address range without clients: Envoy accepts no empty list.
var noClient = netip.MustParsePrefix("255.255.255.255/32")

// clientMatcher returns a matcher for connections from one of the ranges.
func clientMatcher(ranges []netip.Prefix) *matcherv3.FilterStateMatcher {
	if len(ranges) == 0 {
		ranges = []netip.Prefix{noClient}
	}
	m := &matcherv3.AddressMatcher{}
	for _, p := range ranges {
		m.Ranges = append(m.Ranges, &xdscorev3.CidrRange{
			AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(max(p.Bits(), 0))),
		})
	}
	return &matcherv3.FilterStateMatcher{Key: ClientFilter, Matcher: &matcherv3.FilterStateMatcher_AddressMatch{AddressMatch: m}}
}
