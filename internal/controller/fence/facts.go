// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// A situation is what the cluster knows about a service without asking Tailscale's API.
type situation struct {
	hosts []fence.Host

	// watches are the node IDs of the hosts that each machine is to watch, by the name of the Machine.
	watches map[string][]string

	// votes are those of the machines about the hosts that they are to watch, and watched these hosts.
	votes   []fence.Vote
	watched map[string]bool

	// leaving are the node IDs of the cluster's hosts whose pods are being stopped, sorted.
	leaving []string

	// unwatched are hosts with fewer than two witnesses, and invisible those that no machine of this cluster that
	// watches them has reached. Both are names in the tailnet, sorted.
	unwatched, invisible []string

	// tags are those of the hosts and of the machines that watch them.
	tags []string
}

// situationOf returns the situation of a service. machines are those of its namespace and tailnet.
func situationOf(v *v1alpha1.VIPService, machines []v1alpha1.Machine, cluster string) situation {
	out := situation{watches: map[string][]string{}, watched: map[string]bool{}}
	candidates, byNode := candidatesOf(machines, cluster)
	clusters := clustersOf(v, candidates, cluster)
	fenced := v.Status.AtProvider.Fence
	for _, h := range v.Status.AtProvider.Hosts {
		m := byNode[h.NodeID]
		host := fence.Host{Node: h.NodeID, Serves: h.Serves(), Local: m != nil}
		if m != nil && stopping(m) {
			host.Serves, host.Local = false, false
			out.leaving = append(out.leaving, h.NodeID)
		}
		// Others may have their reasons for a host that does not answer.
		host.Fenceable = host.Local || slices.ContainsFunc(clusters, func(c fence.Cluster) bool { return c.ID != cluster && slices.Contains(c.Nodes, h.NodeID) })
		out.hosts = append(out.hosts, host)
		if !host.Fenceable || !host.Serves && !h.Fenced && (fenced == nil || fenced.NodeID != h.NodeID) {
			continue
		}
		out.watched[h.NodeID] = true
		out.watch(h, m, byNode, candidates, clusters, cluster)
	}
	slices.Sort(out.leaving)
	slices.Sort(out.unwatched)
	slices.Sort(out.invisible)
	out.tags = slices.Compact(tailscale.Sorted(out.tags))
	return out
}

// watch adds the machines of this cluster that watch a host, and their votes. m is the host's machine, or nil.
func (s *situation) watch(h v1alpha1.ServiceHost, m *v1alpha1.Machine, byNode map[string]*v1alpha1.Machine, candidates []fence.Machine, clusters []fence.Cluster, cluster string) {
	place, total := "", 0
	if m != nil {
		place = placeOf(m, cluster)
		s.tags = append(s.tags, m.Status.AtProvider.Tags...)
	}
	for _, c := range clusters {
		if c.ID != cluster {
			total += fence.Share(h.NodeID, c.ID, clusters)
		}
	}
	witnesses, reached := fence.Witnesses(h.NodeID, place, candidates, fence.Share(h.NodeID, cluster, clusters)), 0
	for _, w := range witnesses {
		s.watches[w.Name] = append(s.watches[w.Name], h.NodeID)
		witness := byNode[w.NodeID]
		s.tags = append(s.tags, witness.Status.AtProvider.Tags...)
		switch state := stateOf(witness, h.NodeID); state {
		case v1alpha1.WatchStateAlive, v1alpha1.WatchStateLost:
			reached++
			s.votes = append(s.votes, fence.Vote{Host: h.NodeID, Witness: w.NodeID, Place: w.Place, Lost: state == v1alpha1.WatchStateLost})
		case v1alpha1.WatchStateReturning:
			reached++
		}
	}
	switch {
	case total+len(witnesses) < 2:
		s.unwatched = append(s.unwatched, nameOf(h))
	case len(witnesses) > 0 && reached == 0:
		s.invisible = append(s.invisible, nameOf(h))
	}
}

// stopping reports whether the pod of a machine is being stopped.
func stopping(m *v1alpha1.Machine) bool {
	return m.GetDeletionTimestamp() != nil || m.Status.Agent != nil && m.Status.Agent.StoppingSince != nil
}

// candidatesOf returns the machines that can be witnesses, and all machines by node ID.
func candidatesOf(machines []v1alpha1.Machine, cluster string) ([]fence.Machine, map[string]*v1alpha1.Machine) {
	var out []fence.Machine
	byNode := make(map[string]*v1alpha1.Machine, len(machines))
	for i := range machines {
		m := &machines[i]
		id := meta.NodeIDOf(m)
		if id == "" || m.Status.Agent == nil {
			continue
		}
		byNode[id] = m
		// The last report of a machine that went away says nothing.
		if online := m.Status.AtProvider.Online; !stopping(m) && (online == nil || *online) {
			out = append(out, fence.Machine{Name: m.GetName(), NodeID: id, Place: placeOf(m, cluster)})
		}
	}
	return out, byNode
}

// clustersOf returns the clusters that watch the hosts of a service. This cluster's machines are all candidates, if
// no other cluster depends on how many they are.
func clustersOf(v *v1alpha1.VIPService, candidates []fence.Machine, cluster string) []fence.Cluster {
	var out []fence.Cluster
	self := fence.Cluster{ID: cluster}
	for _, c := range v.Status.AtProvider.Consumers {
		switch {
		case c.ClusterID == cluster:
			self.Nodes = c.NodeIDs
		case c.Fencing && c.Online:
			out = append(out, fence.Cluster{ID: c.ClusterID, Nodes: c.NodeIDs})
		}
	}
	if len(out) == 0 {
		for _, m := range candidates {
			self.Nodes = append(self.Nodes, m.NodeID)
		}
		slices.Sort(self.Nodes)
		self.Nodes = slices.Compact(self.Nodes)
	}
	return append(out, self)
}

// placeOf returns where a machine fails together with others. It is empty if the node is not known.
func placeOf(m *v1alpha1.Machine, cluster string) string {
	if m.Status.Agent == nil || m.Status.Agent.NodeName == "" {
		return ""
	}
	return cluster + "/" + m.Status.Agent.NodeName
}

// stateOf returns what a machine reports about a host, or "".
func stateOf(m *v1alpha1.Machine, host string) v1alpha1.WatchState {
	for _, w := range m.Status.Agent.Watches {
		if w.NodeID == host {
			return w.State
		}
	}
	return ""
}

// nameOf returns the name of a host for messages.
func nameOf(h v1alpha1.ServiceHost) string {
	if h.Name != "" {
		return h.Name
	}
	return h.NodeID
}

// maxNamed is the maximum number of hosts in a message.
const maxNamed = 3

func named(hosts []string) string {
	out := strings.Join(hosts[:min(len(hosts), maxNamed)], ", ")
	if n := len(hosts) - maxNamed; n > 0 {
		out += fmt.Sprintf(" and %d more", n)
	}
	return out
}

// condition returns the condition FencingReady of a service that is not fenced.
func (s situation) condition() xpv2.Condition {
	switch lost := fence.Suspected(s.votes); {
	case len(s.unwatched) > 0:
		return ready(corev1.ConditionFalse, meta.ReasonNotEnoughWitnesses, fmt.Sprintf(
			"No two machines can watch %s: run proxies on three Kubernetes nodes, or share the service with other clusters that have fencing", named(s.unwatched)))
	case len(s.invisible) > 0:
		return ready(corev1.ConditionFalse, meta.ReasonHostsNotVisible, fmt.Sprintf(
			"Machines that watch %s have no answer yet; if that stays, let them see each other by the policy file: \"grants\": [{\"src\": [%[2]s], \"dst\": [%[2]s], \"ip\": [\"icmp:*\"]}]", named(s.invisible), text.QuotedList(s.tags)))
	case len(lost) > 0:
		return ready(corev1.ConditionTrue, meta.ReasonHostLost, fmt.Sprintf("Machines have lost %s, but not a majority of those that watch it, or no other host is known to serve", named(lost)))
	}
	return ready(corev1.ConditionTrue, meta.ReasonHostsWatched, "")
}

// ready returns the condition FencingReady.
func ready(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return xpv2.Condition{Type: meta.TypeFencingReady, Status: status, LastTransitionTime: metav1.Now(), Reason: reason, Message: message}
}

// machinesOf returns the machines that are in the tailnet of a service.
func machinesOf(v *v1alpha1.VIPService, all []v1alpha1.Machine) []v1alpha1.Machine {
	return slices.DeleteFunc(slices.Clone(all), func(m v1alpha1.Machine) bool {
		return !ptr.Equal(m.Spec.ProviderConfigReference, v.Spec.ProviderConfigReference)
	})
}

// lostHosts returns the hosts that votes of this cluster say are lost, for its record.
func lostHosts(votes []fence.Vote) map[string]int {
	out := map[string]int{}
	for _, v := range votes {
		if v.Lost {
			out[v.Host]++
		}
	}
	return out
}

// placesOf returns the places of votes, for messages.
func placesOf(votes []fence.Vote) string {
	places := map[string]bool{}
	for _, v := range votes {
		places[v.Place] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(places)), ", ")
}
