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

// What a route is to know of who asks is noted when a connection comes: by a filter
// before that of HTTP, for routes are chosen before any filter of HTTP is asked. It is
// the address that the connection has, or that its PROXY protocol header told. What
// requests say, such as X-Forwarded-For, has no part in it.
const (
	// ClientFilter is the name of the filter, and of what it notes.
	ClientFilter = "gateway.tailscale.com/client"

	// addressFactory makes addresses of text (envoyproxy/envoy
	// source/common/network/ip_address.cc).
	addressFactory = "envoy.network.ip"

	clientAddress = "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"
)

// NoteClient returns the filter.
func NoteClient() (*listenerv3.Filter, error) {
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
		return nil, errors.Wrap(err, "cannot make the filter that notes who connects")
	}
	return &listenerv3.Filter{Name: ClientFilter, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: a}}, nil
}

// nobody is a range of addresses that none connects from: Envoy takes no empty list.
var nobody = netip.MustParsePrefix("255.255.255.255/32") //nolint:gochecknoglobals // A constant.

// clientMatcher is met by connections from one of the ranges.
func clientMatcher(of []netip.Prefix) *matcherv3.FilterStateMatcher {
	if len(of) == 0 {
		of = []netip.Prefix{nobody}
	}
	m := &matcherv3.AddressMatcher{}
	for _, p := range of {
		m.Ranges = append(m.Ranges, &xdscorev3.CidrRange{
			AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(max(p.Bits(), 0))),
		})
	}
	return &matcherv3.FilterStateMatcher{Key: ClientFilter, Matcher: &matcherv3.FilterStateMatcher_AddressMatch{AddressMatch: m}}
}
