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

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	servicePrefix = "svc:"

	// maxLabel is the maximum length of a DNS label, and of a service's name.
	maxLabel = 63

	// hashBytes is the length of a name's hash; each byte is two hexadecimal digits.
	hashBytes = 5

	// maxListed limits the lists in a record.
	maxListed = 64
)

// A Health is the health of a cluster's machines that host a service.
type Health struct {
	// Ready is the number of machines that serve the service, and Total the desired number.
	Ready int32 `json:"ready"`
	Total int32 `json:"total"`

	// Whole is the number of machines that serve all ports, each with a backend that answers. Older
	// versions do not record it, which is the same as none.
	Whole int32 `json:"whole,omitempty"`

	// Score is the percentage of backends that answer.
	Score int32 `json:"score"`

	// Unrouted reports that no machine of the cluster has seen a primary host of the service for a
	// minute. False means that one has, or that it is not known.
	Unrouted bool `json:"unrouted,omitempty"`
}

// A Record is the description of one cluster on its separate service.
type Record struct {
	// Service is the shared service, with its svc: prefix.
	Service string `json:"service"`

	// Cluster is the cluster ID.
	Cluster string `json:"cluster"`

	// Operator is NAMESPACE/NAME of the VIPService.
	Operator string `json:"operator"`

	// ClusterSet is the set of clusters that may share the service. Empty means any cluster.
	ClusterSet string `json:"clusterSet,omitempty"`

	// Tailnet is the cluster's name for the tailnet, and Domain the tailnet's DNS name.
	Tailnet string `json:"tailnet,omitempty"`
	Domain  string `json:"domain,omitempty"`

	// Routes are the routes that use the service.
	Routes []string `json:"routes,omitempty"`

	// Export describes the cluster's Service for the clusters that import it by the Multi-Cluster Services
	// API. It is nil if the cluster has no ServiceExport.
	Export *v1alpha1.ExportedService `json:"export,omitempty"`

	// Health is nil while no machine should host the service.
	Health *Health `json:"health,omitempty"`

	// Nodes are the stable IDs of the cluster's machines.
	Nodes []string `json:"nodes,omitempty"`

	// Addresses are the last known addresses of the shared service.
	Addresses []string `json:"addresses,omitempty"`

	// Ports and Tags are those that the cluster wants for the shared service.
	Ports []string `json:"ports,omitempty"`
	Tags  []string `json:"tags,omitempty"`

	// Draining is since when the cluster has wanted to hand the service to other clusters, by the clock
	// of Tailscale's API. It is nil unless it does.
	Draining *time.Time `json:"draining,omitempty"`

	// Fencing is nil unless the cluster watches the hosts of the service.
	Fencing *Fencing `json:"fencing,omitempty"`

	// Updated is when the record was written, by the clock of Tailscale's API. It alone is no
	// reason to write a record that lists machines.
	Updated time.Time `json:"updated"`
}

// RecordName returns the name of the service with a cluster's record: svc:, the name of the shared
// service, shortened if necessary, and ten hexadecimal digits of a hash of that name and the
// cluster.
func RecordName(service, cluster string) string {
	// A service's name has no slash, so the input is unambiguous.
	sum := sha256.Sum256([]byte(service + "/" + cluster))
	hash := "-" + hex.EncodeToString(sum[:hashBytes])
	label := strings.TrimPrefix(service, servicePrefix)
	if most := maxLabel - len(hash); len(label) > most {
		label = strings.TrimRight(label[:most], "-")
	}
	return servicePrefix + label + hash
}

// RecordOf parses the record of a service. It returns false for a service without a record, and an
// error for a record under a wrong name: any client that can write services can write any record,
// but only one name is valid for a cluster.
func RecordOf(s *tailscale.Service) (Record, bool, error) {
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

// encode returns the record as JSON. It returns the old text if only the time differs, and machines,
// or the time alone, still show that the cluster is alive.
func (r Record) encode(old string, at time.Time) (string, error) {
	r = r.bounded()
	previous := Record{}
	if json.Unmarshal([]byte(old), &previous) == nil && (len(r.Nodes) > 0 || at.Sub(previous.Updated) <= renewsAfter) {
		// A compact record stays compact, because the tailnet rejected the full one.
		for _, same := range []Record{r, r.compact()} {
			same.Updated = previous.Updated
			if b, err := json.Marshal(same); err == nil && string(b) == old {
				return old, nil
			}
		}
	}
	r.Updated = at.UTC()
	b, err := json.Marshal(r)
	return string(b), errors.Wrap(err, "cannot encode the record")
}

// listed returns a sorted copy of a list, limited in length and without duplicates.
func listed(values []string) []string {
	out := slices.Clone(values)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxListed)]
}
