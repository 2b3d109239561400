// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Tailscale documents no limit for annotations. So those that this package plans stay small for any
// number of clusters, and Compact makes them smaller if the tailnet rejects them.
const (
	// maxValue limits the value of an annotation, in bytes.
	maxValue = 4 << 10

	// maxCompactNodes limits the nodes of a compact record. One node that is online is enough for
	// the cluster to be alive.
	maxCompactNodes = 8

	// compactCopy replaces a copy that the tailnet rejected.
	compactCopy = "{}"
)

// bounded returns the record with as many routes as fit, and with the metadata of the exported Service
// if it fits. Both are informational.
func (r Record) bounded() Record {
	for len(r.Routes) > 0 && size(r) > maxValue {
		r.Routes = r.Routes[:len(r.Routes)/2]
	}
	if size(r) > maxValue {
		r.Export = withoutMetadata(r.Export)
	}
	return r
}

// withoutMetadata returns an exported Service without labels and annotations.
func withoutMetadata(e *v1alpha1.ExportedService) *v1alpha1.ExportedService {
	if e == nil {
		return nil
	}
	out := *e
	out.MetadataOmitted = out.MetadataOmitted || len(out.Labels)+len(out.Annotations) > 0
	out.Labels, out.Annotations = nil, nil
	return &out
}

// compact returns the record with its required fields only.
func (r Record) compact() Record {
	r.Routes, r.Health, r.Domain, r.Export = nil, nil, "", withoutMetadata(r.Export)
	r.Nodes = r.Nodes[:min(len(r.Nodes), maxCompactNodes)]
	return r
}

// bounded returns the copy in a form that fits: without routes if necessary, or with only the
// number of clusters.
func (c registry) bounded() registry {
	if size(c) > maxValue {
		for id, m := range c.Consumers {
			m.Routes = nil
			c.Consumers[id] = m
		}
	}
	if size(c) > maxValue {
		c.Omitted, c.Consumers = len(c.Consumers), nil
	}
	return c
}

// size returns the size of an annotation's value in bytes.
func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // Encoding the annotation reports the error.
	}
	return len(b)
}

// Compact returns a service whose annotations hold only what this package requires, for a tailnet
// that rejects longer ones.
func Compact(s tailscale.Service) (tailscale.Service, error) {
	out := s
	out.Annotations = make(map[string]string, len(s.Annotations))
	for k, v := range s.Annotations {
		out.Annotations[k] = v
	}
	if raw, ok := s.Annotations[meta.AnnotationRecord]; ok {
		r := Record{}
		if err := json.Unmarshal([]byte(raw), &r); err != nil {
			return s, errors.Wrap(err, "cannot read the own record")
		}
		b, err := json.Marshal(r.compact())
		if err != nil {
			return s, errors.Wrap(err, "cannot encode the record")
		}
		out.Annotations[meta.AnnotationRecord] = string(b)
	}
	// The copy is informational; the records have the same content.
	if _, ok := s.Annotations[meta.AnnotationRegistry]; ok {
		out.Annotations[meta.AnnotationRegistry] = compactCopy
	}
	delete(out.Annotations, meta.AnnotationLastUpdated)
	return out, nil
}

// Unmarked reports whether a service has none of the annotations by which clusters and Tailscale's
// operator identify their services. An edit in the admin console or by Terraform may have removed
// them.
func Unmarked(s *tailscale.Service) bool {
	for k := range s.Annotations {
		if reserved(k) {
			return false
		}
	}
	return true
}

// lostAnnotations reports whether a service without marks is the shared service, or belonged to
// this cluster alone: it has the addresses that this cluster has seen or a live one has recorded.
func lostAnnotations(v View, s *tailscale.Service, want Want) bool {
	if !Unmarked(s) || len(s.Addrs) < 2 {
		return false
	}
	if sameSet(s.Addrs, want.Seen) {
		return true
	}
	members, _ := v.Members(s.Name)
	for _, m := range alive(members) {
		if sameSet(s.Addrs, m.Addresses) {
			return true
		}
	}
	return false
}
