// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Conflict describes how the desired states of the shared service differ between live clusters, and
// how to resolve this. It returns an empty string if they agree. For the owner it lists all
// clusters that differ, for other clusters only the owner: the service has the state that the owner
// wants.
func Conflict(v View, self Self, want Want, current *tailscale.Service) string {
	members := withSelf(v, self, want)
	owner := self.Owner()
	if current != nil && Shared(current) {
		owner = OwnerOf(current, members)
	}
	if ClusterOf(owner) != self.Cluster {
		o := member(members, ClusterOf(owner))
		if o == nil {
			return ""
		}
		d := differences(o.Record, want)
		if d == "" {
			return ""
		}
		return fmt.Sprintf("The service keeps what cluster %s wants: %s; make both clusters want the same", o.Cluster, d)
	}
	var conflicts []string
	for _, m := range alive(members) {
		if m.Cluster == self.Cluster {
			continue
		}
		if d := differences(m.Record, want); d != "" {
			conflicts = append(conflicts, fmt.Sprintf("cluster %s wants %s", m.Cluster, d))
		}
	}
	if len(conflicts) == 0 {
		return ""
	}
	more := ""
	if n := len(conflicts) - maxNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
		conflicts = conflicts[:maxNamed]
	}
	return fmt.Sprintf("The service keeps what this cluster wants, but %s%s; make all clusters want the same", strings.Join(conflicts, ", "), more)
}

// maxNamed is the maximum number of clusters in a message.
const maxNamed = 3

// differences describes what one cluster wants and the other does not.
func differences(theirs Record, want Want) string {
	var out []string
	if !sameSet(theirs.Ports, listed(want.Ports)) {
		out = append(out, fmt.Sprintf("ports %v, not %v", theirs.Ports, listed(want.Ports)))
	}
	if !sameSet(theirs.Tags, listed(want.Tags)) {
		out = append(out, fmt.Sprintf("tags %v, not %v", theirs.Tags, listed(want.Tags)))
	}
	if theirs.ClusterSet != want.ClusterSet {
		out = append(out, fmt.Sprintf("%s, not %s", describeSet(theirs.ClusterSet), describeSet(want.ClusterSet)))
	}
	return strings.Join(out, " and ")
}
