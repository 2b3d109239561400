// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

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

// Action applies one action of a plan. It reads a service before it replaces it, because the view
// may be old and the API requires the service's addresses.
func Action(ctx context.Context, api API, v registry.View, self registry.Self, want registry.Want, a registry.Action) (Result, error) {
	if a.Op == registry.OpWait {
		return Result{}, nil
	}
	look := Get
	if a.Op.Deletes() {
		look = GetToDelete
	}
	current, err := look(ctx, api, a.Name)
	if err != nil {
		return Result{}, err
	}
	r, err := a.Request(v, self, want, current)
	switch {
	case err != nil:
		return Result{}, err
	case r.Deletion:
		return Result{}, errors.Wrapf(api.DeleteService(ctx, a.Name), "cannot delete service %q", a.Name)
	case r.Service == nil:
		return Result{}, nil
	case current == nil:
		former, err := create(ctx, api, *r.Service, a.IPv4)
		if a.Op == registry.OpCreateShared {
			return Result{Created: err == nil, AddressTaken: former}, err
		}
		return Result{}, err
	}
	_, err = Put(ctx, api, *r.Service)
	if a.Op != registry.OpPutRecord {
		// Other clusters write the shared service, too.
		err = changedIfRefused(ctx, api, err, current)
	}
	return Result{}, err
}

// Get returns a service, or nil if it does not exist. The error is a *registry.RefusalError if a
// machine of the tailnet has the name.
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
	if _, refused := registry.Refusal(err); refused {
		return nil, nil // No service is a valid result.
	}
	return s, err
}

// Put writes a service. The error is a *registry.RefusalError if a machine of the tailnet has the
// name.
func Put(ctx context.Context, api API, s tailscale.Service) (*tailscale.Service, error) {
	out, err := api.PutService(ctx, s)
	if overLimit(err) {
		if smallest, cerr := registry.Compact(s); cerr == nil {
			out, err = api.PutService(ctx, smallest)
		}
	}
	if err != nil {
		return nil, nameTaken(s.Name, errors.Wrapf(err, "cannot write service %q", s.Name))
	}
	return out, nil
}

// overLimit reports whether the tailnet rejects the annotations of a service. It assumes that the
// message names them, because no source shows such a message.
func overLimit(err error) bool {
	var e *tailscale.Error
	return errors.As(err, &e) && e.Class == tailscale.ClassInvalid && strings.Contains(strings.ToLower(e.Message), "annotation")
}

// nameTaken converts the error that a machine has the name to a refusal.
func nameTaken(name string, err error) error {
	if tailscale.ClassOf(err) != tailscale.ClassNameTaken {
		return err
	}
	return registry.NameTaken(name)
}

// changedIfRefused returns ErrChanged instead of a refusal if the service no longer exists or has
// other addresses than the request.
func changedIfRefused(ctx context.Context, api API, err error, previous *tailscale.Service) error {
	if !hadNoEffect(err) {
		return err
	}
	current, gerr := Get(ctx, api, previous.Name)
	if gerr == nil && (current == nil || !slices.Equal(current.Addrs, previous.Addrs)) {
		return registry.ErrChanged
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
		return "", registry.ErrChanged // Another cluster created it first.
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
func Remove(ctx context.Context, api API, self registry.Self, name string, lost func(*tailscale.Service) (bool, error)) (bool, error) {
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
	refs, err := registry.ParseOwnerRefs(s.Annotations[meta.AnnotationOwnerReferences])
	if err != nil {
		return false, err
	}
	if refs.Others(self.Cluster) == 0 {
		return true, errors.Wrapf(api.DeleteService(ctx, name), "cannot delete service %q", name)
	}
	released := *s
	if released.Annotations, err = registry.Released(s.Annotations, self.Cluster, false); err != nil {
		return false, err
	}
	_, err = api.PutService(ctx, released)
	return true, errors.Wrapf(err, "cannot leave service %q to its other owners", name)
}
