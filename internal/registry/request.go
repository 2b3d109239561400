// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// ErrChanged means that the tailnet no longer matches the view. The caller should plan again with a
// list that is requested after the error.
var ErrChanged = errors.New("the service changed meanwhile")

// A Request is what an action asks of Tailscale's API. The zero value asks nothing: the service is
// as the action wants it.
type Request struct {
	// Service is the service to create or to replace.
	Service *tailscale.Service

	// Deletion reports that the service is to be deleted.
	Deletion bool
}

// Request returns what an action asks of the API. current is the action's service, read after the
// view, which may be old; it is nil if the service does not exist. The error is ErrChanged if the
// view is too old for the action.
func (a Action) Request(v View, self Self, want Want, current *tailscale.Service) (Request, error) {
	seen := v.Service(a.Name)
	switch a.Op {
	case OpPutRecord:
		return putRecord(v, self, want, current, a)
	case OpCreateShared:
		if current != nil {
			return Request{}, ErrChanged
		}
		s, err := shared(v, self, remember(v, self, want), nil)
		if err != nil {
			return Request{}, err
		}
		return Request{Service: &s}, nil
	case OpPutShared:
		if current == nil {
			return Request{}, ErrChanged
		}
		return putShared(v, self, want, current)
	case OpDeleteRecord:
		return Request{Deletion: current != nil && isOwnRecord(current, self)}, nil
	case OpDeleteExpired:
		if current == nil {
			return Request{}, nil
		}
		if seen == nil || current.Annotations[meta.AnnotationRecord] != seen.Annotations[meta.AnnotationRecord] {
			return Request{}, ErrChanged
		}
		return Request{Deletion: true}, nil
	case OpRelease:
		if current == nil {
			return Request{}, nil
		}
		members, _ := v.Members(want.Service)
		return release(self, current, len(alive(members)) > 0)
	case OpDeleteShared:
		if current == nil {
			return Request{}, nil
		}
		// Another client has written the service since, possibly a cluster that attaches.
		if seen == nil || !maps.Equal(current.Annotations, seen.Annotations) || !slices.Equal(current.Addrs, seen.Addrs) {
			return Request{}, ErrChanged
		}
		return Request{Deletion: true}, nil
	case OpWait:
	}
	return Request{}, nil
}

// Deletes reports whether an action only deletes or releases something.
func (o Op) Deletes() bool {
	return o == OpDeleteRecord || o == OpDeleteExpired || o == OpRelease || o == OpDeleteShared
}

func putRecord(v View, self Self, want Want, current *tailscale.Service, a Action) (Request, error) {
	if err := checkRecord(current, a.Name, self, want.Adopt); err != nil {
		return Request{}, err
	}
	s, err := ownRecord(v, self, remember(v, self, want), current)
	if err != nil || current != nil && Same(*current, s) {
		return Request{}, err
	}
	return Request{Service: &s}, nil
}

func putShared(v View, self Self, want Want, current *tailscale.Service) (Request, error) {
	if err := checkShared(v, current, self, want); err != nil {
		return Request{}, err
	}
	s, err := shared(v, self, remember(v, self, want), current)
	if err != nil || Same(*current, s) {
		return Request{}, err
	}
	return Request{Service: &s}, nil
}

// release returns the request that removes this cluster's owner reference from a service that
// others still use. It also removes all other annotations of this package, unless other clusters
// still share the service.
func release(self Self, current *tailscale.Service, shared bool) (Request, error) {
	s := *current
	var err error
	if s.Annotations, err = Released(current.Annotations, self.Cluster, shared); err != nil || Same(*current, s) {
		return Request{}, err
	}
	return Request{Service: &s}, nil
}
