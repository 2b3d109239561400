// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/marks"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A collector finds the items of facts.
type collector struct {
	Facts

	devices map[string]*tailscale.Device

	// former are names that the cluster may have had, from all sources.
	former []types.NamespacedName
}

func newCollector(f Facts) *collector {
	c := &collector{Facts: f, devices: map[string]*tailscale.Device{}, former: slices.Clone(f.Former)}
	for n := range f.View.Devices {
		c.devices[f.View.Devices[n].NodeID] = &f.View.Devices[n]
	}
	for _, s := range f.Secrets {
		c.former = append(c.former, types.NamespacedName{Namespace: s.Namespace, Name: s.Machine})
	}
	return c
}

// attribute sets whose an item is from the cluster ID in its mark.
func (c *collector) attribute(i Item, cluster string) Item {
	i.Cluster, i.Verdict = cluster, VerdictOther
	switch config, sibling := c.Siblings[cluster]; {
	case cluster == c.Cluster:
		i.Verdict = VerdictOrphan
	case sibling:
		i.Reason = "It has the cluster ID of " + config + " in this cluster"
	default:
		i.Reason = "It has the ID of another cluster"
	}
	return i
}

// services returns the items among Tailscale Services.
func (c *collector) services() []Item {
	var out []Item
	for n := range c.View.Services {
		s := &c.View.Services[n]
		var i Item
		var ok bool
		switch {
		case s.Annotations[meta.AnnotationSharedService] != "":
			i, ok = c.record(s)
		case registry.Shared(s):
			i, ok = c.shared(s)
		default:
			i, ok = c.exclusive(s)
		}
		if ok {
			i.Name = s.Name
			if s.Annotations[meta.AnnotationDeletionPolicy] == meta.RetainPolicy {
				i.KeepReason = "its deletionPolicy is Retain; delete it by the admin console or the API"
			}
			i.Online = i.Online || len(c.Online[s.Name]) > 0
			out = append(out, i)
		}
	}
	return out
}

// exclusive returns the item of a service that belongs to one cluster alone.
func (c *collector) exclusive(s *tailscale.Service) (Item, bool) {
	owner := s.Annotations[meta.AnnotationOwner]
	object := ownerObject(owner)
	if object == "" {
		return Item{}, false
	}
	i := Item{Kind: KindService, Text: s.DisplayName, object: object, Owner: described(v1alpha1.VIPServiceKind, object), Reason: "There is no VIPService " + object}
	return c.unlessLiving(i, registry.ClusterOf(owner), c.Living.VIPServices[object])
}

// record returns the item of a cluster's service beside a shared one. A record with a wrong name or
// a wrong owner is nobody's: any client that writes services can write one.
func (c *collector) record(s *tailscale.Service) (Item, bool) {
	r, ok, err := registry.RecordOf(s)
	if err != nil || !ok || s.Annotations[meta.AnnotationOwner] != (registry.Self{Cluster: r.Cluster, Operator: r.Operator}).Owner() {
		return Item{}, false
	}
	i := Item{
		Kind: KindRecord, Shared: r.Service, object: r.Operator, LastSeen: at(r.Updated),
		Owner: described(v1alpha1.VIPServiceKind, r.Operator), Reason: "There is no VIPService " + r.Operator + "; the record makes this cluster a member of " + r.Service,
	}
	members, _ := c.View.Members(r.Service)
	for _, m := range members {
		// A record without machines counts as alive in the registry.
		if m.Cluster == r.Cluster && m.Alive && len(m.Nodes) > 0 {
			i.Online = c.anyOnline(m.Nodes)
		}
	}
	return c.unlessLiving(i, r.Cluster, c.Living.VIPServices[r.Operator])
}

// shared returns the item of a shared service that no cluster shares any more. Its last owner made
// it.
func (c *collector) shared(s *tailscale.Service) (Item, bool) {
	if members, _ := c.View.Members(s.Name); len(members) > 0 {
		return Item{}, false
	}
	owner := s.Annotations[meta.AnnotationOwnerOperator]
	object := ownerObject(owner)
	if object == "" {
		return Item{}, false
	}
	i := Item{Kind: KindShared, Text: s.DisplayName, object: object, Owner: described(v1alpha1.VIPServiceKind, object), Reason: "No cluster has a record for it"}
	if t, err := time.Parse(time.RFC3339, s.Annotations[meta.AnnotationLastUpdated]); err == nil {
		i.LastSeen = at(t)
	}
	return c.unlessLiving(i, registry.ClusterOf(owner), c.Living.VIPServices[object])
}

// unlessLiving returns the item, unless the cluster is this one and the owner lives.
func (c *collector) unlessLiving(i Item, cluster string, living bool) (Item, bool) {
	return c.attribute(i, cluster), cluster != c.Cluster || !living
}

func (c *collector) anyOnline(nodes []string) bool {
	return slices.ContainsFunc(nodes, func(id string) bool { return c.devices[id] != nil && c.devices[id].ConnectedToControl })
}

// policy returns the items among the owners of entries in the policy file.
func (c *collector) policy() []Item {
	var out []Item
	for owner := range c.Policy {
		object := ownerObject(owner)
		if object == "" || c.Living.Owners[owner] {
			continue
		}
		i := Item{
			Kind: KindPolicy, Name: owner, object: object, Owner: described(v1alpha1.PolicyFragmentKind, object),
			Text: plural(c.Policy[owner], "entry", "entries"), Reason: "There is no PolicyFragment " + object,
		}
		out = append(out, c.attribute(i, registry.ClusterOf(owner)))
	}
	return out
}

// proxies returns the items among Secrets of proxies, and the devices that their states prove to be
// this cluster's.
func (c *collector) proxies() []Item {
	var out []Item
	for _, s := range c.Secrets {
		machine := s.Namespace + "/" + s.Machine
		if c.Living.Machines[machine] {
			continue
		}
		i := Item{
			Kind: KindSecret, Verdict: VerdictOrphan, Name: s.Namespace + "/" + s.Name, Cluster: c.Cluster, Text: s.Type, object: machine,
			Owner: described(v1alpha1.MachineKind, machine), Reason: "There is no Machine " + machine, Created: at(s.Created), LastSeen: at(s.Deleted),
		}
		if d, ok := c.device(s); ok {
			out = append(out, d)
		} else if s.NodeID != "" && (c.Domain == "" || s.Domain != c.Domain) {
			i.KeepReason = "its device " + s.NodeID + " may be in a tailnet that was not asked"
		}
		out = append(out, i)
	}
	return out
}

// device returns the item of the device whose state a Secret has.
func (c *collector) device(s Secret) (Item, bool) {
	d := c.devices[s.NodeID]
	if d == nil || c.Living.IDs[d.NodeID] {
		return Item{}, false
	}
	machine := s.Namespace + "/" + s.Machine
	i := Item{
		Kind: KindDevice, Verdict: VerdictOrphan, Name: d.NodeID, Text: d.Name, Cluster: c.Cluster, object: machine,
		Owner: described(v1alpha1.MachineKind, machine), proof: s.NodeKey, Created: at(d.Created.Time), Online: d.ConnectedToControl,
		Reason: "Secret " + s.Namespace + "/" + s.Name + " holds its key, and there is no Machine " + machine,
	}
	if d.LastSeen != nil {
		i.LastSeen = at(d.LastSeen.Time)
	}
	switch {
	case s.NodeKey == "" || s.NodeKey != d.NodeKey:
		i.Reason = "Secret " + s.Namespace + "/" + s.Name + " names it, and there is no Machine " + machine
		i.KeepReason = "the Secret does not hold the device's key, and a pod may name any device; delete it in the admin console"
	case len(d.Tags) == 0:
		i.KeepReason = "it has no tags, as a proxy has"
	}
	return i, true
}

// routes returns the items among generated routes.
func (c *collector) routes() []Item {
	var out []Item
	for _, r := range c.Routes {
		if c.Living.Gateways[r.Gateway] {
			continue
		}
		out = append(out, Item{
			Kind: KindRoute, Verdict: VerdictOrphan, Name: r.Namespace + "/" + r.Name, Cluster: c.Cluster, object: r.Gateway,
			Owner: described("TailscaleGateway", r.Gateway), Reason: "There is no TailscaleGateway " + r.Gateway, Created: at(r.Created),
		})
	}
	return out
}

// A marking is one kind of object that keys and credentials are made for.
type marking struct {
	kind   string
	mark   func(cluster, namespace, name string) string
	living Names
}

// keys returns the items among auth keys.
func (c *collector) keys() []Item {
	return c.marked(c.AuthKeys, func(tailscale.Key) (Kind, []marking) {
		return KindAuthKey, []marking{
			{v1alpha1.MachineKind, marks.Machine, c.Living.Machines},
			{v1alpha1.AuthKeyKind, marks.AuthKey, c.Living.AuthKeys},
		}
	})
}

// credentials returns the items among OAuth clients and federated identities.
func (c *collector) credentials() []Item {
	return c.marked(c.Credentials, func(k tailscale.Key) (Kind, []marking) {
		if k.KeyType == tailscale.KeyTypeOAuthClient {
			return KindOAuthClient, []marking{{v1alpha1.OAuthClientKind, marks.Credential, c.Living.OAuthClients}}
		}
		return KindFederatedIdentity, []marking{{v1alpha1.FederatedIdentityKind, marks.Credential, c.Living.FederatedIdentities}}
	})
}

func (c *collector) marked(ks []tailscale.Key, classify func(tailscale.Key) (Kind, []marking)) []Item {
	var out []Item
	for _, k := range ks {
		mark := marks.Of(k.Description)
		if mark == "" || c.Living.IDs[k.ID] {
			continue
		}
		kind, ms := classify(k)
		if slices.ContainsFunc(ms, func(m marking) bool { return c.has(m, mark) }) {
			continue
		}
		i := Item{
			Kind: kind, Name: k.ID, proof: mark, Text: marks.Text(k.Description), Verdict: VerdictUnknown, Created: at(k.Created),
			Reason: "It has a mark, and no object of this cluster made it; another cluster may have one that did",
		}
		for _, m := range ms {
			if object := c.maker(m, mark, i.Text); object != "" {
				i.Verdict, i.Cluster, i.object, i.Owner = VerdictOrphan, c.Cluster, object, described(m.kind, object)
				i.Reason = "Its mark is that of " + i.Owner + ", which does not exist"
			}
		}
		if k.ID == c.InUse {
			i.KeepReason = "this command uses it"
		}
		out = append(out, i)
	}
	return out
}

// has reports whether a living object has a mark.
func (c *collector) has(m marking, mark string) bool {
	for object := range m.living {
		namespace, name, _ := strings.Cut(object, "/")
		if m.mark(c.Cluster, namespace, name) == mark {
			return true
		}
	}
	return false
}

// maker returns the former object of this cluster that has a mark, or "". Descriptions contain
// NAMESPACE-NAME, if it fits and users choose nothing else: each dash may be the separator, and the
// mark proves which one is.
func (c *collector) maker(m marking, mark, text string) string {
	candidates := slices.Clone(c.former)
	for n := range len(text) {
		if text[n] == '-' {
			candidates = append(candidates, types.NamespacedName{Namespace: text[:n], Name: text[n+1:]})
		}
	}
	for _, o := range candidates {
		if m.mark(c.Cluster, o.Namespace, o.Name) == mark {
			return o.String()
		}
	}
	return ""
}
