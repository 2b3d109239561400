// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// maxRounds is the maximum number of rounds of planning and applying in one pass. Two are usual:
// the first creates a service, and the second records its address.
const maxRounds = 5

// A ViewFunc returns a view of the tailnet. Passes request a Recent one, which many of them share,
// or a Current one.
type ViewFunc func(ctx context.Context, s tailscale.Staleness) (registry.View, error)

// AttachPass plans and applies actions until there are none. After an error the next pass may
// continue. A *registry.RefusalError means that the cluster must not share the service.
func AttachPass(ctx context.Context, api API, look ViewFunc, self registry.Self, want registry.Want) (Result, error) {
	out := Result{}
	staleness := tailscale.Recent
	for range maxRounds {
		v, err := look(ctx, staleness)
		if err != nil {
			return out, err
		}
		actions, err := registry.Attach(v, self, want)
		if err != nil || len(actions) == 0 {
			return out, err
		}
		staleness, err = attach(ctx, api, v, staleness, self, want, actions, &out)
		if err != nil {
			return out, err
		}
	}
	return out, errors.Wrap(registry.ErrChanged, "cannot settle the shared service, it is tried again")
}

// attach applies a plan until it needs another view, and returns how old that view may be.
func attach(ctx context.Context, api API, v registry.View, seen tailscale.Staleness, self registry.Self, want registry.Want, actions []registry.Action, out *Result) (tailscale.Staleness, error) {
	for _, a := range actions {
		// Only records hold the service's former address, and only a view that was requested after
		// the service was deleted is certain to include all records.
		if a.Op == registry.OpCreateShared && seen != tailscale.Current {
			return tailscale.Current, nil
		}
		r, err := Action(ctx, api, v, self, want, a)
		if errors.Is(err, registry.ErrChanged) {
			return tailscale.Current, nil
		}
		if err != nil {
			return tailscale.Recent, err
		}
		out.Created = out.Created || r.Created
		if r.AddressTaken != "" {
			out.AddressTaken = r.AddressTaken
		}
	}
	return tailscale.Recent, nil
}

// DetachPass runs the next step of detaching and reports whether it was the last one. waitStart is
// the result of the previous pass, and zero at first; losing it does no harm.
func DetachPass(ctx context.Context, api API, look ViewFunc, self registry.Self, want registry.Want, waitStart time.Time) (done bool, next time.Time, err error) {
	v, err := look(ctx, tailscale.Recent)
	if err != nil {
		return false, waitStart, err
	}
	actions, err := registry.Detach(v, self, want, waitStart)
	if err != nil || len(actions) == 0 {
		return err == nil, waitStart, err
	}
	for _, a := range actions {
		switch a.Op {
		case registry.OpWait:
			if waitStart.IsZero() {
				waitStart = v.ServicesAt
			}
			continue
		case registry.OpDeleteRecord:
			waitStart = time.Time{}
		case registry.OpPutRecord, registry.OpCreateShared, registry.OpPutShared, registry.OpDeleteExpired, registry.OpRelease, registry.OpDeleteShared:
		}
		if _, err := Action(ctx, api, v, self, want, a); err != nil && !errors.Is(err, registry.ErrChanged) {
			return false, waitStart, err
		}
	}
	return false, waitStart, nil
}
