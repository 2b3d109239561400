// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Tailscale documents no limit of what annotations may hold. So what this package writes
// is small at any size of the clusters, and smaller still where the tailnet refuses it.
const (
	// maxValue bounds the value of an annotation, in bytes.
	maxValue = 4 << 10

	// maxCompactNodes bounds the nodes of a compact record. One that is online is enough
	// for the cluster to be alive.
	maxCompactNodes = 8

	// compactCopy stands for a copy that the tailnet refused.
	compactCopy = "{}"
)

// bounded returns the record with as many routes as fit: they are for people.
func (r Record) bounded() Record {
	for len(r.Routes) > 0 && size(r) > maxValue {
		r.Routes = r.Routes[:len(r.Routes)/2]
	}
	return r
}

// compact returns the least that a record must say.
func (r Record) compact() Record {
	r.Routes, r.Health, r.Domain = nil, nil, ""
	r.Nodes = r.Nodes[:min(len(r.Nodes), maxCompactNodes)]
	return r
}

// bounded returns the copy with as much as fits. What is left out is counted.
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

// size of what an annotation says, in bytes.
func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // It is reported when it is encoded.
	}
	return len(b)
}

// overLimit reports whether the tailnet refuses the annotations of a service. No source
// has such a refusal: that it names them is an assumption.
func overLimit(err error) bool {
	var e *tailscale.Error
	return errors.As(err, &e) && e.Class == tailscale.ClassInvalid && strings.Contains(strings.ToLower(e.Message), "annotation")
}

// compacted returns a service with the least in its annotations that this package needs.
func compacted(s tailscale.Service) (tailscale.Service, error) {
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
	// The copy is for people, who can read the records.
	if _, ok := s.Annotations[meta.AnnotationRegistry]; ok {
		out.Annotations[meta.AnnotationRegistry] = compactCopy
	}
	delete(out.Annotations, meta.AnnotationLastUpdated)
	return out, nil
}

// Unmarked reports whether a service has none of the annotations by which clusters and
// Tailscale's operator know theirs. An edit in the admin console or by Terraform may
// have dropped them.
func Unmarked(s *tailscale.Service) bool {
	for k := range s.Annotations {
		if reserved(k) {
			return false
		}
	}
	return true
}

// lostAnnotations reports whether a service without marks is the one that clusters share, or was
// ours alone: it has the addresses that this cluster or a living one has seen on it.
func lostAnnotations(v View, s *tailscale.Service, want Want) bool {
	if !Unmarked(s) || len(s.Addrs) < 2 {
		return false
	}
	if sameSet(s.Addrs, want.Addresses) {
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
