// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"maps"
	"time"
)

// An Address is where an endpoint listens.
type Address struct {
	Host string
	Port int32
}

// An Origin is where endpoints of a target come from.
type Origin struct {
	// Source is the name of the backend, of the endpoint of a TailscaleEndpoints, or of the
	// ServiceAttachment.
	Source string

	// Remote reports that the endpoint leads to another cluster, and Cluster is the ID of
	// that cluster. Cluster is empty for this cluster, and if it is not known.
	Remote  bool
	Cluster string

	// Offline reports that the tailnet reports the device as offline.
	Offline bool
}

// A Candidate is an endpoint of a target before its health decides its place.
type Candidate struct {
	// Candidates of one source share it.
	*Origin

	Zone     string
	Address  Address
	Hostname string
	Weight   uint32
}

// Delays before traffic moves between the backends of a target.
type Delays struct {
	// Failover is how long local backends must fail before other clusters are used. Zero
	// means at once.
	Failover time.Duration

	// Failback is how long local backends must be healthy before they replace other
	// clusters. Zero means at once.
	Failback time.Duration

	// Primary is the source that others are a fallback for, and PrimaryFailback how long it
	// must be healthy before it is used again. Primary is empty if no backend is the
	// primary.
	Primary         string
	PrimaryFailback time.Duration
}

// A Placement is the result of probing the endpoints of a target. The zero value changes
// nothing. A Placement must not be changed after it is passed on.
type Placement struct {
	// Unhealthy endpoints get traffic only if no other endpoint is left.
	Unhealthy map[Address]bool

	// LocalOnly excludes the endpoints of other clusters if there is a local one.
	LocalOnly bool

	// Waiting are sources that are healthy again and are not used yet before all others.
	// Local stands for all local sources.
	Waiting map[string]bool
	Local   bool
}

// Equal reports whether two Placements are the same.
func (p Placement) Equal(o Placement) bool {
	return p.LocalOnly == o.LocalOnly && p.Local == o.Local && maps.Equal(p.Unhealthy, o.Unhealthy) && maps.Equal(p.Waiting, o.Waiting)
}

// IsZero reports whether the Placement changes nothing.
func (p Placement) IsZero() bool { return p.Equal(Placement{}) }
