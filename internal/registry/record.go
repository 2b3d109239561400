// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	servicePrefix = "svc:"

	// maxLabel is the length of a DNS label, which a service's name is.
	maxLabel = 63

	// hashBytes of a name's hash; two hexadecimal digits each.
	hashBytes = 5

	// maxListed bounds the lists in a record.
	maxListed = 64
)

// Health is how the machines of a cluster do that host a service.
type Health struct {
	// Ready machines offer the service, of Total that are to.
	Ready int32 `json:"ready"`
	Total int32 `json:"total"`

	// Score is the percentage of backends that answer.
	Score int32 `json:"score"`
}

// A Record is what one cluster says about itself on its own service.
type Record struct {
	// Service that is shared, with its svc: prefix.
	Service string `json:"service"`

	// Cluster ID.
	Cluster string `json:"cluster"`

	// Operator is NAMESPACE/NAME of the VIPService.
	Operator string `json:"operator"`

	// Tailnet is how the cluster calls the tailnet, Domain its DNS name.
	Tailnet string `json:"tailnet,omitempty"`
	Domain  string `json:"domain,omitempty"`

	// Routes that use the service.
	Routes []string `json:"routes,omitempty"`

	// Health is nil while no machine is to host the service.
	Health *Health `json:"health,omitempty"`

	// Nodes are the stable IDs of the cluster's machines.
	Nodes []string `json:"nodes,omitempty"`

	// Addresses of the shared service, as the cluster last saw them.
	Addresses []string `json:"addresses,omitempty"`

	// Ports and Tags that the cluster wants the shared service to have.
	Ports []string `json:"ports,omitempty"`
	Tags  []string `json:"tags,omitempty"`

	// Updated is when the record was written, by the clock of Tailscale's API.
	// It never makes a record worth writing.
	Updated time.Time `json:"updated"`
}

// RecordName returns the name of the service that carries a cluster's record:
// svc:, the shared service's name, cut where it is too long, and ten hexadecimal
// digits of a hash of that name and the cluster.
func RecordName(service, cluster string) string {
	// A service's name has no slash.
	sum := sha256.Sum256([]byte(service + "/" + cluster))
	hash := "-" + hex.EncodeToString(sum[:hashBytes])
	label := strings.TrimPrefix(service, servicePrefix)
	if most := maxLabel - len(hash); len(label) > most {
		label = strings.TrimRight(label[:most], "-")
	}
	return servicePrefix + label + hash
}

// decode reads the record that a service carries. It returns false for one that
// claims nothing, and an error for a claim that does not hold: whoever may write
// services can claim anything, but only one name can be a cluster's.
func decode(s *tailscale.Service) (Record, bool, error) {
	raw, ok := s.Annotations[meta.AnnotationRecord]
	if !ok {
		return Record{}, false, nil
	}
	if v := s.Annotations[meta.AnnotationSchemaVersion]; v != meta.SchemaVersion {
		return Record{}, false, errors.Errorf("service %q has a record of the unknown version %q", s.Name, v)
	}
	r := Record{}
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		return Record{}, false, errors.Errorf("service %q has a record that cannot be read", s.Name)
	}
	if r.Cluster == "" || r.Service != s.Annotations[meta.AnnotationSharedService] || s.Name != RecordName(r.Service, r.Cluster) {
		return Record{}, false, errors.Errorf("service %q is not the record that it claims to be", s.Name)
	}
	return r, true, nil
}

// encode returns the record as JSON. Times are not part of what it says: if it
// says the same as the old one, it is the old one.
func (r Record) encode(old string, now time.Time) (string, error) {
	r = r.bounded()
	before := Record{}
	if json.Unmarshal([]byte(old), &before) == nil {
		// One that was made compact stays so: the tailnet refused the other.
		for _, same := range []Record{r, r.compact()} {
			same.Updated = before.Updated
			if b, err := json.Marshal(same); err == nil && string(b) == old {
				return old, nil
			}
		}
	}
	r.Updated = now.UTC()
	b, err := json.Marshal(r)
	return string(b), errors.Wrap(err, "cannot encode the record")
}

// listed returns a sorted, bounded copy of a list without duplicates.
func listed(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxListed)]
}
