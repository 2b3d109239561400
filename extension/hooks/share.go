// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// A common cluster is the one that routes to a target share, and is called like it. Its
// settings are those of the oldest route that may share it: whichever younger routes come
// and go, and whatever they ask for, those that have it keep it. A route with a policy that
// is not for the whole Gateway comes after those without: policies come and go, and the
// snapshot may not have heard of one yet. Routes with other settings than the common ones
// share a cluster that is called by these.
type common struct {
	// chosen is the oldest candidate. Nil if there is none.
	chosen *candidate
	by     seniority

	// present is a cluster of that name in the message.
	present bool
}

// A candidate is what a target's common cluster would be like for a part.
type candidate struct {
	cluster *clusterv3.Cluster

	// print is what the cluster would be, without what does not matter.
	print string

	// variant is the name of the cluster with the settings that it has, once there is one.
	variant string
}

// Ranks of candidates. A mirror gives a cluster its settings only where nothing else does,
// for its own cluster has none of a policy's.
const (
	rankGateway = iota
	rankNarrow
	rankMirror
)

// A seniority orders candidates.
type seniority struct {
	rank    int
	created time.Time
	rule    ruleKey
}

// before reports whether the candidate comes before another one.
func (s seniority) before(o seniority) bool {
	return cmp.Or(cmp.Compare(s.rank, o.rank), s.created.Compare(o.created), compareKeys(s.rule, o.rule)) < 0
}

// offer a candidate.
func (c *common) offer(of *candidate, by seniority) {
	if !c.present && (c.chosen == nil || by.before(c.by)) {
		c.chosen, c.by = of, by
	}
}

// common cluster of a target, which the message may have.
func (t *translation) common(k ir.TargetKey) *common {
	of := t.commons[k]
	if of != nil {
		return of
	}
	of = &common{}
	t.commons[k] = of
	if c := t.clusters[k.ClusterName()]; c != nil {
		if now, err := newCandidate(c); err == nil {
			of.chosen, of.present = now, true
		}
	}
	return of
}

// share has all parts that may share offer what their cluster would be like, and gives each
// its cluster.
func (t *translation) share(ds []*decision) {
	for _, d := range ds {
		by := seniority{rank: rankGateway, created: d.use.route.Info.Created, rule: d.use.key}
		if slices.ContainsFunc(d.use.policies, func(n types.NamespacedName) bool { return !t.snapshot.HasGatewayPolicy(d.use.key.route, n) }) {
			by.rank = rankNarrow
		}
		for _, p := range d.parts {
			t.offer(d, p, by)
		}
		by.rank = rankMirror
		for _, p := range d.mirrors {
			t.offer(d, p, by)
		}
	}
	for _, d := range ds {
		for _, p := range d.parts {
			t.give(d, p)
		}
		for _, p := range d.mirrors {
			if t.common(p.key).chosen != nil {
				p.cluster = p.key.ClusterName()
			}
		}
		t.tellSettings(d)
	}
}

func (t *translation) offer(d *decision, p *part, by seniority) {
	if !p.mayShare {
		return
	}
	of := t.common(p.key)
	if p.template == nil || isVariant(p.template.GetName(), p.key) {
		return
	}
	if p.candidate = t.candidate(d, p); p.candidate != nil {
		of.offer(p.candidate, by)
	}
}

// give a part its cluster: the common one, one that it shares with those that have the same
// settings, or its own.
func (t *translation) give(d *decision, p *part) {
	p.cluster = p.own
	if !p.mayShare {
		return
	}
	of := t.common(p.key)
	switch {
	case p.template == nil && of.present, p.candidate != nil && p.candidate.print == of.chosen.print:
		p.cluster = p.key.ClusterName()
	case isVariant(p.template.GetName(), p.key):
		p.cluster = p.template.GetName()
	case p.candidate != nil:
		name, err := t.variant(d, p)
		if err != nil {
			return
		}
		p.cluster, p.shared = name, proto.CloneOf(p.candidate.cluster)
		p.shared.Name = name
	}
}

// SettingsSegment stands after a target's name in those of clusters with other settings
// than its common one.
const SettingsSegment = "/settings/"

// isVariant reports whether a name is that of a cluster of the target with settings of
// some of its routes.
func isVariant(name string, k ir.TargetKey) bool {
	rest, ok := strings.CutPrefix(name, k.ClusterName())
	return ok && strings.HasPrefix(rest, SettingsSegment)
}

// variant is the name of a cluster with the settings that a part's has, without those of
// the target, which change in place: TARGET/settings/HASH.
func (t *translation) variant(d *decision, p *part) (string, error) {
	c := p.candidate
	if c.variant != "" {
		return c.variant, nil
	}
	of, err := xds.Cluster(p.template, xds.ClusterOptions{
		Shape: &ir.Shape{}, Protocol: p.key.Protocol, CheckHost: p.key.Name, RouteHosts: d.use.hosts, Pooled: p.pooled, Shared: true,
	})
	if err != nil {
		return "", err
	}
	of.EdsClusterConfig = nil
	settings, err := newCandidate(of)
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	// Hashes never fail.
	_, _ = h.Write([]byte(settings.print + p.tuning.Name("") + fmt.Sprint(p.tuning.HTTP2)))
	c.variant = p.key.ClusterName() + SettingsSegment + fmt.Sprintf("%016x", h.Sum64())
	return c.variant, nil
}

// A making is what a shared cluster is made of.
type making struct {
	target ir.TargetKey

	// template is the bytes of Envoy Gateway's cluster without what a shared cluster
	// does not keep.
	template string

	// list is the name of its endpoint list.
	list string

	// http2 is what a policy asks of HTTP/2.
	http2 ir.HTTP2

	// pooled as in part.
	pooled bool
}

// makingOf a part's. False if hosts of its routes matter, too.
func makingOf(p *part) (making, bool) {
	c := p.template
	if len(c.GetHealthChecks()) > 0 {
		return making{}, false
	}
	// Cheaper than a clone without them, and nobody else reads the message now.
	name, alt, metadata, eds := c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig
	c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig = "", "", nil, nil
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig = name, alt, metadata, eds
	return making{target: p.key, template: string(b), list: p.tuning.Name(""), http2: p.tuning.HTTP2, pooled: p.pooled}, err == nil
}

// sharedCluster that would be made of a part's template.
func sharedCluster(src xds.Source, p *part, hosts map[string]bool) (*candidate, error) {
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
	return newCandidate(c)
}

func newCandidate(c *clusterv3.Cluster) (*candidate, error) {
	// Envoy looks at it for names only, and endpoints of ours have none. It differs
	// with the kind of addresses of the backends beside ours.
	family := c.DnsLookupFamily
	c.DnsLookupFamily = clusterv3.Cluster_AUTO
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	c.DnsLookupFamily = family
	if err != nil {
		return nil, errors.Wrapf(err, "cannot marshal cluster %q", c.GetName())
	}
	return &candidate{cluster: c, print: string(b)}, nil
}

// ownCluster that a part has for itself.
func ownCluster(src xds.Source, p *part) (*clusterv3.Cluster, error) {
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

// alike reports whether two clusters of one name do the same. What only tells of which rule
// they are, or looks at names, does not count.
func alike(a, b *clusterv3.Cluster) bool {
	alt, metadata, family := b.AltStatName, b.Metadata, b.DnsLookupFamily
	b.AltStatName, b.Metadata, b.DnsLookupFamily = a.AltStatName, a.Metadata, a.DnsLookupFamily
	same := proto.Equal(a, b)
	b.AltStatName, b.Metadata, b.DnsLookupFamily = alt, metadata, family
	return same
}

// candidate of a part, made once for all that are alike. Nil if Envoy would refuse
// it.
func (t *translation) candidate(d *decision, p *part) *candidate {
	v, cached := makingOf(p)
	if c, ok := t.makings[v]; cached && ok {
		return c
	}
	c, err := sharedCluster(t.source, p, d.use.hosts)
	if err != nil {
		c = nil
	}
	if cached {
		t.makings[v] = c
	}
	return c
}
