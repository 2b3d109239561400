// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// connectAttempts is the number of endpoints that Envoy tries for a connection. Envoy's default is
// one.
const connectAttempts = 3

// A tcpFilter sends connections to a rule's cluster.
type tcpFilter struct {
	filter *listenerv3.Filter
	proxy  *tcpproxyv3.TcpProxy
}

// tcpFilter records a filter that sends connections to the cluster of a rule with Tailscale
// backends. A filter that another hook has split stays as it is.
func (g *collector) tcpFilter(f *listenerv3.Filter) {
	a := f.GetTypedConfig()
	if !a.MessageIs((*tcpproxyv3.TcpProxy)(nil)) {
		return
	}
	p := &tcpproxyv3.TcpProxy{}
	if err := a.UnmarshalTo(p); err != nil {
		// An unreadable filter stays as it is.
		return
	}
	k, rest, ok := parseRule(p.GetCluster())
	if !ok || rest != "" || k.http() {
		return
	}
	if u := g.use(k); u != nil {
		u.tcp = append(u.tcp, &tcpFilter{filter: f, proxy: p})
	}
}

// send sends connections to the clusters, by weight.
func (t *tcpFilter) send(clusters []weighted) error {
	if t.proxy.GetMaxConnectAttempts() == nil {
		// An endpoint that refuses a connection has received nothing, so Envoy may try another.
		t.proxy.MaxConnectAttempts = wrapperspb.UInt32(connectAttempts)
	}
	if len(clusters) == 1 {
		return t.sendAll(clusters[0].name)
	}
	w := &tcpproxyv3.TcpProxy_WeightedCluster{}
	for _, c := range clusters {
		w.Clusters = append(w.Clusters, &tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight{Name: c.name, Weight: c.weight})
	}
	t.proxy.ClusterSpecifier = &tcpproxyv3.TcpProxy_WeightedClusters{WeightedClusters: w}
	return repack(t.filter.GetTypedConfig(), t.proxy)
}

// sendAll sends all connections to one cluster.
func (t *tcpFilter) sendAll(cluster string) error {
	t.proxy.ClusterSpecifier = &tcpproxyv3.TcpProxy_Cluster{Cluster: cluster}
	return repack(t.filter.GetTypedConfig(), t.proxy)
}

// repack marshals a message so that equal messages have equal bytes: Envoy Gateway hashes them, and
// a listener whose bytes change drains.
func repack(a *anypb.Any, m proto.Message) error {
	return errors.Wrap(anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}), "cannot marshal filter")
}
