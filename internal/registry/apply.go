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

// ErrChanged says that the tailnet is no longer as the view says. Who gets it
// looks again, with a list that was not made before.
var ErrChanged = errors.New("the service changed meanwhile")

// An API is what actions need of Tailscale's API. Errors are those of package
// tailscale.
type API interface {
	// Service returns a service as it is now.
	Service(ctx context.Context, name string) (*tailscale.Service, error)

	// PutService makes or replaces a service.
	PutService(ctx context.Context, s tailscale.Service) (*tailscale.Service, error)

	// DeleteService removes a service; one that does not exist is no error.
	DeleteService(ctx context.Context, name string) error
}

// A Result says what came of an action that people should hear of.
type Result struct {
	// Created reports that the shared service was made.
	Created bool

	// AddressTaken is the IPv4 address that a service could not get back.
	AddressTaken string
}

// Apply carries out one action of a plan. It reads what it replaces: a view may
// be old, and the API wants a service's addresses back.
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
		// Somebody wrote it since: that may be who attaches.
		if seen == nil || !maps.Equal(current.Annotations, seen.Annotations) || !slices.Equal(current.Addrs, seen.Addrs) {
			return Result{}, ErrChanged
		}
	case OpWait:
	}
	return Result{}, errors.Wrapf(api.DeleteService(ctx, a.Name), "cannot delete service %q", a.Name)
}

// Get returns a service, or nil if there is none. The error is a *RefusalError if a
// machine of the tailnet has the name.
func Get(ctx context.Context, api API, name string) (*tailscale.Service, error) {
	s, err := api.Service(ctx, name)
	if tailscale.IsNotFound(err) {
		return nil, nil // None is an answer.
	}
	if err != nil {
		return nil, nameTaken(name, errors.Wrapf(err, "cannot get service %q", name))
	}
	return s, nil
}

// GetToDelete returns a service, or nil if there is none. A machine of the same name is
// no service.
func GetToDelete(ctx context.Context, api API, name string) (*tailscale.Service, error) {
	s, err := Get(ctx, api, name)
	if _, taken := Refusal(err); taken {
		return nil, nil // None is an answer.
	}
	return s, err
}

// Put writes a service. The error is a *RefusalError if a machine of the tailnet has the
// name.
func Put(ctx context.Context, api API, s tailscale.Service) (*tailscale.Service, error) {
	out, err := api.PutService(ctx, s)
	if overLimit(err) {
		if least, cerr := compacted(s); cerr == nil {
			out, err = api.PutService(ctx, least)
		}
	}
	if err != nil {
		return nil, nameTaken(s.Name, errors.Wrapf(err, "cannot write service %q", s.Name))
	}
	return out, nil
}

// nameTaken turns an error that says that a machine has the name into a refusal.
func nameTaken(name string, err error) error {
	if tailscale.ClassOf(err) != tailscale.ClassNameTaken {
		return err
	}
	return &RefusalError{
		Reason:  meta.ReasonNameTaken,
		Message: fmt.Sprintf("a machine of the tailnet has the name %q; rename the machine, or choose another name for the service", strings.TrimPrefix(name, servicePrefix)),
	}
}

// Refusal returns the refusal that an error is, and whether it is one.
func Refusal(err error) (*RefusalError, bool) {
	var r *RefusalError
	ok := errors.As(err, &r)
	return r, ok
}

// deletes reports whether an action only takes something away.
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
	taken, err := create(ctx, api, s, a.IPv4)
	return Result{Created: err == nil, AddressTaken: taken}, err
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

// changedIfRefused turns a refusal into ErrChanged if the service is gone or has
// other addresses than were given back.
func changedIfRefused(ctx context.Context, api API, err error, was *tailscale.Service) error {
	if !hadNoEffect(err) {
		return err
	}
	now, gerr := Get(ctx, api, was.Name)
	if gerr == nil && (now == nil || !slices.Equal(now.Addrs, was.Addrs)) {
		return ErrChanged
	}
	return err
}

// create makes a service, with the IPv4 address that it had. If it cannot have
// that one, it gets another, the address is returned, and the service says so.
func create(ctx context.Context, api API, s tailscale.Service, ipv4 string) (taken string, err error) {
	if ipv4 != "" {
		s.Addrs = []string{ipv4}
	}
	_, err = Put(ctx, api, s)
	if !hadNoEffect(err) {
		return "", err
	}
	now, gerr := Get(ctx, api, s.Name)
	if gerr != nil {
		return "", gerr
	}
	if now != nil {
		return "", ErrChanged // Somebody was quicker.
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

// hadNoEffect reports whether the API did not like what it was given.
func hadNoEffect(err error) bool {
	c := tailscale.ClassOf(err)
	return c == tailscale.ClassInvalid || c == tailscale.ClassConflict
}

// release takes the own owner reference off a service that others keep, and,
// unless other clusters still share it, all that was written on it beside.
func release(ctx context.Context, api API, self Self, current *tailscale.Service, shared bool) error {
	s := *current
	var err error
	if s.Annotations, err = Released(current.Annotations, self.Cluster, shared); err != nil || Same(*current, s) {
		return err
	}
	_, err = Put(ctx, api, s)
	return changedIfRefused(ctx, api, err, current)
}

// Released returns annotations without the own owner reference, and, unless
// clusters still share the service, without all that was written beside.
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
