// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// A targetCluster is the common cluster of a target, which routes share and which has the target's
// name. Its settings are those of the oldest route that may share it: routes that use it keep it,
// whatever younger routes come and go. A route with a policy that is not for the whole Gateway
// ranks after routes without: policies come and go, and the snapshot may lag behind them. Routes
// with other settings than the common ones share a cluster named after its settings.
type targetCluster struct {
	// chosen is the best candidate. Nil if there is none.
	chosen     *candidate
	precedence precedence

	// present reports that the message has a cluster of that name.
	present bool
}

// A candidate is a possible common cluster for a target, from one backend of a rule.
type candidate struct {
	cluster *clusterv3.Cluster

	// settings is the cluster's fingerprint, once computed.
	settings string

	// variant is the name of the cluster with these settings, once computed.
	variant string
}

// alike reports whether the clusters of two candidates behave the same. Each fingerprint is computed once, because a target may have
// thousands of candidates.
func (c *candidate) alike(o *candidate) bool {
	if c == o {
		return true
	}
	for _, cand := range []*candidate{c, o} {
		if cand.settings != "" {
			continue
		}
		var err error
		if cand.settings, err = fingerprint(cand.cluster); err != nil {
			return false
		}
	}
	return c.settings == o.settings
}

// Ranks of candidates. A mirror provides the settings only if no other route does, because the
// cluster of a mirror has no policy's settings.
const (
	rankGateway = iota
	rankNarrow
	rankMirror
)

// A precedence orders candidates.
type precedence struct {
	rank    int
	created time.Time
	rule    ruleKey
}

// before reports whether this candidate takes precedence over another.
func (s precedence) before(o precedence) bool {
	return cmp.Or(cmp.Compare(s.rank, o.rank), s.created.Compare(o.created), compareKeys(s.rule, o.rule)) < 0
}

// offer selects the candidate if it takes precedence over the chosen one.
func (c *targetCluster) offer(cand *candidate, prec precedence) {
	if !c.present && (c.chosen == nil || prec.before(c.precedence)) {
		c.chosen, c.precedence = cand, prec
	}
}

// targetCluster returns the common cluster of a target, which may be in the message.
func (n *namer) targetCluster(k ir.TargetKey) *targetCluster {
	common := n.targetClusters[k]
	if common != nil {
		return common
	}
	common = &targetCluster{}
	n.targetClusters[k] = common
	if c := n.clusters[k.ClusterName()]; c != nil {
		common.chosen, common.present = &candidate{cluster: c}, true
	}
	return common
}

// SettingsSegment follows the target's name in the name of a cluster with other settings than the
// common ones.
const SettingsSegment = "/settings/"

// isVariant reports whether a name is that of a cluster of the target with settings of some of its
// routes.
func isVariant(name string, k ir.TargetKey) bool {
	rest, ok := strings.CutPrefix(name, k.ClusterName())
	return ok && strings.HasPrefix(rest, SettingsSegment)
}

// variant returns the name of a cluster with the backend's settings, without those of the target,
// which change in place: TARGET/settings/HASH.
func (n *namer) variant(d *choice, p *backendPlan) (string, error) {
	c := p.candidate
	if c.variant != "" {
		return c.variant, nil
	}
	cluster, err := xds.Cluster(p.template, xds.ClusterOptions{
		Shape: &ir.Shape{}, Protocol: p.key.Protocol, CheckHost: p.key.Name, RouteHosts: d.use.hosts, Pooled: p.pooled, Shared: true,
	})
	if err != nil {
		return "", err
	}
	cluster.EdsClusterConfig = nil
	settings, err := fingerprint(cluster)
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	// Hashes never fail.
	_, _ = h.Write([]byte(settings + p.tuning.Name("") + fmt.Sprint(p.tuning.HTTP2)))
	c.variant = p.key.ClusterName() + SettingsSegment + fmt.Sprintf("%016x", h.Sum64())
	return c.variant, nil
}

// A candidateKey holds the inputs of a shared cluster.
type candidateKey struct {
	target ir.TargetKey

	// template is the bytes of Envoy Gateway's cluster, without the fields that a shared cluster
	// does not keep.
	template string

	// list is the name of its endpoint list.
	list string

	// http2 is a policy's HTTP/2 settings.
	http2 ir.HTTP2

	// pooled as in backendChoice.
	pooled bool
}

// candidateKeyOf returns the key for a choice. False if the cluster also depends on the hosts of its
// routes.
func candidateKeyOf(p *backendChoice) (candidateKey, bool) {
	template, ok := settingsBytes(p.template)
	return candidateKey{target: p.key, template: template, list: p.tuning.Name(""), http2: p.tuning.HTTP2, pooled: p.pooled}, ok
}

// settingsBytes returns the bytes of a cluster of Envoy Gateway without what names its route. False if
// what is made of it also depends on the hosts of its routes.
func settingsBytes(c *clusterv3.Cluster) (string, bool) {
	if len(c.GetHealthChecks()) > 0 {
		return "", false
	}
	// This is cheaper than a clone without them, and no other goroutine reads the message now.
	name, alt, metadata, eds := c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig
	c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig = "", "", nil, nil
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig = name, alt, metadata, eds
	return string(b), err == nil
}

// sharedCluster builds the shared cluster from a choice's template.
func sharedCluster(src xds.Source, p *backendChoice, hosts map[string]bool) (*candidate, error) {
	name := p.key.ClusterName()
	c, err := xds.Cluster(p.template, xds.ClusterOptions{
		Name:       name,
		List:       p.tuning.Name(name),
		Source:     src,
		Shape:      &p.target.Shape,
		Protocol:   p.key.Protocol,
		CheckHost:  p.key.Name,
		RouteHosts: hosts,
		HTTP2:      p.tuning.HTTP2,
		Pooled:     p.pooled,
		Shared:     true,
	})
	if err != nil {
		return nil, err
	}
	if err := c.ValidateAll(); err != nil {
		return nil, errors.Wrapf(err, "cannot make cluster %q", name)
	}
	return &candidate{cluster: c}, nil
}

// fingerprint identifies a cluster's settings, without fields that do not matter.
func fingerprint(c *clusterv3.Cluster) (string, error) {
	// Envoy uses the family for host names only, and the extension's endpoints have none. It varies
	// with the address families of the siblings.
	family := c.DnsLookupFamily
	c.DnsLookupFamily = clusterv3.Cluster_AUTO
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	c.DnsLookupFamily = family
	return string(b), errors.Wrapf(err, "cannot marshal cluster %q", c.GetName())
}

// ownCluster builds a cluster that a rule does not share.
func ownCluster(src xds.Source, p *backendChoice) (*clusterv3.Cluster, error) {
	o := xds.ClusterOptions{
		Name:      p.own,
		List:      p.tuning.Name(p.list),
		Source:    src,
		Protocol:  p.key.Protocol,
		CheckHost: p.key.Name,
		HTTP2:     p.tuning.HTTP2,
		Pooled:    p.pooled,
	}
	if p.target != nil {
		o.Shape = &p.target.Shape
	}
	c, err := xds.Cluster(p.template, o)
	if err != nil {
		return nil, err
	}
	return c, errors.Wrapf(c.ValidateAll(), "cannot make cluster %q", p.own)
}

// alike reports whether two clusters behave the same. Fields that only identify the rule, or apply
// to host names only, do not count.
func alike(a, b *clusterv3.Cluster) bool {
	alt, metadata, family := b.AltStatName, b.Metadata, b.DnsLookupFamily
	b.AltStatName, b.Metadata, b.DnsLookupFamily = a.AltStatName, a.Metadata, a.DnsLookupFamily
	same := proto.Equal(a, b)
	b.AltStatName, b.Metadata, b.DnsLookupFamily = alt, metadata, family
	return same
}

// candidate returns the candidate of a choice, cached for choices with the same inputs if the target has several. Nil if
// Envoy would refuse the cluster.
func (n *namer) candidate(d *choice, p *backendChoice) *candidate {
	v, cached := candidateKey{}, false
	if n.uses[p.key] > 1 {
		v, cached = candidateKeyOf(p)
	}
	if c, ok := n.candidates[v]; cached && ok {
		return c
	}
	c, err := sharedCluster(n.source, p, d.use.hosts)
	switch {
	case err != nil:
		c = nil
	case p.target != nil:
		n.trust(&p.target.Shape)
	}
	if cached {
		n.candidates[v] = c
	}
	return c
}
