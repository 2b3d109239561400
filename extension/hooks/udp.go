// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A udpFilter sends datagrams to a rule's cluster. It has one cluster only: localities inside the
// cluster split by weight.
type udpFilter struct {
	filter *listenerv3.ListenerFilter
	proxy  *udpproxyv3.UdpProxyConfig
	route  *udpproxyv3.Route
}

// udpFilter records a filter that sends datagrams to the cluster of a rule with Tailscale backends.
func (g *collector) udpFilter(f *listenerv3.ListenerFilter) {
	a := f.GetTypedConfig()
	if !a.MessageIs((*udpproxyv3.UdpProxyConfig)(nil)) {
		return
	}
	p, r := &udpproxyv3.UdpProxyConfig{}, &udpproxyv3.Route{}
	if err := a.UnmarshalTo(p); err != nil {
		// An unreadable filter stays as it is.
		return
	}
	if err := p.GetMatcher().GetOnNoMatch().GetAction().GetTypedConfig().UnmarshalTo(r); err != nil {
		return
	}
	k, rest, ok := parseRule(r.GetCluster())
	if !ok || rest != "" || k.http() {
		return
	}
	if u := g.use(k); u != nil {
		u.udp = append(u.udp, &udpFilter{filter: f, proxy: p, route: r})
	}
}

// send sends datagrams to the cluster.
func (u *udpFilter) send(cluster string) error {
	u.route.Cluster = cluster
	if err := repack(u.proxy.GetMatcher().GetOnNoMatch().GetAction().GetTypedConfig(), u.route); err != nil {
		return err
	}
	return errors.Wrap(repack(u.filter.GetTypedConfig(), u.proxy), "cannot change UDP filter")
}
