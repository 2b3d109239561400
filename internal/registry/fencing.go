// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Fencing is what a cluster that watches the hosts of a service says about them in its record. The controller
// of fences writes it; the one of VIPServices keeps it.
type Fencing struct {
	// Lost are the hosts that witnesses of the cluster have lost, by node ID.
	Lost []LostHost `json:"lost,omitempty"`

	// Fence is the host from which the cluster has withdrawn the approval. Nil if there is none.
	Fence *fence.Fence `json:"fence,omitempty"`
}

// A LostHost is a host that witnesses of a cluster have lost.
type LostHost struct {
	Node      string `json:"node"`
	Witnesses int    `json:"witnesses"`
}

// Votes returns the votes of a cluster's witnesses.
func (r Record) Votes() []fence.Vote {
	var out []fence.Vote
	if r.Fencing == nil {
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
		if f := m.Fencing; f != nil && f.Fence != nil && at.Before(f.Fence.Deadline) {
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

// SetFencing returns the service with a cluster's record that says the fencing. It returns false if the record
// says so already.
func SetFencing(s tailscale.Service, f Fencing) (tailscale.Service, bool, error) {
	r, ok, err := RecordOf(&s)
	if err != nil {
		return s, false, err
	}
	if !ok {
		return s, false, errors.Errorf("service %q has no record", s.Name)
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
