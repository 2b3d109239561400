// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Pause is how long a detaching cluster waits before it checks whether members are left. It is
// longer than any request can be in transit; the additional time covers a list that was requested
// just before the wait began.
const Pause = tailscale.RequestTimeout + 10*time.Second

// maxExpired is the maximum number of records that one plan deletes.
const maxExpired = 3

// An Op is a kind of action.
type Op string

// Operations of actions.
const (
	OpPutRecord     Op = "PutRecord"     // Write this cluster's record.
	OpCreateShared  Op = "CreateShared"  // Create the shared service, with IPv4 if it had one.
	OpPutShared     Op = "PutShared"     // Update the shared service.
	OpDeleteRecord  Op = "DeleteRecord"  // Delete this cluster's record.
	OpDeleteExpired Op = "DeleteExpired" // Delete the expired record Name of another cluster.
	OpWait          Op = "Wait"          // Plan again later; there is nothing to apply.
	OpRelease       Op = "Release"       // Remove this cluster's owner reference from the shared service.
	OpDeleteShared  Op = "DeleteShared"  // Delete the shared service.
)

// An Action is one step of a plan.
type Action struct {
	Op   Op
	Name string // Name of the service.

	// IPv4 is the requested address; empty for any.
	IPv4 string
}

// String returns the action in the form of tests' diffs.
func (a Action) String() string {
	if a.IPv4 != "" {
		return fmt.Sprintf("%s %s with %s", a.Op, a.Name, a.IPv4)
	}
	return fmt.Sprintf("%s %s", a.Op, a.Name)
}

// Attach returns the next actions of a cluster that shares a service, in order. It returns none if
// the service is up to date. The error is a *RefusalError if the cluster must not share the
// service.
func Attach(v View, self Self, want Want) ([]Action, error) {
	var out []Action
	name := RecordName(want.Service, self.Cluster)
	record, current := v.Service(name), v.Service(want.Service)
	if err := checkRecord(record, name, self, want.Adopt); err != nil {
		return nil, err
	}
	if err := checkShared(v, current, self, want); err != nil {
		return nil, err
	}
	if err := checkSet(v, current, self, want); err != nil {
		return nil, err
	}
	if err := checkName(v, current, want.Service); err != nil {
		return nil, err
	}
	if err := checkName(v, record, name); err != nil {
		return nil, err
	}
	want = remember(v, self, want)
	r, err := ownRecord(v, self, want, record)
	if err != nil {
		return nil, err
	}
	if record == nil || !Same(*record, r) {
		out = append(out, Action{Op: OpPutRecord, Name: name, IPv4: ipv4(want.OwnAddresses)})
	}
	more, err := planShared(v, self, want, current)
	if err != nil {
		return nil, err
	}
	out = append(out, more...)
	members, _ := v.Members(want.Service)
	n := 0
	for _, m := range members {
		if m.Expired && m.Cluster != self.Cluster && n < maxExpired {
			out = append(out, Action{Op: OpDeleteExpired, Name: m.Name})
			n++
		}
	}
	return out, nil
}

// planShared returns the actions that create or update the shared service.
func planShared(v View, self Self, want Want, current *tailscale.Service) ([]Action, error) {
	if current == nil {
		return []Action{{Op: OpCreateShared, Name: want.Service, IPv4: ipv4(want.Addresses)}}, nil
	}
	s, err := shared(v, self, want, current)
	if err != nil || Same(*current, s) {
		return nil, err
	}
	return []Action{{Op: OpPutShared, Name: want.Service}}, nil
}

// Detach returns the next actions of a cluster that stops sharing a service. It returns none when
// detaching is complete. waitStart is the time of the first view without this cluster's record, by the
// API's clock; it is zero if there was none since the record was last listed.
func Detach(v View, self Self, want Want, waitStart time.Time) ([]Action, error) {
	service := want.Service
	name := RecordName(service, self.Cluster)
	if r := v.Service(name); r != nil && isOwnRecord(r, self) {
		return []Action{{Op: OpDeleteRecord, Name: name}}, nil
	}
	if waitStart.IsZero() || v.ServicesAt.Sub(waitStart) < Pause {
		return []Action{{Op: OpWait, Name: service}}, nil
	}
	current := v.Service(service)
	if current == nil || !ours(current, self) && !lostAnnotations(v, current, want) {
		return nil, nil
	}
	members, _ := v.Members(service)
	refs, err := ParseOwnerRefs(current.Annotations[meta.AnnotationOwnerReferences])
	if err != nil {
		// The service belongs to the client that broke the owner references.
		return nil, nil //nolint:nilerr // See above.
	}
	if len(alive(members)) == 0 && refs.Others(self.Cluster) == 0 {
		if want.Retain {
			return nil, nil
		}
		return []Action{{Op: OpDeleteShared, Name: service}}, nil
	}
	if refs.has(self.Cluster) || len(alive(members)) == 0 {
		return []Action{{Op: OpRelease, Name: service}}, nil
	}
	return nil, nil
}

// ours reports whether clusters share the service, or it belongs to this cluster alone.
func ours(s *tailscale.Service, self Self) bool {
	return s.Annotations[meta.AnnotationSchemaVersion] == meta.SchemaVersion && Shared(s) || s.Annotations[meta.AnnotationOwner] == self.Owner()
}

// isOwnRecord reports whether the service with the name of this cluster's record is that record. A
// service without marks is: its name is a hash of the cluster, and annotations can be lost.
func isOwnRecord(s *tailscale.Service, self Self) bool {
	return s.Annotations[meta.AnnotationOwner] == self.Owner() || Unmarked(s)
}

// checkRecord returns an error if the service with the record's name is not this cluster's.
func checkRecord(s *tailscale.Service, name string, self Self, adopt bool) error {
	if s == nil || adopt || isOwnRecord(s, self) {
		return nil
	}
	o := s.Annotations[meta.AnnotationOwner]
	if self.Has(o) {
		return &RefusalError{
			Reason:  meta.ReasonNameTaken,
			Message: fmt.Sprintf("this cluster shares the service by VIPService %s; delete that one, or give the provider configs of different clusters different cluster IDs", strings.TrimPrefix(o, self.Cluster+"/")),
		}
	}
	return &RefusalError{
		Reason:  meta.ReasonForeignService,
		Message: fmt.Sprintf("service %q, which is to carry this cluster's record, exists and belongs to %s; delete it, or set adoptionPolicy to Adopt", name, describeOwner(o)),
	}
}

// checkShared returns an error if a service must not be shared.
func checkShared(v View, s *tailscale.Service, self Self, want Want) error {
	if s == nil || lostAnnotations(v, s, want) {
		return nil
	}
	adopt := want.Adopt
	refs, err := ParseOwnerRefs(s.Annotations[meta.AnnotationOwnerReferences])
	if err != nil {
		return &RefusalError{Reason: meta.ReasonForeignService, Message: fmt.Sprintf("service %q: %v", s.Name, err)}
	}
	if refs.Exclusive() {
		return &RefusalError{
			Reason:  meta.ReasonForeignService,
			Message: fmt.Sprintf("service %q belongs to one resource of a Tailscale operator, which does not share it; choose another name", s.Name),
		}
	}
	if version := s.Annotations[meta.AnnotationSchemaVersion]; version != "" && version != meta.SchemaVersion {
		return &RefusalError{
			Reason:  meta.ReasonForeignService,
			Message: fmt.Sprintf("service %q is shared in the version %q, which this provider does not know; upgrade it", s.Name, version),
		}
	}
	if adopt || Shared(s) || s.Annotations[meta.AnnotationOwner] == self.Owner() {
		return nil
	}
	o := s.Annotations[meta.AnnotationOwner]
	switch {
	case self.Has(o):
		return &RefusalError{Reason: meta.ReasonNameTaken, Message: fmt.Sprintf("service %q belongs to %s; choose another name, or delete that one", s.Name, o)}
	case o != "" && want.ClusterSet != "":
		return &RefusalError{Reason: meta.ReasonForeignService, Message: fmt.Sprintf("service %q belongs to %s alone; set clusterSet to %q in the TailscaleTailnet of that cluster, too, and no sharing in its object", s.Name, o, want.ClusterSet)}
	case o != "":
		return &RefusalError{Reason: meta.ReasonForeignService, Message: fmt.Sprintf("service %q belongs to %s alone; set sharing to Shared there, too", s.Name, o)}
	}
	return &RefusalError{
		Reason:  meta.ReasonForeignService,
		Message: fmt.Sprintf("service %q exists and belongs to somebody else; choose another name, delete it, or set adoptionPolicy to Adopt", s.Name),
	}
}

// checkName returns an error if a missing service cannot be created because a machine of the
// tailnet has its name.
func checkName(v View, s *tailscale.Service, name string) error {
	if s != nil || v.Machine(name) == "" {
		return nil
	}
	return NameTaken(name)
}

// Foreign returns an error if an exclusive service must not be changed, because clusters share it
// or it belongs to one resource of Tailscale's operator.
func Foreign(v View, s *tailscale.Service, service string) error {
	members, _ := v.Members(service)
	if alive := alive(members); len(alive) > 0 {
		return sharedByOthers(service, alive)
	}
	if s == nil {
		return checkName(v, nil, service)
	}
	refs, err := ParseOwnerRefs(s.Annotations[meta.AnnotationOwnerReferences])
	if err != nil {
		return &RefusalError{Reason: meta.ReasonForeignService, Message: fmt.Sprintf("service %q: %v", service, err)}
	}
	if refs.Exclusive() {
		return &RefusalError{
			Reason:  meta.ReasonForeignService,
			Message: fmt.Sprintf("service %q belongs to one resource of a Tailscale operator, which does not share it; choose another name", service),
		}
	}
	return nil
}

func describeOwner(owner string) string {
	if owner == "" {
		return "somebody else"
	}
	return owner
}

// clusters returns the names of at most three members' clusters.
func clusters(ms []Member) string {
	var names []string
	for _, m := range ms[:min(len(ms), maxNamed)] {
		names = append(names, "cluster "+m.Cluster)
	}
	s := strings.Join(names, ", ")
	if more := len(ms) - len(names); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// remember sets the addresses: those of the services that exist, or otherwise the last known ones,
// of this cluster or of the member with the newest record.
func remember(v View, self Self, want Want) Want {
	if s := v.Service(RecordName(want.Service, self.Cluster)); s != nil {
		want.OwnAddresses = s.Addrs
	}
	if s := v.Service(want.Service); s != nil {
		want.Addresses = s.Addrs
		return want
	}
	members, _ := v.Members(want.Service)
	var last time.Time
	for _, m := range members {
		if len(m.Addresses) > 0 && m.Updated.After(last) {
			last, want.Addresses = m.Updated, m.Addresses
		}
	}
	return want
}

// ownRecord returns the desired state of the service with this cluster's record.
func ownRecord(v View, self Self, want Want, current *tailscale.Service) (tailscale.Service, error) {
	s := tailscale.Service{}
	if current != nil {
		s = *current
	}
	old := s.Annotations[meta.AnnotationRecord]
	annotations := map[string]string{}
	for k, a := range s.Annotations {
		annotations[k] = a
	}
	record := want.record(self)
	if want.Draining {
		record.Draining = drainingSince(old, v.ServicesAt)
	}
	if want.Fencing {
		record.Fencing = fencingOf(old)
	}
	encoded, err := record.encode(old, v.ServicesAt)
	if err != nil {
		return s, err
	}
	annotations[meta.AnnotationOwner] = self.Owner()
	annotations[meta.AnnotationSchemaVersion] = meta.SchemaVersion
	annotations[meta.AnnotationSharedService] = want.Service
	annotations[meta.AnnotationRecord] = encoded
	s.Annotations = annotations
	s.Name = RecordName(want.Service, self.Cluster)
	s.Comment = fmt.Sprintf("Stands for cluster %s in %s. Kept by Tailscale Gateway.", self.Cluster, want.Service)
	s.Ports = listed(want.RecordPorts)
	if len(want.RecordPorts) == 0 {
		s.Ports = listed(want.Ports)
	}
	s.Tags = listed(want.RecordTags)
	if len(want.RecordTags) == 0 {
		s.Tags = listed(want.Tags)
	}
	return s, nil
}

// ipv4 returns the IPv4 address among addresses, or "".
func ipv4(addrs []string) string {
	i := slices.IndexFunc(addrs, func(a string) bool {
		ip, err := netip.ParseAddr(a)
		return err == nil && ip.Is4()
	})
	if i < 0 {
		return ""
	}
	return addrs[i]
}
