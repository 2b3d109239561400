// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
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
// detect it.
func (t *translation) stripIdentityHeaders(r Resources) Resources {
	if !t.snapshot.HasIdentityListeners() {
		return r
	}
	c := &identityStripper{snapshot: t.snapshot, identified: map[string][]ir.IdentityListener{}, exposed: map[string]bool{}}
	for _, config := range r.Routes {
		for _, v := range config.GetVirtualHosts() {
			gateway, section := listenerOf(v)
			ls, ok := c.snapshot.IdentityListeners(gateway)
			if !ok {
				continue
			}
			c.exposed[config.GetName()] = true
			if i := slices.IndexFunc(ls, func(l ir.IdentityListener) bool { return l.Name == section }); i >= 0 {
				c.identified[config.GetName()] = append(c.identified[config.GetName()], ls[i])
			}
		}
	}
	for _, l := range r.Listeners {
		c.listener(l)
	}
	return r
}

type identityStripper struct {
	snapshot *ir.Snapshot

	// identified maps a route configuration to the identity listeners whose routes it has.
	identified map[string][]ir.IdentityListener

	// exposed holds the route configurations of Gateways with identity listeners.
	exposed map[string]bool
}

func (c *identityStripper) listener(l *listenerv3.Listener) {
	port := l.GetAddress().GetSocketAddress().GetPortValue()
	for _, chain := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		for _, f := range chain.GetFilters() {
			c.filter(f, port)
		}
	}
}

// filter removes the headers in an HTTP connection manager. A filter that cannot be read or written
// stays as it is: Envoy would refuse it.
func (c *identityStripper) filter(f *listenerv3.Filter, port uint32) {
	m := &hcmv3.HttpConnectionManager{}
	if !f.GetTypedConfig().MessageIs(m) || f.GetTypedConfig().UnmarshalTo(m) != nil {
		return
	}
	config := m.GetRds().GetRouteConfigName()
	if config == "" {
		config = m.GetRouteConfig().GetName()
	}
	// A ListenerSet may have a listener with the name of a Gateway's listener, and with
	// XDSNameSchemeV2 no name separates the two. But it cannot have the same port with other
	// routes.
	identified := slices.ContainsFunc(c.identified[config], func(l ir.IdentityListener) bool { return listensAt(l.Port, port) })
	if !c.exposed[config] || identified || slices.ContainsFunc(m.GetEarlyHeaderMutationExtensions(), isIdentityMutation) {
		return
	}
	drop, err := xds.StripIdentityHeaders()
	if err != nil {
		return
	}
	// The removal comes before the mutations of a ClientTrafficPolicy, which may set such a header
	// on purpose.
	m.EarlyHeaderMutationExtensions = slices.Insert(m.EarlyHeaderMutationExtensions, 0, drop)
	a := &anypb.Any{}
	if anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}) == nil {
		f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: a}
	}
}

func isIdentityMutation(e *corev3.TypedExtensionConfig) bool {
	return e.GetName() == xds.IdentityMutation
}

// listensAt reports whether Envoy listens at this port for a Gateway listener's port.
func listensAt(of int32, port uint32) bool {
	return uint32(of) == port || of <= lastPrivileged && uint32(of)+portShift == port
}
