// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"slices"
	"time"
)

// drainingSince returns since when a cluster drains, given its previous record. It is the time at if the
// record does not say so.
func drainingSince(previous string, at time.Time) *time.Time {
	r := Record{}
	if json.Unmarshal([]byte(previous), &r) == nil && r.Draining != nil {
		return r.Draining
	}
	at = at.UTC()
	return &at
}

// DrainAnnounced reports whether all clusters that may drain the same service at the same time know of
// each other: the record of this cluster was in the tailnet for Pause before the view. Of two clusters
// that drain, at least one thus sees the other, and goes on to serve.
func DrainAnnounced(v View, members []Member, cluster string) bool {
	m := member(members, cluster)
	return m != nil && m.Draining != nil && v.ServicesAt.Sub(*m.Draining) >= Pause
}

// Serving returns the members that do not drain.
func Serving(members []Member) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Draining != nil })
}
