// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// A ballot finds the cluster that routes to one target share: the one that most
// rules would have. Rules whose cluster would be another keep their own, so that
// nothing which was set for them is lost.
type ballot struct {
	candidates map[string]*candidate

	// chosen after elect. Nil if there was no candidate.
	chosen *candidate

	// present is a shared cluster that is in the message already.
	present bool
}

type candidate struct {
	cluster *clusterv3.Cluster

	// print is what the cluster would be, without what does not matter.
	print string
	votes int
}

// ballots by target.
type ballots map[index.TargetKey]*ballot

func (bs ballots) of(k index.TargetKey) *ballot {
	b := bs[k]
	if b == nil {
		b = &ballot{candidates: map[string]*candidate{}}
		bs[k] = b
	}
	return b
}

// vote for the cluster that the part would share. A mirror's counts only where
// there is no other, for its cluster has none of a policy's settings.
func (b *ballot) vote(c *candidate, weight int) {
	known := b.candidates[c.print]
	if known == nil {
		known = c
		b.candidates[c.print] = c
	}
	known.votes += weight
}

// elect the candidate with most votes; of equals, the one whose bytes come first.
func (b *ballot) elect() {
	if b.chosen != nil {
		return
	}
	for _, c := range b.candidates {
		if b.chosen == nil || c.votes > b.chosen.votes ||
			c.votes == b.chosen.votes && c.print < b.chosen.print {
			b.chosen = c
		}
	}
}

// A variant is what a shared cluster is made of.
type variant struct {
	target index.TargetKey

	// template is the bytes of Envoy Gateway's cluster without what a shared cluster
	// does not keep.
	template string

	// list is the name of its endpoint list.
	list string

	// pooled as in part.
	pooled bool
}

// variantOf a part. False if hosts of its routes matter, too.
func variantOf(p *part) (variant, bool) {
	c := p.template
	if len(c.GetHealthChecks()) > 0 {
		return variant{}, false
	}
	// Cheaper than a clone without them, and nobody else reads the message now.
	name, alt, metadata, eds := c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig
	c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig = "", "", nil, nil
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	c.Name, c.AltStatName, c.Metadata, c.EdsClusterConfig = name, alt, metadata, eds
	return variant{target: p.key, template: string(b), list: p.tuning.Name(""), pooled: p.pooled}, err == nil
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

// alike tells whether two clusters of one name do the same. What only tells of which rule
// they are, or looks at names, does not count.
func alike(a, b *clusterv3.Cluster) bool {
	alt, metadata, family := b.AltStatName, b.Metadata, b.DnsLookupFamily
	b.AltStatName, b.Metadata, b.DnsLookupFamily = a.AltStatName, a.Metadata, a.DnsLookupFamily
	same := proto.Equal(a, b)
	b.AltStatName, b.Metadata, b.DnsLookupFamily = alt, metadata, family
	return same
}
