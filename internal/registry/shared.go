// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// maxCopiedRoutes limits the routes of one cluster in the copy.
	maxCopiedRoutes = 16

	// reservedPrefix is the prefix of this package's annotations.
	reservedPrefix = "gateway.tailscale.com/"
)

// A Self identifies the cluster and the object that plan.
type Self struct {
	Cluster string

	// Operator is NAMESPACE/NAME of the VIPService.
	Operator string
}

// Owner returns the value of meta.AnnotationOwner for this cluster and object.
func (s Self) Owner() string { return s.Cluster + "/" + s.Operator }

// Has reports whether an owner belongs to the same cluster.
func (s Self) Has(owner string) bool { return owner != "" && ClusterOf(owner) == s.Cluster }

// A Want is the desired state of a service that a cluster shares.
type Want struct {
	Service     string
	DisplayName string
	Comment     string
	Ports       []string
	Tags        []string

	// Annotations are the annotations of the shared service, in addition to those of this package.
	Annotations map[string]string

	// RecordTags are the tags of the cluster's separate service; Tags if empty.
	RecordTags []string

	// RecordPorts are the ports of the cluster's separate service; Ports if empty.
	RecordPorts []string

	// ClusterSet limits the clusters that share the service to those of a set, and their objects to
	// those with the same namespace and name. Empty means any cluster.
	ClusterSet string

	// Draining reports that this cluster hands the service to others.
	Draining bool

	// Fencing reports that this cluster watches the hosts of the service.
	Fencing bool

	// Adopt permits to take over services that do not belong to this cluster.
	Adopt bool

	// Retain keeps the shared service when this cluster is the last one to leave it.
	Retain bool

	// The following fields are written to the record only.
	Tailnet string
	Domain  string
	Routes  []string
	Export  *v1alpha1.ExportedService
	Health  *Health
	Nodes   []string

	// Addresses are the last known addresses of the shared service, and OwnAddresses those of the
	// cluster's separate service. They are kept after the services are deleted.
	Addresses    []string
	OwnAddresses []string

	// Seen are the addresses that the shared service had when its annotations said that this cluster
	// shares it or owns it. Users must not be able to write them: a service without annotations and
	// with these addresses counts as this service.
	Seen []string
}

// A copied is the part of a cluster's record that the shared service has a copy of.
type copied struct {
	Operator   string   `json:"operator"`
	ClusterSet string   `json:"clusterSet,omitempty"`
	Service    string   `json:"service"`
	Routes     []string `json:"routes,omitempty"`
}

// A registry is the copy of all records of live clusters.
type registry struct {
	SchemaVersion string            `json:"schemaVersion"`
	ServiceName   string            `json:"serviceName"`
	OwnerOperator string            `json:"ownerOperator"`
	Consumers     map[string]copied `json:"consumers,omitempty"`
	Omitted       int               `json:"omitted,omitempty"` // How many clusters did not fit.
	VIPAddresses  []string          `json:"vipAddresses,omitempty"`
}

// ClusterOf returns the cluster of an owner, CLUSTER/NAMESPACE/NAME, or "".
func ClusterOf(owner string) string {
	for range 2 {
		i := strings.LastIndexByte(owner, '/')
		if i < 0 {
			return ""
		}
		owner = owner[:i]
	}
	return owner
}

// Shared reports whether clusters share a service.
func Shared(s *tailscale.Service) bool {
	_, ok := s.Annotations[meta.AnnotationSchemaVersion]
	return ok && s.Annotations[meta.AnnotationSharedService] == ""
}

// OwnerOf returns the owner, which decides the tags and ports of a shared service. It is the owner
// in the annotation while that cluster is alive, and otherwise the live cluster with the smallest
// ID. If no cluster is alive, it is the owner in the annotation, or the first member.
func OwnerOf(s *tailscale.Service, members []Member) string {
	named := s.Annotations[meta.AnnotationOwnerOperator]
	alive := alive(members)
	if m := member(alive, ClusterOf(named)); m != nil {
		return m.owner()
	}
	if len(alive) > 0 {
		return alive[0].owner()
	}
	if m := member(members, ClusterOf(named)); m != nil || len(members) == 0 {
		return named
	}
	return members[0].owner()
}

// OwnerObject returns the namespace and name of an owner, and whether it has both.
func OwnerObject(owner string) (namespace, name string, ok bool) {
	cluster := ClusterOf(owner)
	if cluster == "" {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(strings.TrimPrefix(owner, cluster+"/"), "/")
	return namespace, name, ok && namespace != "" && name != ""
}

func (m Member) owner() string { return Self{Cluster: m.Cluster, Operator: m.Operator}.Owner() }

// shared returns the desired state of the shared service, based on the current one. current is nil
// if the service does not exist. Fields and annotations of other writers are kept.
func shared(v View, self Self, want Want, current *tailscale.Service) (tailscale.Service, error) {
	members := withSelf(v, self, want)
	s := tailscale.Service{Name: want.Service, Annotations: map[string]string{}}
	owner := self.Owner()
	if current != nil {
		s = *current
		s.Annotations = maps.Clone(current.Annotations)
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		if Shared(current) {
			owner = OwnerOf(current, members)
		}
	}
	if ClusterOf(owner) == self.Cluster {
		if err := takeOver(&s, want); err != nil {
			return s, err
		}
	}
	setClusterSet(&s, owner, members, self, want)
	delete(s.Annotations, meta.AnnotationOwner)
	if a := s.Annotations[meta.AnnotationPreviousAddress]; a != "" && len(s.Addrs) > 0 && a == ipv4(s.Addrs) {
		delete(s.Annotations, meta.AnnotationPreviousAddress)
	}
	if err := JoinOwners(s.Annotations, self.Cluster); err != nil {
		return s, err
	}
	if err := addCopy(&s, owner, alive(members)); err != nil {
		return s, err
	}
	if current == nil || !Same(*current, s) {
		s.Annotations[meta.AnnotationLastUpdated] = v.ServicesAt.UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	return s, nil
}

// withSelf returns the members as they are after this cluster's record is written.
func withSelf(v View, self Self, want Want) []Member {
	members, _ := v.Members(want.Service)
	if member(members, self.Cluster) != nil {
		return members
	}
	m := Member{Record: want.record(self), Name: RecordName(want.Service, self.Cluster), Alive: true}
	members = append(members, m)
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Cluster, b.Cluster) })
	return members
}

func (w Want) record(self Self) Record {
	return Record{
		Service:    w.Service,
		Cluster:    self.Cluster,
		Operator:   self.Operator,
		ClusterSet: w.ClusterSet,
		Tailnet:    w.Tailnet,
		Domain:     w.Domain,
		Routes:     listed(w.Routes),
		Export:     w.Export,
		Health:     w.Health,
		Nodes:      listed(w.Nodes),
		Addresses:  w.Addresses,
		Ports:      listed(w.Ports),
		Tags:       listed(w.Tags),
	}
}

// takeOver sets the fields that the owner of a service decides.
func takeOver(s *tailscale.Service, want Want) error {
	s.DisplayName, s.Comment = want.DisplayName, want.Comment
	if !sameSet(s.Ports, want.Ports) {
		s.Ports = listed(want.Ports)
	}
	if !sameSet(s.Tags, want.Tags) {
		s.Tags = listed(want.Tags)
	}
	SetRetain(s.Annotations, want.Retain)
	return SetAnnotations(s.Annotations, want.Annotations)
}

// SetRetain sets or removes the annotation of a service that stays when its object is deleted.
func SetRetain(annotations map[string]string, retain bool) {
	delete(annotations, meta.AnnotationDeletionPolicy)
	if retain {
		annotations[meta.AnnotationDeletionPolicy] = meta.RetainPolicy
	}
}

// SetAnnotations sets annotations, and removes those that it set before and that are no longer
// wanted.
func SetAnnotations(annotations, want map[string]string) error {
	var previous []string
	if raw := annotations[meta.AnnotationManagedAnnotations]; raw != "" {
		// An invalid list only prevents that old annotations are removed.
		if json.Unmarshal([]byte(raw), &previous) != nil {
			previous = nil
		}
	}
	for _, k := range previous {
		if _, ok := want[k]; !ok && !reserved(k) {
			delete(annotations, k)
		}
	}
	maps.Copy(annotations, want)
	delete(annotations, meta.AnnotationManagedAnnotations)
	if len(want) == 0 {
		return nil
	}
	b, err := json.Marshal(slices.Sorted(maps.Keys(want)))
	if err != nil {
		return errors.Wrap(err, "cannot encode the keys of annotations")
	}
	annotations[meta.AnnotationManagedAnnotations] = string(b)
	return nil
}

// reserved reports whether an annotation may not be set by users.
func reserved(key string) bool {
	return strings.HasPrefix(key, reservedPrefix) || key == meta.AnnotationOwnerReferences
}

// JoinOwners adds a cluster to the owners in the annotation of Tailscale's operator. It leaves all
// else unchanged.
func JoinOwners(annotations map[string]string, id string) error {
	value, ok := annotations[meta.AnnotationOwnerReferences]
	if !ok {
		return nil
	}
	refs, err := ParseOwnerRefs(value)
	if err != nil || refs.has(id) {
		return err
	}
	annotations[meta.AnnotationOwnerReferences], err = refs.with(id)
	return err
}

// addCopy writes the records of all live members to the shared service.
func addCopy(s *tailscale.Service, owner string, alive []Member) error {
	c := registry{
		SchemaVersion: meta.SchemaVersion,
		ServiceName:   s.Name,
		OwnerOperator: owner,
		Consumers:     map[string]copied{},
		VIPAddresses:  s.Addrs,
	}
	for _, m := range alive[:min(len(alive), maxListed)] {
		c.Consumers[m.Cluster] = copied{Operator: m.Operator, ClusterSet: m.ClusterSet, Service: m.Name, Routes: m.Routes[:min(len(m.Routes), maxCopiedRoutes)]}
	}
	b, err := json.Marshal(c.bounded())
	if err != nil {
		return errors.Wrap(err, "cannot encode the registry")
	}
	if s.Annotations[meta.AnnotationRegistry] != compactCopy {
		s.Annotations[meta.AnnotationRegistry] = string(b)
	}
	s.Annotations[meta.AnnotationOwnerOperator] = owner
	s.Annotations[meta.AnnotationConsumerCount] = strconv.Itoa(len(alive))
	s.Annotations[meta.AnnotationSchemaVersion] = meta.SchemaVersion
	return nil
}

// Same reports whether two services are equal. It ignores the order of ports and tags, and the time
// of the last write.
func Same(a, b tailscale.Service) bool {
	timeless := func(annotations map[string]string) map[string]string {
		out := maps.Clone(annotations)
		delete(out, meta.AnnotationLastUpdated)
		return out
	}
	return a.Comment == b.Comment && a.DisplayName == b.DisplayName &&
		sameSet(a.Ports, b.Ports) && sameSet(a.Tags, b.Tags) && maps.Equal(timeless(a.Annotations), timeless(b.Annotations))
}

func sameSet(a, b []string) bool { return slices.Equal(set(a), set(b)) }

func set(values []string) []string {
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}
