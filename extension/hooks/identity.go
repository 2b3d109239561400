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

// Envoy Gateway has a listener at a port that needs a privilege listen at another one, so
// much higher (servicePortToContainerPort in its internal/gatewayapi/helpers.go).
const (
	lastPrivileged = 1023
	portShift      = 10000
)

// conceal headers that tell who asks, of Gateways where a listener is told so: at all
// others a client could make them up, and who routes lead to could not tell.
func (t *translation) conceal(r Resources) Resources {
	if !t.snapshot.HasIdentityListeners() {
		return r
	}
	c := &concealer{snapshot: t.snapshot, told: map[string][]ir.IdentityListener{}, exposed: map[string]bool{}}
	for _, config := range r.Routes {
		for _, v := range config.GetVirtualHosts() {
			gateway, section := listenerOf(v)
			ls, ok := c.snapshot.IdentityListeners(gateway)
			if !ok {
				continue
			}
			c.exposed[config.GetName()] = true
			if i := slices.IndexFunc(ls, func(l ir.IdentityListener) bool { return l.Name == section }); i >= 0 {
				c.told[config.GetName()] = append(c.told[config.GetName()], ls[i])
			}
		}
	}
	for _, l := range r.Listeners {
		c.listener(l)
	}
	return r
}

type concealer struct {
	snapshot *ir.Snapshot

	// told are the listeners whose routes a route configuration has and that are told
	// who asks.
	told map[string][]ir.IdentityListener

	// exposed are the route configurations of Gateways that have such listeners.
	exposed map[string]bool
}

func (c *concealer) listener(l *listenerv3.Listener) {
	port := l.GetAddress().GetSocketAddress().GetPortValue()
	for _, chain := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		for _, f := range chain.GetFilters() {
			c.filter(f, port)
		}
	}
}

// filter that speaks HTTP. One that cannot be read or written stays as it is: Envoy
// would refuse it.
func (c *concealer) filter(f *listenerv3.Filter, port uint32) {
	m := &hcmv3.HttpConnectionManager{}
	if !f.GetTypedConfig().MessageIs(m) || f.GetTypedConfig().UnmarshalTo(m) != nil {
		return
	}
	config := m.GetRds().GetRouteConfigName()
	if config == "" {
		config = m.GetRouteConfig().GetName()
	}
	// A ListenerSet may call a listener as the Gateway does its own, and with
	// XDSNameSchemeV2 no name differs between the two. But it cannot have its port and other routes.
	told := slices.ContainsFunc(c.told[config], func(l ir.IdentityListener) bool { return listensAt(l.Port, port) })
	if !c.exposed[config] || told || slices.ContainsFunc(m.GetEarlyHeaderMutationExtensions(), isConcealment) {
		return
	}
	drop, err := xds.DropIdentity()
	if err != nil {
		return
	}
	// Before those of a ClientTrafficPolicy, which may set such a header on purpose.
	m.EarlyHeaderMutationExtensions = slices.Insert(m.EarlyHeaderMutationExtensions, 0, drop)
	a := &anypb.Any{}
	if anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}) == nil {
		f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: a}
	}
}

func isConcealment(e *corev3.TypedExtensionConfig) bool { return e.GetName() == xds.IdentityMutation }

// listensAt reports whether Envoy listens there for the port of a Gateway's listener.
func listensAt(of int32, port uint32) bool {
	return uint32(of) == port || of <= lastPrivileged && uint32(of)+portShift == port
}
