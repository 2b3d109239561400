// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// policyPrefix begins the names of the routes and clusters of policies.
const policyPrefix = ir.OursPrefix + "policy/"

// applyPolicies inserts a route before each route with attached policies, for each match of each
// rule. The inserted route keeps what Envoy Gateway attached to the base route, such as
// authentication, or what it attached to the rule that the policy names.
func (t *translation) applyPolicies(r Resources) Resources {
	if !t.snapshot.Policies().Exist() {
		return r
	}
	e := &policyApplier{
		translation: t, message: r.Clusters, clusters: map[string]*clusterv3.Cluster{}, policyClusters: map[string]*clusterv3.Cluster{},
		configs: r.Routes, settings: map[ruleKey]*policySettings{}, madeSettings: map[settingsKey]*policySettings{},
		inserted:      inserted{namespaces: map[string]int{}},
		clientConfigs: map[string]bool{}, rateLimited: map[string]bool{}, insertions: map[insertionKey][]insertion{},
	}
	for _, c := range r.Routes {
		e.config, e.rules, e.checked = c, nil, map[*routev3.Route]bool{}
		for _, v := range c.GetVirtualHosts() {
			e.virtualHost(v)
		}
	}
	for _, l := range r.Listeners {
		e.listener(l)
	}
	r.Clusters = e.list(r.Clusters)
	return r
}

type policyApplier struct {
	*translation

	// config is the current route configuration, and rules are the routes of its named rules, once
	// needed. checked are those of them that Envoy accepts.
	config  *routev3.RouteConfiguration
	rules   map[ruleName]*routev3.Route
	checked map[*routev3.Route]bool

	// insertions are what rules insert before the routes of a kind.
	insertions map[insertionKey][]insertion

	// inserted are the bytes of the inserted routes.
	inserted inserted

	// message holds all clusters except those of policies that this run makes, and byName the same by
	// name, once needed. earlier are those of policies without the certificates that they present.
	message []*clusterv3.Cluster
	byName  map[string]*clusterv3.Cluster
	earlier map[string]*clusterv3.Cluster

	// configs are all route configurations.
	configs []*routev3.RouteConfiguration

	// settings of the rules that policies send requests of, if they are not made of one cluster
	// alone, and what they are made of, once needed: Envoy Gateway's clusters and the hosts of rules.
	settings       map[ruleKey]*policySettings
	madeSettings   map[settingsKey]*policySettings
	settingsBuffer []byte
	ruleClusters   map[ruleKey]*clusterv3.Cluster
	hosts          map[ruleKey]map[string]bool

	// policyClusters are the clusters of targets, by name, and clusters those that the rules use.
	policyClusters, clusters map[string]*clusterv3.Cluster

	// clientConfigs are the route configurations that match on the client, and rateLimited those
	// that limit rates.
	clientConfigs, rateLimited map[string]bool
}

func (e *policyApplier) virtualHost(v *routev3.VirtualHost) {
	gateway, listener := listenerOf(v)
	var out, earlier []*routev3.Route
	for i, r := range v.GetRoutes() {
		if strings.HasPrefix(r.GetName(), policyPrefix) {
			// An earlier run made this route. The loop below makes it again.
			earlier = append(earlier, r)
			if out == nil {
				out = slices.Clone(v.GetRoutes()[:i])
			}
			continue
		}
		routes := e.policyRoutes(gateway, listener, r, earlier)
		earlier = nil
		if len(routes) > 0 && out == nil {
			out = slices.Clone(v.GetRoutes()[:i])
		}
		if out != nil {
			out = append(append(out, routes...), r)
		}
	}
	if out != nil {
		v.Routes = out
	}
}

// policyRoutes returns the routes of the policies that are attached to a route, in the order of
// their precedence. earlier are those that an earlier run inserted.
func (e *policyApplier) policyRoutes(gateway types.NamespacedName, listener string, r *routev3.Route, earlier []*routev3.Route) []*routev3.Route {
	k, _, ok := parseRule(r.GetName())
	if !ok || !k.http() {
		return nil
	}
	_, section := resourceOf(r.GetMetadata())
	config := e.config.GetName()
	rules := e.snapshot.Policies().Rules(k.route, section, gateway, listener)
	if len(rules) == 0 {
		return nil
	}
	if e.snapshot.Policies().Refuses(rules[0].Policy, k.route) {
		e.summary.Denied++
		return []*routev3.Route{refuse(r)}
	}
	out := make([]*routev3.Route, 0, len(rules))
	base := newRouteSize(r)
	size := 0
	settings := &policySettings{}
	if slices.ContainsFunc(rules, func(rule *ir.PolicyRule) bool { return len(rule.Backends) > 0 }) {
		settings = e.settingsOf(k, section, r, earlier)
	}
	for _, rule := range rules {
		as := e.namedRoute(gateway, listener, rule.Named)
		for _, ins := range e.insertionsOf(k.route.Kind, rule, settings) {
			result, n := e.insert(ins, r, as)
			if result == nil {
				continue
			}
			if n == 0 {
				n = base.with(ins.Insertion) + len(result.GetName())
			}
			if size += n; !e.inserted.admits(k.route.Namespace, size) {
				e.summary.Denied++
				return []*routev3.Route{refuse(r)}
			}
			out = append(out, result)
			e.clientConfigs[config] = e.clientConfigs[config] || ins.clients
			e.rateLimited[config] = e.rateLimited[config] || rule.RateLimit != nil
		}
		if len(rule.Matches) == 0 {
			// This rule matches all requests.
			break
		}
	}
	e.inserted.add(k.route.Namespace, size)
	e.summary.Inserted += len(out)
	return out
}

// insert returns the route that an insertion makes of a route, and its size unless that is the one of
// the route with the insertion. Nil if Envoy would refuse it: the index omits rules that Envoy
// refuses, so it would be because of Envoy Gateway's part.
func (e *policyApplier) insert(ins insertion, r, as *routev3.Route) (*routev3.Route, int) {
	result, err := ins.Route(r, as)
	if ins.rule.Named != nil && err != nil {
		// No other route handles such requests.
		result, err = ins.Route(r, nil)
	}
	if err != nil || result == nil {
		return nil, 0
	}
	result.Name = ins.prefix + r.GetName()
	if ins.rule.Certificate != nil {
		e.presentCertificate(result, ins.rule.Certificate)
	}
	if ins.rule.Certificate != nil || ins.rule.Named != nil {
		return result, proto.Size(result)
	}
	return result, 0
}

// weightedClusters returns the clusters of a rule's backends with the settings, and registers the
// clusters.
func (e *policyApplier) weightedClusters(kind ir.RouteKind, rule *ir.PolicyRule, settings *policySettings) []xds.WeightedCluster {
	var out []xds.WeightedCluster
	for _, b := range rule.Backends {
		c := e.policyCluster(b.Target(kind), settings)
		if c != nil && rule.Certificate == nil {
			e.clusters[c.GetName()] = c
		}
		if c == nil {
			out = append(out, xds.WeightedCluster{Cluster: invalidCluster, Weight: b.Weight, Missing: true})
			continue
		}
		i := slices.IndexFunc(out, func(s xds.WeightedCluster) bool { return s.Cluster == c.GetName() })
		if i >= 0 {
			out[i].Weight = clamp(uint64(out[i].Weight) + uint64(b.Weight))
			continue
		}
		out = append(out, xds.WeightedCluster{Cluster: c.GetName(), Weight: b.Weight})
	}
	return out
}

// policyCluster returns the cluster that policies share for a target, if Envoy Gateway gave the same
// settings to the clusters of the routes that the policies are for. Nil if the target does not exist.
func (e *policyApplier) policyCluster(k ir.TargetKey, settings *policySettings) *clusterv3.Cluster {
	name := settings.name(k)
	if c, ok := e.policyClusters[name]; ok {
		return c
	}
	target := e.snapshot.Target(k)
	if target == nil || target.Missing {
		return nil
	}
	c := e.earlierCluster(name)
	if settings.suffix == "" || settings.template != nil {
		tuning := settings.tuning
		tuning.Transport = target.Transport
		tuning.PreferLocal = tuning.PreferLocal || xds.PrefersZone(&target.Shape, tuning)
		template := settings.template
		if k.Protocol != ir.ProtocolGRPC && !target.Shape.HTTP2 {
			template = xds.ForHTTP1(template)
		}
		var err error
		c, err = xds.Cluster(template, xds.ClusterOptions{
			Name: name, List: tuning.Name(k.ClusterName()), Source: e.source, Shape: &target.Shape,
			Protocol: k.Protocol, CheckHost: k.Name, HTTP2: tuning.HTTP2, Shared: true,
		})
		if err != nil || c.ValidateAll() != nil {
			return nil
		}
	}
	if c == nil {
		// An earlier run had no such target.
		return e.policyCluster(k, &policySettings{})
	}
	addAuthorities(e.secrets, &target.Shape)
	e.policyClusters[name] = c
	return c
}

// list returns the clusters, followed by those of policies, sorted by name.
func (e *policyApplier) list(clusters []*clusterv3.Cluster) []*clusterv3.Cluster {
	out := slices.DeleteFunc(slices.Clone(clusters), func(c *clusterv3.Cluster) bool { return strings.HasPrefix(c.GetName(), policyPrefix) })
	first := len(out)
	for _, c := range e.clusters {
		out = append(out, c)
	}
	slices.SortFunc(out[first:], func(a, b *clusterv3.Cluster) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// listener adds the filters that the listener's routes need, to record the client for each
// connection and to limit rates.
func (e *policyApplier) listener(l *listenerv3.Listener) {
	for _, c := range l.GetFilterChains() {
		e.chain(c)
	}
	if c := l.GetDefaultFilterChain(); c != nil {
		e.chain(c)
	}
}

func (e *policyApplier) chain(c *listenerv3.FilterChain) {
	if len(e.clientConfigs)+len(e.rateLimited) == 0 {
		return
	}
	m := &hcmv3.HttpConnectionManager{}
	i := slices.IndexFunc(c.GetFilters(), func(f *listenerv3.Filter) bool {
		return f.GetTypedConfig().MessageIs(m) && f.GetTypedConfig().UnmarshalTo(m) == nil
	})
	if i < 0 {
		return
	}
	config := cmp.Or(m.GetRds().GetRouteConfigName(), m.GetRouteConfig().GetName())
	if e.rateLimited[config] {
		limitRates(c.GetFilters()[i], m)
	}
	if e.clientConfigs[config] && !slices.ContainsFunc(c.GetFilters(), func(f *listenerv3.Filter) bool { return f.GetName() == xds.ClientFilter }) {
		if f, err := xds.RecordClient(); err == nil {
			c.Filters = slices.Insert(c.Filters, i, f)
		}
	}
}

// limitRates inserts a rate limit filter before the last filter, the router.
func limitRates(f *listenerv3.Filter, m *hcmv3.HttpConnectionManager) {
	last := len(m.GetHttpFilters()) - 1
	if last < 0 || slices.ContainsFunc(m.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool { return f.GetName() == xds.RateLimitFilter }) {
		return
	}
	limit, err := xds.LimitRates()
	if err != nil {
		return
	}
	m.HttpFilters = slices.Insert(m.HttpFilters, last, limit)
	previous := f.GetTypedConfig().GetValue()
	if repack(f.GetTypedConfig(), m) != nil {
		f.GetTypedConfig().Value = previous
	}
}

// resourceOf returns the Kubernetes resource from which Envoy Gateway made a message, and its
// section (buildXdsMetadata in its internal/xds/translator/metadata.go).
func resourceOf(m *corev3.Metadata) (types.NamespacedName, string) {
	for _, v := range m.GetFilterMetadata()["envoy-gateway"].GetFields()["resources"].GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		return types.NamespacedName{Namespace: text(f, "namespace"), Name: text(f, "name")}, text(f, "sectionName")
	}
	return types.NamespacedName{}, ""
}

// policiesOf returns the policies that Envoy Gateway has applied (buildpolicyMetadata in the same
// file).
func policiesOf(m *corev3.Metadata) []types.NamespacedName {
	var out []types.NamespacedName
	for _, v := range m.GetFilterMetadata()["envoy-gateway"].GetFields()["policies"].GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		out = append(out, types.NamespacedName{Namespace: text(f, "namespace"), Name: text(f, "name")})
	}
	return out
}

// listenerOf returns the listener of a virtual host, and its Gateway. A ListenerSet's listener is
// called NAMESPACE/NAME/LISTENER, which separates it from a Gateway's listener of the same name:
// metadata has the Gateway and the listener only, and only the virtual host's name has the
// ListenerSet (irListenerName in Envoy Gateway's internal/gatewayapi/helpers.go). With
// XDSNameSchemeV2 neither has it.
func listenerOf(v *routev3.VirtualHost) (types.NamespacedName, string) {
	gateway, listener := resourceOf(v.GetMetadata())
	// GATEWAY'S NAMESPACE/GATEWAY/NAMESPACE/LISTENERSET/LISTENER/HOST.
	const ofSet = 6
	p := strings.Split(v.GetName(), "/")
	if len(p) == ofSet && p[0] == gateway.Namespace && p[1] == gateway.Name && p[4] == listener {
		listener = strings.Join(p[2:5], "/")
	}
	return gateway, listener
}

func text(f map[string]*structpb.Value, name string) string { return f[name].GetStringValue() }
