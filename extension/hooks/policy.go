// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// policyPrefix is what the names of policies' routes and clusters begin with.
const policyPrefix = ir.OursPrefix + "policy/"

// enforce policies: each rule that is attached to a route stands before it, once for
// each of its matches. What Envoy Gateway itself attached to the route, such as
// authentication, is attached to those as well, or what it attached to the rule that they
// name.
func (t *translation) enforce(r Resources) Resources {
	if !t.snapshot.HasPolicies() {
		return r
	}
	e := &enforcer{
		translation: t, message: r.Clusters, clusters: map[string]*clusterv3.Cluster{}, bases: map[string]*clusterv3.Cluster{},
		asks: map[string]bool{}, limits: map[string]bool{},
	}
	for _, c := range r.Routes {
		e.config, e.rules = c, nil
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

type enforcer struct {
	*translation

	// config is the route configuration at hand, and rules are the routes of those that
	// have a name, once somebody asks.
	config *routev3.RouteConfiguration
	rules  map[ruleName]*routev3.Route

	// message is all clusters but those of rules, and byName the same by name, once
	// somebody asks.
	message []*clusterv3.Cluster
	byName  map[string]*clusterv3.Cluster

	// bases are the clusters of targets, by name, and clusters what is made of them and of
	// others for rules.
	bases, clusters map[string]*clusterv3.Cluster

	// asks are the route configurations that ask who the client is, and limits those
	// that limit rates.
	asks, limits map[string]bool
}

func (e *enforcer) virtualHost(v *routev3.VirtualHost) {
	gateway, listener := listenerOf(v)
	var out []*routev3.Route
	for i, r := range v.GetRoutes() {
		if strings.HasPrefix(r.GetName(), policyPrefix) {
			// From before: it is made again.
			if out == nil {
				out = slices.Clone(v.GetRoutes()[:i])
			}
			continue
		}
		before := e.before(gateway, listener, r)
		if len(before) > 0 && out == nil {
			out = slices.Clone(v.GetRoutes()[:i])
		}
		if out != nil {
			out = append(append(out, before...), r)
		}
	}
	if out != nil {
		v.Routes = out
	}
}

// before a route stand those of the policies that are attached to it.
func (e *enforcer) before(gateway types.NamespacedName, listener string, r *routev3.Route) []*routev3.Route {
	k, _, ok := parseRule(r.GetName())
	if !ok || !k.http() {
		return nil
	}
	_, section := resourceOf(r.GetMetadata())
	config := e.config.GetName()
	var out []*routev3.Route
	for _, rule := range e.snapshot.PolicyRules(k.route, section, gateway, listener) {
		to, as := e.shares(k.route.Kind, rule), e.named(gateway, listener, rule.Named)
		for i := range max(len(rule.Matches), 1) {
			var m *ir.PolicyMatch
			if i < len(rule.Matches) {
				m = &rule.Matches[i]
			}
			made, err := xds.Enforce(r, rule, m, to, as)
			if rule.Named != nil && (err != nil || made.ValidateAll() != nil) {
				// Nothing else handles such requests.
				made, err = xds.Enforce(r, rule, m, to, nil)
			}
			if err == nil && made != nil && rule.Certificate != nil {
				e.present(made, rule.Certificate)
			}
			if err != nil || made == nil || made.ValidateAll() != nil {
				// The index has left out what Envoy refuses: this is Envoy Gateway's.
				continue
			}
			made.Name = policyPrefix + strings.Join([]string{rule.Policy.Namespace, rule.Policy.Name, rule.Name, strconv.Itoa(i), r.GetName()}, "/")
			out = append(out, made)
			e.asks[config] = e.asks[config] || m != nil && m.Clients != nil
			e.limits[config] = e.limits[config] || rule.RateLimit != nil
			e.summary.Enforced++
		}
		if len(rule.Matches) == 0 {
			// Nothing is left for those after it.
			break
		}
	}
	return out
}

// shares of a rule's backends, whose clusters are made.
func (e *enforcer) shares(kind ir.RouteKind, rule *ir.PolicyRule) []xds.Share {
	var out []xds.Share
	for _, b := range rule.Backends {
		c := e.base(b.Target(kind))
		if c != nil && rule.Certificate == nil {
			e.clusters[c.GetName()] = c
		}
		if c == nil {
			out = append(out, xds.Share{Cluster: invalidCluster, Weight: b.Weight, Missing: true})
			continue
		}
		i := slices.IndexFunc(out, func(s xds.Share) bool { return s.Cluster == c.GetName() })
		if i >= 0 {
			out[i].Weight = clamp(uint64(out[i].Weight) + uint64(b.Weight))
			continue
		}
		out = append(out, xds.Share{Cluster: c.GetName(), Weight: b.Weight})
	}
	return out
}

// base is the cluster that all policies share which send to a target. Nil if it does not
// exist.
func (e *enforcer) base(k ir.TargetKey) *clusterv3.Cluster {
	name := policyPrefix + strings.TrimPrefix(k.ClusterName(), ir.OursPrefix)
	if c, ok := e.bases[name]; ok {
		return c
	}
	target := e.snapshot.Target(k)
	if target == nil || target.Missing {
		return nil
	}
	c, err := xds.Cluster(nil, xds.ClusterOptions{
		Name: name, List: k.ClusterName(), Source: e.source, Shape: &target.Shape,
		Protocol: k.Protocol, CheckHost: k.Name, Shared: true,
	})
	if err != nil || c.ValidateAll() != nil {
		return nil
	}
	e.bases[name] = c
	return c
}

// list of clusters, with those that rules send to at the end, by name.
func (e *enforcer) list(in []*clusterv3.Cluster) []*clusterv3.Cluster {
	out := slices.DeleteFunc(slices.Clone(in), func(c *clusterv3.Cluster) bool { return strings.HasPrefix(c.GetName(), policyPrefix) })
	first := len(out)
	for _, c := range e.clusters {
		out = append(out, c)
	}
	slices.SortFunc(out[first:], func(a, b *clusterv3.Cluster) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// listener whose routes ask who the client is notes that, for each connection.
func (e *enforcer) listener(l *listenerv3.Listener) {
	for _, c := range l.GetFilterChains() {
		e.chain(c)
	}
	if c := l.GetDefaultFilterChain(); c != nil {
		e.chain(c)
	}
}

func (e *enforcer) chain(c *listenerv3.FilterChain) {
	if len(e.asks)+len(e.limits) == 0 {
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
	if e.limits[config] {
		limitRates(c.GetFilters()[i], m)
	}
	if e.asks[config] && !slices.ContainsFunc(c.GetFilters(), func(f *listenerv3.Filter) bool { return f.GetName() == xds.ClientFilter }) {
		if f, err := xds.NoteClient(); err == nil {
			c.Filters = slices.Insert(c.Filters, i, f)
		}
	}
}

// limitRates by a filter before the last, which sends requests on.
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
	was := f.GetTypedConfig().GetValue()
	if repack(f.GetTypedConfig(), m) != nil {
		f.GetTypedConfig().Value = was
	}
}

// resourceOf Kubernetes that Envoy Gateway made something of, and its section
// (buildXdsMetadata in its internal/xds/translator/metadata.go).
func resourceOf(m *corev3.Metadata) (types.NamespacedName, string) {
	for _, v := range m.GetFilterMetadata()["envoy-gateway"].GetFields()["resources"].GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		return types.NamespacedName{Namespace: text(f, "namespace"), Name: text(f, "name")}, text(f, "sectionName")
	}
	return types.NamespacedName{}, ""
}

// policiesOf Envoy Gateway that it has applied to what it made (buildpolicyMetadata there).
func policiesOf(m *corev3.Metadata) []types.NamespacedName {
	var out []types.NamespacedName
	for _, v := range m.GetFilterMetadata()["envoy-gateway"].GetFields()["policies"].GetListValue().GetValues() {
		f := v.GetStructValue().GetFields()
		out = append(out, types.NamespacedName{Namespace: text(f, "namespace"), Name: text(f, "name")})
	}
	return out
}

// listenerOf a virtual host, and its Gateway. The listener of a ListenerSet is called
// NAMESPACE/NAME/LISTENER, so that it is not taken for one that the Gateway calls the same:
// metadata name the Gateway and the listener alone, and only the virtual host's name has the
// ListenerSet (irListenerName in Envoy Gateway's internal/gatewayapi/helpers.go). With its
// XDSNameSchemeV2 nothing has it.
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
