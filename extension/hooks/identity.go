// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// Envoy Gateway makes a listener with a privileged port listen at a higher port: the port plus this
// offset (servicePortToContainerPort in its internal/gatewayapi/helpers.go).
const (
	lastPrivileged = 1023
	portShift      = 10000
)

// stripIdentityHeaders removes identity headers of clients at the other listeners of Gateways that
// have an identity listener. Without this a client could forge the headers, and a backend could not
// detect it. It decides for each listener of a Gateway: several listeners at one port, also of several
// merged Gateways, are one listener of Envoy.
func (t *translation) stripIdentityHeaders(r Resources) Resources {
	if !t.snapshot.HasIdentityListeners() {
		return r
	}
	s := &identityStripper{snapshot: t.snapshot, configs: make(map[string]*routev3.RouteConfiguration, len(r.Routes)), merged: t.merged(gatewaysOf(r))}
	for _, c := range r.Routes {
		s.configs[c.GetName()] = c
	}
	for _, l := range r.Listeners {
		s.listener(l)
	}
	return r
}

type identityStripper struct {
	snapshot *ir.Snapshot

	// configs are the route configurations by name.
	configs map[string]*routev3.RouteConfiguration

	// merged reports that listeners may also be those of other Gateways.
	merged bool
}

func (s *identityStripper) listener(l *listenerv3.Listener) {
	port := l.GetAddress().GetSocketAddress().GetPortValue()
	for _, chain := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		for _, f := range chain.GetFilters() {
			s.filter(f, port)
		}
	}
}

// filter removes the headers in an HTTP connection manager: at once if that is for all of its virtual
// hosts, and otherwise for some. A filter that cannot be read or written stays as it is: Envoy would
// refuse it.
func (s *identityStripper) filter(f *listenerv3.Filter, port uint32) {
	m := &hcmv3.HttpConnectionManager{}
	if !f.GetTypedConfig().MessageIs(m) || f.GetTypedConfig().UnmarshalTo(m) != nil {
		return
	}
	config := m.GetRouteConfig()
	if name := m.GetRds().GetRouteConfigName(); name != "" {
		config = s.configs[name]
	}
	var exposed []*routev3.VirtualHost
	for _, v := range config.GetVirtualHosts() {
		if s.exposes(v, port) {
			exposed = append(exposed, v)
		}
	}
	if len(exposed) == 0 || slices.ContainsFunc(m.GetEarlyHeaderMutationExtensions(), isIdentityMutation) {
		return
	}
	change := stripSome
	// With merged Gateways the change must not depend on the hosts of others: Envoy closes the
	// connections of a listener that changes.
	if !s.merged && len(exposed) == len(config.GetVirtualHosts()) {
		change = stripAll
	}
	if change(m, exposed) != nil {
		return
	}
	a := &anypb.Any{}
	if anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}) == nil {
		f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: a}
	}
}

// exposes reports whether clients could forge identity headers at a virtual host: its Gateway has
// identity listeners, of which the virtual host is none.
func (s *identityStripper) exposes(v *routev3.VirtualHost, port uint32) bool {
	gateway, section := listenerOf(v)
	ls, ok := s.snapshot.IdentityListeners(gateway)
	// A ListenerSet may have a listener with the name of a Gateway's listener, and with
	// XDSNameSchemeV2 no name separates the two. But it cannot have the same port with other
	// routes.
	return ok && !slices.ContainsFunc(ls, func(l ir.IdentityListener) bool { return l.Name == section && listensAt(l.Port, port) })
}

// stripAll removes the headers from all requests. The removal comes before the mutations of a
// ClientTrafficPolicy, which may set such a header on purpose.
func stripAll(m *hcmv3.HttpConnectionManager, _ []*routev3.VirtualHost) error {
	drop, err := xds.StripIdentityHeaders()
	if err != nil {
		return err
	}
	m.EarlyHeaderMutationExtensions = slices.Insert(m.EarlyHeaderMutationExtensions, 0, drop)
	return nil
}

// stripSome removes the headers from requests to virtual hosts.
func stripSome(m *hcmv3.HttpConnectionManager, hosts []*routev3.VirtualHost) error {
	filter, err := xds.IdentityFilter()
	if err != nil {
		return err
	}
	for _, v := range hosts {
		if err := xds.StripVirtualHost(v); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(m.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool { return f.GetName() == filter.GetName() }) {
		m.HttpFilters = slices.Insert(m.HttpFilters, 0, filter)
	}
	return nil
}

func isIdentityMutation(e *corev3.TypedExtensionConfig) bool {
	return e.GetName() == xds.IdentityMutation
}

// listensAt reports whether Envoy listens at this port for a Gateway listener's port.
func listensAt(listenerPort int32, port uint32) bool {
	return uint32(listenerPort) == port || listenerPort <= lastPrivileged && uint32(listenerPort)+portShift == port
}
