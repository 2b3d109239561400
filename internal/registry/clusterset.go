// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// NoClusterSet returns the refusal of a service that only clusters of a set share, while the provider
// config names no set.
func NoClusterSet(service string) *RefusalError {
	return &RefusalError{
		Reason:  meta.ReasonNoClusterSet,
		Message: fmt.Sprintf("service %q has sharing ClusterSet, but this cluster belongs to no set; set clusterSet in the TailscaleTailnet or the provider config", service),
	}
}

// checkSet returns an error if this cluster must not join the clusters that share a service: none of
// them names the same set, or, in a set, the object has another namespace or name there. A cluster
// that has a record is not refused, so that all clusters can move to another set; Conflict reports
// which ones have not. current is the shared service, or nil.
//
// The sets protect from accidents, and not from clients with a credential: those can write any
// record. Two clusters that join at the same time see no record of each other.
func checkSet(v View, current *tailscale.Service, self Self, want Want) error {
	members, _ := v.Members(want.Service)
	if member(members, self.Cluster) != nil {
		return nil
	}
	members = slices.DeleteFunc(members, func(m Member) bool { return m.Expired })
	if len(members) == 0 {
		return checkSetOfService(current, want)
	}
	same := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.ClusterSet != want.ClusterSet })
	switch {
	case len(same) == 0:
		return sharedByOthers(want.Service, members)
	case want.ClusterSet == "" || slices.ContainsFunc(same, func(m Member) bool { return m.Operator == self.Operator }):
		return nil
	}
	return &RefusalError{
		Reason:  meta.ReasonSharedByOthers,
		Message: fmt.Sprintf("service %q belongs to %s in the cluster set %q, and a set shares only objects of the same namespace and name; choose another name for the service", want.Service, same[0].Operator, want.ClusterSet),
	}
}

// checkSetOfService does the same by the annotation of a shared service whose records are lost.
func checkSetOfService(s *tailscale.Service, want Want) error {
	if s == nil || want.Adopt || !Shared(s) || s.Annotations[meta.AnnotationClusterSet] == want.ClusterSet {
		return nil
	}
	return &RefusalError{
		Reason:  meta.ReasonSharedByOthers,
		Message: fmt.Sprintf("service %q is shared with %s; %s, choose another name, or set adoptionPolicy to Adopt", s.Name, describeSet(s.Annotations[meta.AnnotationClusterSet]), joinBy(s.Annotations[meta.AnnotationClusterSet])),
	}
}

// sharedByOthers returns the refusal of a cluster that shares a service in another way than its
// members, or not at all.
func sharedByOthers(service string, members []Member) *RefusalError {
	set := members[0].ClusterSet
	sharers := clusters(members)
	if set != "" {
		sharers = fmt.Sprintf("%s of the %s", sharers, describeSet(set))
	}
	return &RefusalError{
		Reason:  meta.ReasonSharedByOthers,
		Message: fmt.Sprintf("service %q is shared by %s; %s, or choose another name", service, sharers, joinBy(set)),
	}
}

// joinBy returns what a cluster must set to join the clusters of a set, or any clusters if it is empty.
func joinBy(set string) string {
	if set == "" {
		return "set sharing to Shared"
	}
	return fmt.Sprintf("set clusterSet to %q in this cluster's TailscaleTailnet or provider config (a TailscaleServices then needs no sharing, and a VIPService sharing ClusterSet)", set)
}

// describeSet returns a set for a message.
func describeSet(set string) string {
	if set == "" {
		return "any cluster"
	}
	return fmt.Sprintf("cluster set %q", set)
}

// setClusterSet writes the owner's set to the annotations of a shared service.
func setClusterSet(s *tailscale.Service, owner string, members []Member, self Self, want Want) {
	set := want.ClusterSet
	if ClusterOf(owner) != self.Cluster {
		m := member(members, ClusterOf(owner))
		if m == nil {
			return
		}
		set = m.ClusterSet
	}
	delete(s.Annotations, meta.AnnotationClusterSet)
	if set != "" {
		s.Annotations[meta.AnnotationClusterSet] = set
	}
}
