// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// Prefixes of the names of the clusters for a Kubernetes Service that fails over. The rest is the name of
// Envoy Gateway's cluster, which stays as it is: it has the endpoints of this cluster.
const (
	// aggregatePrefix begins the name of the cluster that routes use.
	aggregatePrefix = ir.OursPrefix + "aggregate/"

	// elsewherePrefix begins the name of the cluster with the proxies that lead to other clusters.
	elsewherePrefix = ir.OursPrefix + "elsewhere/"
)

// failOver makes the rules of some uses, which name only Services, fail over to other clusters. Envoy can
// use an aggregate at once, unlike a cluster that waits for endpoints, and gets it before the routes that
// name it (Envoy Gateway's cache has the order of ADS, NewSnapshotCache in its
// internal/xds/runner/runner.go). So no request is lost when failover begins.
func (t *translation) failOver(r Resources, us []*use) Resources {
	if len(us) == 0 {
		return r
	}
	f := failover{translation: t, additions: map[string]*clusterv3.Cluster{}}
	for _, u := range us {
		f.rule(u)
	}
	if len(f.additions) == 0 {
		return r
	}
	r.Clusters = slices.DeleteFunc(slices.Clone(r.Clusters), func(c *clusterv3.Cluster) bool { return f.additions[c.GetName()] != nil })
	for _, name := range slices.Sorted(maps.Keys(f.additions)) {
		r.Clusters = append(r.Clusters, f.additions[name])
	}
	return r
}

// A failover holds the state of one call of failOver.
type failover struct {
	*translation

	// additions are the new clusters, by name.
	additions map[string]*clusterv3.Cluster
}

// rule makes the routes of a rule use aggregates. A rule whose backends share a cluster stays as it is if
// there are several, because nothing distinguishes their endpoints.
func (f *failover) rule(u *use) {
	backends := effective(u.rule)
	for _, a := range u.actions {
		switch c := a.ClusterSpecifier.(type) {
		case *routev3.RouteAction_Cluster:
			if len(backends) == 1 {
				c.Cluster = f.aggregate(u, backends[0], c.Cluster)
			}
		case *routev3.RouteAction_WeightedClusters:
			for _, w := range c.WeightedClusters.GetClusters() {
				for _, b := range backends {
					w.Name = f.aggregate(u, b, w.GetName())
				}
			}
		}
	}
	if len(backends) != 1 {
		return
	}
	for _, l4 := range u.tcp {
		cluster := l4.proxy.GetCluster()
		name := f.aggregate(u, backends[0], cluster)
		if name == cluster {
			continue
		}
		if err := l4.sendAll(name); err != nil {
			f.skip(u, Malformed)
		}
	}
}

// aggregate returns the aggregate that a route uses for a backend instead of a cluster. It returns the
// cluster itself if it is not that of the backend, or if no other cluster shares the Service.
func (f *failover) aggregate(u *use, b ir.BackendRef, name string) string {
	local := strings.TrimPrefix(name, aggregatePrefix)
	template := f.clusters[local]
	if template == nil || !isCluster(u.key, b, local) || !f.snapshot.Permitted(u.key.route, b) {
		return name
	}
	k, ok := b.Failover(u.key.route.Kind)
	if !ok {
		return name
	}
	target := f.snapshot.Target(k)
	if target == nil || target.Missing {
		return local
	}
	if f.additions[aggregatePrefix+local] != nil {
		return aggregatePrefix + local
	}
	elsewhere, err := xds.Cluster(xds.Elsewhere(template), xds.ClusterOptions{
		Name:       elsewherePrefix + local,
		List:       ir.Tuning{Transport: target.Transport}.Name(k.ClusterName()),
		Source:     f.source,
		Shape:      &target.Shape,
		Protocol:   k.Protocol,
		CheckHost:  b.Name,
		RouteHosts: u.hosts,
	})
	if err == nil {
		err = elsewhere.ValidateAll()
	}
	order := []string{local, elsewherePrefix + local}
	if target.Drains {
		slices.Reverse(order)
	}
	var aggregate *clusterv3.Cluster
	if err == nil {
		aggregate, err = xds.Aggregate(template, aggregatePrefix+local, order...)
	}
	if err != nil {
		f.skip(u, Malformed)
		return local
	}
	f.additions[elsewhere.GetName()], f.additions[aggregate.GetName()] = elsewhere, aggregate
	f.summary.FailingOver++
	return aggregate.GetName()
}

// isCluster reports whether Envoy Gateway gives a cluster this name for a backend of a rule: that of the
// rule, that of the backend, or one that all rules with the backend share (mergeBackends of an EnvoyProxy;
// irBackendClusterName in its internal/gatewayapi/helpers.go).
func isCluster(k ruleKey, b ir.BackendRef, name string) bool {
	shared := strings.Join([]string{"service", b.Namespace, b.Name, strconv.Itoa(int(b.Port))}, "/")
	rest, ok := strings.CutPrefix(name, shared)
	return name == k.cluster() || name == k.backend(b.Index) || ok && (rest == "" || rest[0] == '/')
}
