// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"cmp"
	"slices"
	"time"
)

const (
	// Lasts is how long a fence lasts at most. Control has noticed by then that the host is dead.
	Lasts = 15 * time.Minute

	// skew is how far the time of one cluster may be ahead of that of another.
	skew = 5 * time.Minute
)

// A Fence keeps one host of a service from serving.
type Fence struct {
	// Node is the node ID of the host.
	Node string `json:"node"`

	// Cluster is the one that withdrew the approval, and Reason says why.
	Cluster string `json:"cluster"`
	Reason  string `json:"reason,omitempty"`

	// Deadline is when the fence ends at the latest, by the clock of Tailscale's API.
	Deadline time.Time `json:"deadline"`
}

// Holds reports whether the fence is in effect. One that ends later than any fence may is not.
func (f Fence) Holds(at time.Time) bool {
	return at.Before(f.Deadline) && f.Deadline.Sub(at) <= Lasts+skew
}

// A Vote is what one witness says about one host.
type Vote struct {
	Host string

	// Witness is the node ID of the witness. Place is where it fails together with others: the cluster and,
	// if known, the Kubernetes node.
	Witness, Place string

	// Lost reports that the host answered before and does not answer any more. Otherwise it answers.
	Lost bool
}

// A Host is a host of a service.
type Host struct {
	Node string

	// Serves reports whether the host is approved, connected and serves all ports, as far as is known.
	Serves bool

	// Fenceable reports whether the host may be fenced: its cluster has fencing, and its pod is not being stopped.
	Fenceable bool

	// Local reports that the host is a machine of this cluster, whose pod is not being stopped.
	Local bool
}

// Facts are what is known about a service.
type Facts struct {
	Hosts []Host
	Votes []Vote

	// Fences are the current fences of all clusters.
	Fences []Fence

	// Cluster is this cluster.
	Cluster string

	// Time is by the clock of Tailscale's API.
	Time time.Time
}

// A Decision is what this cluster does about a service.
type Decision struct {
	// Fence is the node ID of a host to fence, and Votes are those of the witnesses that lost it. Empty if
	// there is none.
	Fence string
	Votes []Vote

	// Clear are this cluster's fences to end.
	Clear []Fence
}

// Plan returns what this cluster does. It fences a host that serves and that a majority of its witnesses has
// lost, of which two are in different places, if another host is left that serves and that no witness has
// lost, and if no host is fenced. It clears fences of this cluster that have expired, or whose host has answered
// each witness, and one of two fences that clusters made at the same time.
func Plan(f Facts) Decision {
	d := Decision{}
	fenced := false
	for _, fence := range f.Fences {
		switch {
		case fence.Cluster == f.Cluster && (!fence.Holds(f.Time) || answers(f, fence.Node) || superseded(f.Fences, fence, f.Time)):
			d.Clear = append(d.Clear, fence)
		case fence.Holds(f.Time):
			fenced = true
		}
	}
	if fenced || len(d.Clear) > 0 {
		return d
	}
	hosts := slices.Clone(f.Hosts)
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(a.Node, b.Node) })
	for _, h := range hosts {
		if !h.Serves || !h.Fenceable || !dead(f.Votes, h.Node) || !replaced(f, h.Node) {
			continue
		}
		d.Fence = h.Node
		d.Votes = slices.DeleteFunc(slices.Clone(f.Votes), func(v Vote) bool { return v.Host != h.Node || !v.Lost })
		return d
	}
	return d
}

// Suspected returns the node IDs of the hosts that a witness has lost.
func Suspected(votes []Vote) []string {
	var out []string
	for _, v := range votes {
		if v.Lost {
			out = append(out, v.Host)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// dead reports whether a majority of the witnesses of a host has lost it, of which two are in different
// places.
func dead(votes []Vote, host string) bool {
	lost, total := 0, 0
	places := map[string]bool{}
	for _, v := range votes {
		if v.Host != host {
			continue
		}
		total++
		if v.Lost {
			lost++
			places[v.Place] = true
		}
	}
	return 2*lost > total && len(places) >= 2
}

// replaced reports whether a host is left that serves, that no witness has lost, and of which this cluster knows
// that it lives: it is a machine of this cluster, or a witness reaches it.
func replaced(f Facts, host string) bool {
	return slices.ContainsFunc(f.Hosts, func(h Host) bool {
		if h.Node == host || !h.Serves || slices.ContainsFunc(f.Votes, func(v Vote) bool { return v.Host == h.Node && v.Lost }) {
			return false
		}
		return h.Local || slices.ContainsFunc(f.Votes, func(v Vote) bool { return v.Host == h.Node })
	})
}

// answers reports whether a host answers all its witnesses.
func answers(f Facts, host string) bool {
	seen := false
	for _, v := range f.Votes {
		if v.Host == host && v.Lost {
			return false
		}
		seen = seen || v.Host == host
	}
	return seen
}

// superseded reports whether another cluster has fenced another host of the service, and a fence gives way to
// that one.
func superseded(fences []Fence, fence Fence, at time.Time) bool {
	return slices.ContainsFunc(fences, func(o Fence) bool {
		return o.Cluster != fence.Cluster && o.Node != fence.Node && o.Holds(at) && o.Node < fence.Node
	})
}
