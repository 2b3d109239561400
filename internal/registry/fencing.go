// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Fencing is what a cluster that watches the hosts of a service says about them in its record. The controller
// of fences writes it; the one of VIPServices keeps it.
type Fencing struct {
	// Lost are the hosts that witnesses of the cluster have lost, by node ID, at Time.
	Lost []LostHost `json:"lost,omitempty"`

	// Time is by the clock of Tailscale's API. Nil unless a host is lost.
	Time *time.Time `json:"time,omitempty"`

	// Leaving are the node IDs of the cluster's machines whose pods are being stopped: they do not answer, and are
	// not to be fenced.
	Leaving []string `json:"leaving,omitempty"`

	// Fence is the host from which the cluster has withdrawn the approval. Nil if there is none.
	Fence *fence.Fence `json:"fence,omitempty"`
}

const (
	// votesLast is how long the votes of a record count: the cluster that wrote them may be cut off since. It writes
	// them again after votesRenew while they are true. The time of a caller is that of a list, which may be older
	// than the record.
	votesLast  = 90 * time.Second
	votesRenew = 30 * time.Second

	// maxLost limits the hosts in a record.
	maxLost = 16
)

// A LostHost is a host that witnesses of a cluster have lost.
type LostHost struct {
	Node      string `json:"node"`
	Witnesses int    `json:"witnesses"`
}

// Votes returns the votes of a cluster's witnesses at a time.
func (r Record) Votes(at time.Time) []fence.Vote {
	var out []fence.Vote
	if r.Fencing == nil || r.Fencing.Time == nil || at.Sub(*r.Fencing.Time).Abs() > votesLast {
		return nil
	}
	for _, l := range r.Fencing.Lost {
		// A cluster is one place, whatever it says.
		for range max(0, min(l.Witnesses, fence.MaxWitnesses)) {
			out = append(out, fence.Vote{Host: l.Node, Witness: r.Cluster, Place: r.Cluster, Lost: true})
		}
	}
	return out
}

// Fenced returns the node IDs of the hosts that clusters have fenced, by the clock of Tailscale's API.
func Fenced(members []Member, at time.Time) map[string]bool {
	out := map[string]bool{}
	for _, m := range members {
		if f := m.Fencing; f != nil && f.Fence != nil && f.Fence.Holds(at) {
			out[f.Fence.Node] = true
		}
	}
	return out
}

// fencingOf returns the fencing of a record's text, or none.
func fencingOf(text string) *Fencing {
	r := Record{}
	if json.Unmarshal([]byte(text), &r) == nil && r.Fencing != nil {
		return r.Fencing
	}
	return &Fencing{}
}

// SetFencing returns the service with a cluster's record that says the fencing at a time. It returns false if the
// record says so already.
func SetFencing(s tailscale.Service, f Fencing, at time.Time) (tailscale.Service, bool, error) {
	r, ok, err := RecordOf(&s)
	if err != nil {
		return s, false, err
	}
	if !ok {
		return s, false, errors.Errorf("service %q has no record", s.Name)
	}
	f.Lost, f.Leaving = f.Lost[:min(len(f.Lost), maxLost)], f.Leaving[:min(len(f.Leaving), maxLost)]
	if len(f.Lost) > 0 {
		at = at.UTC()
		f.Time = &at
		if old := r.Fencing; old != nil && old.Time != nil && slices.Equal(old.Lost, f.Lost) && at.Sub(*old.Time).Abs() < votesRenew {
			f.Time = old.Time
		}
	}
	r.Fencing = &f
	b, err := json.Marshal(r)
	if err != nil {
		return s, false, errors.Wrap(err, "cannot encode the record")
	}
	if string(b) == s.Annotations[meta.AnnotationRecord] {
		return s, false, nil
	}
	out := s
	out.Annotations = maps.Clone(s.Annotations)
	out.Annotations[meta.AnnotationRecord] = string(b)
	return out, true, nil
}
