// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
)

// MaxWitnesses is the number of witnesses of one host, of all clusters together.
const MaxWitnesses = 3

// A Cluster is a cluster that shares a service, with the node IDs of its machines.
type Cluster struct {
	ID    string
	Nodes []string
}

// Share returns how many witnesses of a host a cluster provides. All clusters calculate the same from the
// records of the service: in turns, in an order that differs from host to host, until there are
// MaxWitnesses. The cluster of the host is the last one, because it may fail with the host.
func Share(host, cluster string, clusters []Cluster) int {
	available := map[string]int{}
	var ids []string
	home := ""
	for _, c := range clusters {
		n := 0
		if slices.Contains(c.Nodes, host) {
			home = c.ID
		}
		for _, node := range c.Nodes {
			if node != host {
				n++
			}
		}
		if n > 0 && available[c.ID] == 0 {
			ids = append(ids, c.ID)
			available[c.ID] = n
		}
	}
	rank(host, ids)
	if i := slices.Index(ids, home); i >= 0 {
		ids = append(slices.Delete(ids, i, i+1), home)
	}
	shares := map[string]int{}
	for open, progress := MaxWitnesses, true; progress; {
		progress = false
		for _, id := range ids {
			if open > 0 && shares[id] < available[id] {
				shares[id]++
				open--
				progress = true
			}
		}
	}
	return shares[cluster]
}

// A Machine is a machine of this cluster that can be a witness.
type Machine struct {
	// Name of the Machine, and NodeID of its device.
	Name, NodeID string

	// Place is the Kubernetes node of its pod. Empty if it is not known.
	Place string
}

// Witnesses returns the machines of this cluster that watch a host, at most n. Machines of one Kubernetes
// node fail together, so each has another one than the others and the host. place is that of the host, or
// empty for a host of another cluster.
func Witnesses(host, place string, machines []Machine, n int) []Machine {
	names := make([]string, 0, len(machines))
	byName := make(map[string]Machine, len(machines))
	for _, m := range machines {
		if m.NodeID != host && m.NodeID != "" && m.Place != "" && m.Place != place {
			names = append(names, m.Name)
			byName[m.Name] = m
		}
	}
	rank(host, names)
	var out []Machine
	for _, name := range names {
		m := byName[name]
		if len(out) < n && !slices.ContainsFunc(out, func(o Machine) bool { return o.Place == m.Place }) {
			out = append(out, m)
		}
	}
	return out
}

// rank sorts names in an order that differs from host to host (rendezvous hashing), so that a change of one
// machine moves few watches.
func rank(host string, names []string) {
	sum := func(name string) []byte {
		s := sha256.Sum256([]byte(host + "/" + name))
		return s[:]
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(bytes.Compare(sum(a), sum(b)), cmp.Compare(a, b)) })
}
