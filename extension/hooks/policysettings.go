// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// policySettings are the settings of connections that Envoy Gateway gave the cluster of a rule: the
// clusters to which policies send requests of the rule have them too. The zero value is that of a rule
// without such settings.
type policySettings struct {
	// suffix of the clusters' names: empty, or /settings/HASH. It does not depend on the target.
	suffix string

	// template of the clusters. Nil if an earlier run of the hook made the clusters, and left no
	// cluster of Envoy Gateway.
	template *clusterv3.Cluster

	tuning ir.Tuning
}

// name returns the name of a target's cluster with the settings.
func (s *policySettings) name(k ir.TargetKey) string {
	return policyPrefix + strings.TrimPrefix(k.ClusterName(), ir.OursPrefix) + s.suffix
}

// settingsOf returns the settings for the routes that policies insert before a route of a section.
// earlier are those that an earlier run inserted before it.
func (e *policyApplier) settingsOf(k ruleKey, section string, r *routev3.Route, earlier []*routev3.Route) *policySettings {
	if suffix, ok := earlierSuffix(earlier); ok {
		return &policySettings{suffix: suffix}
	}
	c := e.translation.clusters[k.cluster()]
	if c != nil && len(c.GetHealthChecks()) == 0 {
		return e.newSettings(k, section, c)
	}
	if s := e.settings[k]; s != nil {
		return s
	}
	s := &policySettings{}
	if c == nil {
		c = e.clusterOf(k, r)
	}
	if c != nil {
		s = e.newSettings(k, section, c)
	}
	e.settings[k] = s
	return s
}

// A settingsKey holds the inputs of settings.
type settingsKey struct {
	// template is what xds.AppendSettings writes of Envoy Gateway's cluster.
	template string

	// list has the tuning of endpoint lists, and http2 the one of clusters.
	list  string
	http2 ir.HTTP2

	services bool
}

// newSettings returns the settings of a rule's cluster, cached for clusters with the same inputs.
func (e *policyApplier) newSettings(k ruleKey, section string, c *clusterv3.Cluster) *policySettings {
	// The index knows the tuning of routes that name one of our kinds only.
	tuning := e.snapshot.Settings().Tuning(k.route, section)
	route := e.snapshot.Route(k.route)
	services := route == nil || slices.ContainsFunc(route.Rules, func(r ir.Rule) bool {
		return slices.ContainsFunc(r.Backends, func(b ir.BackendRef) bool { return !b.Ours() })
	})
	if len(c.GetHealthChecks()) > 0 {
		// They also depend on the hosts of the rule's routes.
		return makeSettings(c, tuning, e.hostsOf(k), services)
	}
	b, err := xds.AppendSettings(e.settingsBuffer[:0], c)
	if err != nil {
		return &policySettings{}
	}
	e.settingsBuffer = b
	list := tuning.Name("")
	// The compiler allocates no string for a lookup.
	if s := e.madeSettings[settingsKey{template: string(b), list: list, http2: tuning.HTTP2, services: services}]; s != nil {
		return s
	}
	s := makeSettings(c, tuning, nil, services)
	e.madeSettings[settingsKey{template: string(b), list: list, http2: tuning.HTTP2, services: services}] = s
	return s
}

// makeSettings makes settings of a cluster and of what policies set for its endpoint list. It makes none
// of a cluster that cannot be read, which Envoy would refuse.
func makeSettings(c *clusterv3.Cluster, tuning ir.Tuning, hosts map[string]bool, services bool) *policySettings {
	settings, err := xds.NewSettings(c, hosts, services)
	if err != nil {
		return &policySettings{}
	}
	tuning = xds.Tuned(settings.Template, tuning)
	if settings.HTTP2 != nil {
		tuning.HTTP2 = *settings.HTTP2
	}
	if settings.Default() && tuning.Equal(ir.Tuning{}) {
		return &policySettings{}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(settings.Template)
	if err != nil {
		return &policySettings{}
	}
	h := fnv.New64a()
	// Hashes never fail.
	_, _ = h.Write([]byte(string(b) + tuning.Name("") + fmt.Sprint(tuning.HTTP2)))
	return &policySettings{suffix: SettingsSegment + fmt.Sprintf("%016x", h.Sum64()), template: settings.Template, tuning: tuning}
}

// clusterOf returns Envoy Gateway's cluster of a rule that has none for all backends: the first of those
// for each, or one that the rule shares with others (mergeBackends of an EnvoyProxy). They have the
// same settings. Nil if there is none, as for a redirect.
func (e *policyApplier) clusterOf(k ruleKey, r *routev3.Route) *clusterv3.Cluster {
	if e.ruleClusters == nil {
		e.ruleClusters = ruleClusters(e.translation.clusters)
	}
	if c := e.ruleClusters[k]; c != nil {
		return c
	}
	names := []string{r.GetRoute().GetCluster()}
	for _, w := range r.GetRoute().GetWeightedClusters().GetClusters() {
		names = append(names, w.GetName())
	}
	for _, n := range names {
		if c := e.translation.clusters[n]; c != nil && !strings.HasPrefix(n, ir.OursPrefix) {
			return c
		}
	}
	return nil
}

// ruleClusters returns the cluster of the first backend of each rule with a cluster for each backend.
func ruleClusters(clusters map[string]*clusterv3.Cluster) map[ruleKey]*clusterv3.Cluster {
	out := map[ruleKey]*clusterv3.Cluster{}
	first := map[ruleKey]int{}
	for name, c := range clusters {
		k, rest, ok := parseRule(name)
		index, backend := strings.CutPrefix(rest, backendSegment)
		if !ok || !backend || !k.http() {
			continue
		}
		i, err := strconv.Atoi(index)
		if err != nil || name != k.backend(i) {
			continue
		}
		if lowest, ok := first[k]; !ok || i < lowest {
			first[k], out[k] = i, c
		}
	}
	return out
}

// hostsOf returns the hosts of a rule's routes.
func (e *policyApplier) hostsOf(k ruleKey) map[string]bool {
	if e.hosts != nil {
		return e.hosts[k]
	}
	e.hosts = map[ruleKey]map[string]bool{}
	for _, c := range e.configs {
		for _, v := range c.GetVirtualHosts() {
			for _, r := range v.GetRoutes() {
				rule, _, ok := parseRule(r.GetName())
				if !ok {
					continue
				}
				if e.hosts[rule] == nil {
					e.hosts[rule] = map[string]bool{}
				}
				for _, d := range v.GetDomains() {
					e.hosts[rule][d] = true
				}
			}
		}
	}
	return e.hosts[k]
}

// earlierSuffix returns the suffix of the clusters that an earlier run chose for routes. False if they
// send to no cluster of policies.
func earlierSuffix(rs []*routev3.Route) (string, bool) {
	for _, r := range rs {
		names := []string{r.GetRoute().GetCluster()}
		for _, w := range r.GetRoute().GetWeightedClusters().GetClusters() {
			names = append(names, w.GetName())
		}
		for _, n := range names {
			if suffix, ok := suffixOf(unpresented(n)); ok {
				return suffix, true
			}
		}
	}
	return "", false
}

// suffixOf returns what follows the target in the name of a cluster of policies. False for other names.
func suffixOf(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, policyPrefix)
	if !ok {
		return "", false
	}
	if _, err := ir.ParseClusterName(ir.OursPrefix + rest); err == nil {
		return "", true
	}
	// A namespace or a target may have the name of the segment.
	i := strings.LastIndex(rest, SettingsSegment)
	if i < 0 {
		return "", false
	}
	_, err := ir.ParseClusterName(ir.OursPrefix + rest[:i])
	return rest[i:], err == nil
}

// unpresented returns the name of the cluster that presentingCluster copied, or the name itself.
func unpresented(name string) string {
	rest, ok := strings.CutPrefix(name, presentingPrefix)
	if !ok {
		return name
	}
	// NAMESPACE/NAME of the Secret precede the cluster.
	const parts = 3
	if p := strings.SplitN(rest, "/", parts); len(p) == parts {
		return ir.OursPrefix + p[2]
	}
	return name
}

// earlierCluster returns the cluster of a name that an earlier run made, or copied, or nil.
func (e *policyApplier) earlierCluster(name string) *clusterv3.Cluster {
	if e.earlier == nil {
		e.earlier = map[string]*clusterv3.Cluster{}
		for _, c := range e.message {
			n := unpresented(c.GetName())
			if !strings.HasPrefix(n, policyPrefix) || e.earlier[n] != nil {
				continue
			}
			// It may present the certificate of the Gateway or of a rule.
			if plain, err := xds.Unpresent(c, n); err == nil && plain != nil {
				c = plain
			}
			e.earlier[n] = c
		}
	}
	return e.earlier[name]
}
