// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// gatewayPrefix begins the names of clusters that only one of several merged Gateways uses:
// tailscale/gateway/NAMESPACE/NAME/CLUSTER.
const gatewayPrefix = ir.OursPrefix + "gateway/"

// unclear stands for the Gateway of connections that could be those of several Gateways with
// different certificates. No Gateway has such a name.
var unclear = types.NamespacedName{Namespace: "_", Name: "_"}

// gatewayCluster returns the name of a Gateway's own copy of a cluster.
func gatewayCluster(gateway types.NamespacedName, cluster string) string {
	return gatewayPrefix + gateway.Namespace + "/" + gateway.Name + "/" + strings.TrimPrefix(cluster, ir.OursPrefix)
}

// commonCluster returns the name of the cluster that gatewayCluster names a copy of. It returns
// any other name as it is.
func commonCluster(name string) string {
	rest, ok := strings.CutPrefix(name, gatewayPrefix)
	if !ok {
		return name
	}
	p := strings.SplitN(rest, "/", 3)
	if _, _, isRule := parseRule(p[len(p)-1]); isRule {
		return p[len(p)-1]
	}
	return ir.OursPrefix + p[len(p)-1]
}

// gatewaysOf returns the Gateways that a message is for, each once: those of its revisions and of its
// virtual hosts. A listener's name has its Gateway, except with XDSNameSchemeV2.
func gatewaysOf(r Resources) []types.NamespacedName {
	out := slices.Clone(r.Gateways)
	for _, c := range r.Routes {
		for _, v := range c.GetVirtualHosts() {
			if g, _ := listenerOf(v); g.Name != "" {
				out = append(out, g)
			}
		}
	}
	for _, l := range r.Listeners {
		if g, ok := gatewayOfListener(l); ok {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, ir.CompareNames)
	return slices.Compact(out)
}

// gatewayOfListener returns the Gateway in a listener's name, which is that of the first of the
// Gateway API listeners at its port.
func gatewayOfListener(l *listenerv3.Listener) (types.NamespacedName, bool) {
	p := strings.Split(l.GetName(), "/")
	if len(p) < 3 {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: p[0], Name: p[1]}, true
}

// merged reports whether Envoy may serve several Gateways.
func (t *translation) merged(gateways []types.NamespacedName) bool {
	return len(gateways) > 1 || slices.ContainsFunc(gateways, t.snapshot.Merges)
}

// separateCertificates makes clusters present the certificate of the Gateway whose requests they get:
// each Gateway with a certificate gets copies of the clusters. The names of the copies depend on
// nothing that another Gateway does.
func (t *translation) separateCertificates(r Resources, gateways []types.NamespacedName) Resources {
	s := &separator{translation: t, gateways: gateways, clusters: make(map[string]*clusterv3.Cluster, len(r.Clusters)), copies: map[string]*clusterv3.Cluster{}}
	for _, c := range r.Clusters {
		s.clusters[c.GetName()] = c
	}
	used := map[string]bool{}
	renameClusters(r, func(origin sender, cluster string) string {
		name := s.cluster(origin, cluster)
		used[name] = true
		return name
	})
	if len(s.copies) == 0 {
		return r
	}
	copied := map[string]bool{}
	for name := range s.copies {
		copied[commonCluster(name)] = true
	}
	r.Clusters = slices.DeleteFunc(slices.Clone(r.Clusters), func(c *clusterv3.Cluster) bool { return copied[c.GetName()] && !used[c.GetName()] })
	first := len(r.Clusters)
	for _, c := range s.copies {
		r.Clusters = append(r.Clusters, c)
	}
	slices.SortFunc(r.Clusters[first:], func(a, b *clusterv3.Cluster) int { return strings.Compare(a.GetName(), b.GetName()) })
	return r
}

// A separator copies clusters for Gateways.
type separator struct {
	*translation

	gateways         []types.NamespacedName
	clusters, copies map[string]*clusterv3.Cluster
}

// cluster returns the name of the cluster for requests of a Gateway that name a cluster.
func (s *separator) cluster(origin sender, name string) string {
	c := s.clusters[name]
	if c == nil || !s.presents(c) {
		return name
	}
	gateway := s.gateway(origin)
	certificate := s.snapshot.Certificates().Get(gateway)
	if certificate == nil && gateway != unclear {
		return name
	}
	own := gatewayCluster(gateway, name)
	if s.copies[own] != nil {
		return own
	}
	c = proto.CloneOf(c)
	c.Name = own
	s.copies[own] = s.withCertificate(c, s.certificateSecret(certificate))
	return own
}

// gateway returns the Gateway of requests. Virtual hosts name theirs. A filter chain names its route,
// and the Gateway is the one of the route's that the message is for; of several, that of the listener
// if it has no other chain, and otherwise any if all present the same certificate.
func (s *separator) gateway(origin sender) types.NamespacedName {
	if origin.chain == nil {
		return origin.gateway
	}
	kind, rest, _ := strings.Cut(origin.chain.GetName(), "/")
	namespace, name, _ := strings.Cut(rest, "/")
	k := ir.RouteKey{Kind: ir.RouteKind(kind)}
	k.Namespace, k.Name = namespace, name
	listens, named := gatewayOfListener(origin.listener)
	var out []types.NamespacedName
	if route := s.snapshot.Route(k); route != nil {
		for _, g := range route.Gateways {
			if slices.Contains(s.gateways, g) {
				out = append(out, g)
			}
		}
	}
	switch {
	case len(out) == 1:
		return out[0]
	case len(out) == 0 && named, named && len(origin.listener.GetFilterChains()) == 1 && slices.Contains(out, listens):
		return listens
	}
	for _, g := range out[min(1, len(out)):] {
		if !sameCertificate(s.snapshot.Certificates().Get(out[0]), s.snapshot.Certificates().Get(g)) {
			return unclear
		}
	}
	if len(out) == 0 {
		return unclear
	}
	return out[0]
}

func sameCertificate(a, b *ir.ClientCertificate) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// joinGateways replaces the copies that separateCertificates made in an earlier run by the clusters
// themselves.
func (t *translation) joinGateways(r Resources) Resources {
	if !slices.ContainsFunc(r.Clusters, func(c *clusterv3.Cluster) bool { return strings.HasPrefix(c.GetName(), gatewayPrefix) }) {
		return r
	}
	renameClusters(r, func(_ sender, cluster string) string { return commonCluster(cluster) })
	out := make([]*clusterv3.Cluster, 0, len(r.Clusters))
	seen := map[string]bool{}
	for _, c := range r.Clusters {
		if !strings.HasPrefix(c.GetName(), gatewayPrefix) {
			out = append(out, c)
			seen[c.GetName()] = true
		}
	}
	for _, c := range r.Clusters {
		name := commonCluster(c.GetName())
		if name == c.GetName() {
			continue
		}
		t.joined[name] = true
		if seen[name] {
			continue
		}
		if original, err := xds.Unpresent(c, name); err == nil && original != nil {
			out = append(out, original)
			seen[name] = true
		}
	}
	r.Clusters = out
	return r
}

// A sender is the part of a message that sends requests to clusters: a virtual host with its Gateway,
// or a filter chain of a listener.
type sender struct {
	gateway  types.NamespacedName
	listener *listenerv3.Listener
	chain    *listenerv3.FilterChain
}

// renameClusters replaces the names of clusters in routes and in filters for connections.
func renameClusters(r Resources, name func(origin sender, cluster string) string) {
	for _, c := range r.Routes {
		for _, v := range c.GetVirtualHosts() {
			g, _ := listenerOf(v)
			origin := sender{gateway: g}
			for _, route := range v.GetRoutes() {
				renameRoute(route.GetRoute(), func(cluster string) string { return name(origin, cluster) })
			}
		}
	}
	for _, l := range r.Listeners {
		for _, c := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
			origin := sender{listener: l, chain: c}
			for _, f := range c.GetFilters() {
				renameFilter(f, func(cluster string) string { return name(origin, cluster) })
			}
		}
	}
}

func renameRoute(a *routev3.RouteAction, name func(string) string) {
	if c, ok := a.GetClusterSpecifier().(*routev3.RouteAction_Cluster); ok {
		c.Cluster = name(c.Cluster)
	}
	for _, c := range a.GetWeightedClusters().GetClusters() {
		c.Name = name(c.GetName())
	}
	for _, m := range a.GetRequestMirrorPolicies() {
		m.Cluster = name(m.GetCluster())
	}
}

func renameFilter(f *listenerv3.Filter, name func(string) string) {
	p := &tcpproxyv3.TcpProxy{}
	if !f.GetTypedConfig().MessageIs(p) || f.GetTypedConfig().UnmarshalTo(p) != nil {
		return
	}
	changed := false
	rename := func(from string) string {
		to := name(from)
		changed = changed || to != from
		return to
	}
	if c, ok := p.GetClusterSpecifier().(*tcpproxyv3.TcpProxy_Cluster); ok {
		c.Cluster = rename(c.Cluster)
	}
	for _, c := range p.GetWeightedClusters().GetClusters() {
		c.Name = rename(c.GetName())
	}
	if !changed {
		return
	}
	if previous := f.GetTypedConfig().GetValue(); repack(f.GetTypedConfig(), p) != nil {
		f.GetTypedConfig().Value = previous
	}
}
