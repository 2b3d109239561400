// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// ErrChanged means that the tailnet no longer matches the view. The caller should plan again with a
// list that is requested after the error.
var ErrChanged = errors.New("the service changed meanwhile")

// An API is the part of Tailscale's API that actions use. Its errors are those of package
// tailscale.
type API interface {
	// Service returns the current state of a service.
	Service(ctx context.Context, name string) (*tailscale.Service, error)

	// PutService creates or replaces a service.
	PutService(ctx context.Context, s tailscale.Service) (*tailscale.Service, error)

	// DeleteService removes a service. It returns no error if the service does not exist.
	DeleteService(ctx context.Context, name string) error
}

// A Result holds the results of an action that are reported in events and conditions.
type Result struct {
	// Created reports whether the shared service was created.
	Created bool

	// AddressTaken is the former IPv4 address of a service that is in use elsewhere.
	AddressTaken string
}

// Apply runs one action of a plan. It reads a service before it replaces it, because the view may
// be old and the API requires the service's addresses.
func Apply(ctx context.Context, api API, v View, self Self, want Want, a Action) (Result, error) {
	if a.Op == OpWait {
		return Result{}, nil
	}
	look := Get
	if a.Op.deletes() {
		look = GetToDelete
	}
	current, err := look(ctx, api, a.Name)
	if err != nil {
		return Result{}, err
	}
	seen := v.Service(a.Name)
	switch a.Op {
	case OpPutRecord:
		return putRecord(ctx, api, v, self, want, current, a)
	case OpCreateShared:
		if current != nil {
			return Result{}, ErrChanged
		}
		return createShared(ctx, api, v, self, want, a)
	case OpPutShared:
		if current == nil {
			return Result{}, ErrChanged
		}
		return Result{}, putShared(ctx, api, v, self, want, current)
	case OpDeleteRecord:
		if current == nil || !isOwnRecord(current, self) {
			return Result{}, nil
		}
	case OpDeleteExpired:
		if current == nil {
			return Result{}, nil
		}
		if seen == nil || current.Annotations[meta.AnnotationRecord] != seen.Annotations[meta.AnnotationRecord] {
			return Result{}, ErrChanged
		}
	case OpRelease:
		if current == nil {
			return Result{}, nil
		}
		members, _ := v.Members(want.Service)
		return Result{}, release(ctx, api, self, current, len(alive(members)) > 0)
	case OpDeleteShared:
		if current == nil {
			return Result{}, nil
		}
		// Another client has written the service since, possibly a cluster that attaches.
		if seen == nil || !maps.Equal(current.Annotations, seen.Annotations) || !slices.Equal(current.Addrs, seen.Addrs) {
			return Result{}, ErrChanged
		}
	case OpWait:
	}
	return Result{}, errors.Wrapf(api.DeleteService(ctx, a.Name), "cannot delete service %q", a.Name)
}

// Get returns a service, or nil if it does not exist. The error is a *RefusalError if a machine of
// the tailnet has the name.
func Get(ctx context.Context, api API, name string) (*tailscale.Service, error) {
	s, err := api.Service(ctx, name)
	if tailscale.IsNotFound(err) {
		return nil, nil // No service is a valid result.
	}
	if err != nil {
		return nil, nameTaken(name, errors.Wrapf(err, "cannot get service %q", name))
	}
	return s, nil
}

// GetToDelete returns a service, or nil if it does not exist or a machine of the tailnet has the
// name.
func GetToDelete(ctx context.Context, api API, name string) (*tailscale.Service, error) {
	s, err := Get(ctx, api, name)
	if _, refused := Refusal(err); refused {
		return nil, nil // No service is a valid result.
	}
	return s, err
}

// Put writes a service. The error is a *RefusalError if a machine of the tailnet has the name.
func Put(ctx context.Context, api API, s tailscale.Service) (*tailscale.Service, error) {
	out, err := api.PutService(ctx, s)
	if overLimit(err) {
		if smallest, cerr := compacted(s); cerr == nil {
			out, err = api.PutService(ctx, smallest)
		}
	}
	if err != nil {
		return nil, nameTaken(s.Name, errors.Wrapf(err, "cannot write service %q", s.Name))
	}
	return out, nil
}

// nameTaken converts the error that a machine has the name to a refusal.
func nameTaken(name string, err error) error {
	if tailscale.ClassOf(err) != tailscale.ClassNameTaken {
		return err
	}
	return &RefusalError{
		Reason:  meta.ReasonNameTaken,
		Message: fmt.Sprintf("a machine of the tailnet has the name %q; rename the machine, or choose another name for the service", strings.TrimPrefix(name, servicePrefix)),
	}
}

// Refusal returns the refusal that err contains, and whether there is one.
func Refusal(err error) (*RefusalError, bool) {
	var r *RefusalError
	ok := errors.As(err, &r)
	return r, ok
}

// deletes reports whether an action only deletes or releases something.
func (o Op) deletes() bool {
	return o == OpDeleteRecord || o == OpDeleteExpired || o == OpRelease || o == OpDeleteShared
}

func putRecord(ctx context.Context, api API, v View, self Self, want Want, current *tailscale.Service, a Action) (Result, error) {
	if err := checkRecord(current, a.Name, self, want.Adopt); err != nil {
		return Result{}, err
	}
	s, err := ownRecord(v, self, remember(v, self, want), current)
	if err != nil || current != nil && Same(*current, s) {
		return Result{}, err
	}
	if current == nil {
		_, err := create(ctx, api, s, a.IPv4)
		return Result{}, err
	}
	_, err = Put(ctx, api, s)
	return Result{}, err
}

func createShared(ctx context.Context, api API, v View, self Self, want Want, a Action) (Result, error) {
	s, err := shared(v, self, remember(v, self, want), nil)
	if err != nil {
		return Result{}, err
	}
	former, err := create(ctx, api, s, a.IPv4)
	return Result{Created: err == nil, AddressTaken: former}, err
}

func putShared(ctx context.Context, api API, v View, self Self, want Want, current *tailscale.Service) error {
	if err := checkShared(v, current, self, want); err != nil {
		return err
	}
	s, err := shared(v, self, remember(v, self, want), current)
	if err != nil || Same(*current, s) {
		return err
	}
	_, err = Put(ctx, api, s)
	return changedIfRefused(ctx, api, err, current)
}

// changedIfRefused returns ErrChanged instead of a refusal if the service no longer exists or has
// other addresses than the request.
func changedIfRefused(ctx context.Context, api API, err error, previous *tailscale.Service) error {
	if !hadNoEffect(err) {
		return err
	}
	current, gerr := Get(ctx, api, previous.Name)
	if gerr == nil && (current == nil || !slices.Equal(current.Addrs, previous.Addrs)) {
		return ErrChanged
	}
	return err
}

// create creates a service with its former IPv4 address. If that address is in use, the service
// gets another one and records this in its annotations, and create returns the former address.
func create(ctx context.Context, api API, s tailscale.Service, ipv4 string) (former string, err error) {
	if ipv4 != "" {
		s.Addrs = []string{ipv4}
	}
	_, err = Put(ctx, api, s)
	if !hadNoEffect(err) {
		return "", err
	}
	current, gerr := Get(ctx, api, s.Name)
	if gerr != nil {
		return "", gerr
	}
	if current != nil {
		return "", ErrChanged // Another cluster created it first.
	}
	if ipv4 == "" {
		return "", err
	}
	s.Addrs = nil
	s.Annotations = maps.Clone(s.Annotations)
	s.Annotations[meta.AnnotationPreviousAddress] = ipv4
	if _, err = Put(ctx, api, s); err != nil {
		return "", err
	}
	return ipv4, nil
}

// hadNoEffect reports whether the API rejected the content of the request.
func hadNoEffect(err error) bool {
	c := tailscale.ClassOf(err)
	return c == tailscale.ClassInvalid || c == tailscale.ClassConflict
}

// Remove deletes a service that belongs to an object of this cluster alone, and reports whether it
// did. A service that also has owners according to Tailscale's operator is left to them. A service
// of another owner stays unchanged, unless lost reports that it is the object's and has lost its
// annotations. A nil lost accepts none.
func Remove(ctx context.Context, api API, self Self, name string, lost func(*tailscale.Service) (bool, error)) (bool, error) {
	s, err := GetToDelete(ctx, api, name)
	if err != nil || s == nil {
		return false, err
	}
	if s.Annotations[meta.AnnotationOwner] != self.Owner() {
		if lost == nil {
			return false, nil
		}
		if ours, err := lost(s); err != nil || !ours {
			return false, err
		}
	}
	refs, err := ParseOwnerRefs(s.Annotations[meta.AnnotationOwnerReferences])
	if err != nil {
		return false, err
	}
	if refs.Others(self.Cluster) == 0 {
		return true, errors.Wrapf(api.DeleteService(ctx, name), "cannot delete service %q", name)
	}
	released := *s
	if released.Annotations, err = Released(s.Annotations, self.Cluster, false); err != nil {
		return false, err
	}
	_, err = api.PutService(ctx, released)
	return true, errors.Wrapf(err, "cannot leave service %q to its other owners", name)
}

// OwnedAlone reports whether no other cluster is an owner of a service according to Tailscale's operator.
// A service that its object retains then stays as it is: its owner is who gets it back.
func OwnedAlone(s *tailscale.Service, cluster string) (bool, error) {
	refs, err := ParseOwnerRefs(s.Annotations[meta.AnnotationOwnerReferences])
	return err == nil && refs.Others(cluster) == 0, err
}

// release removes this cluster's owner reference from a service that others still use. It also
// removes all other annotations of this package, unless other clusters still share the service.
func release(ctx context.Context, api API, self Self, current *tailscale.Service, shared bool) error {
	s := *current
	var err error
	if s.Annotations, err = Released(current.Annotations, self.Cluster, shared); err != nil || Same(*current, s) {
		return err
	}
	_, err = Put(ctx, api, s)
	return changedIfRefused(ctx, api, err, current)
}

// Released returns annotations without this cluster's owner reference. It also removes all other
// annotations of this package, unless clusters still share the service.
func Released(annotations map[string]string, cluster string, shared bool) (map[string]string, error) {
	out := maps.Clone(annotations)
	if value, ok := out[meta.AnnotationOwnerReferences]; ok {
		refs, err := ParseOwnerRefs(value)
		if err != nil {
			return nil, err
		}
		if refs.has(cluster) {
			if out[meta.AnnotationOwnerReferences], err = refs.without(cluster); err != nil {
				return nil, err
			}
		}
	}
	if shared {
		return out, nil
	}
	if err := SetAnnotations(out, nil); err != nil {
		return nil, err
	}
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, reservedPrefix) })
	return out, nil
}
