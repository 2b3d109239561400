// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// maxRounds of looking and acting in one pass. Two are usual: what the first made
// has an address that the second writes down.
const maxRounds = 5

// A ViewFunc returns a view of the tailnet. Passes ask for a Recent one, which many of them
// share, or for a Current one.
type ViewFunc func(ctx context.Context, s tailscale.Staleness) (View, error)

// AttachPass plans and acts until there is nothing to do. An error may leave the
// rest to the next pass; a *RefusalError says that the cluster must not share.
func AttachPass(ctx context.Context, api API, look ViewFunc, self Self, want Want) (Result, error) {
	out := Result{}
	staleness := tailscale.Recent
	for range maxRounds {
		v, err := look(ctx, staleness)
		if err != nil {
			return out, err
		}
		actions, err := Attach(v, self, want)
		if err != nil || len(actions) == 0 {
			return out, err
		}
		staleness, err = attach(ctx, api, v, staleness, self, want, actions, &out)
		if err != nil {
			return out, err
		}
	}
	return out, errors.Wrap(ErrChanged, "cannot settle the shared service, it is tried again")
}

// attach carries out a plan until something shows that another view is needed,
// and says how old that may be.
func attach(ctx context.Context, api API, v View, seen tailscale.Staleness, self Self, want Want, actions []Action, out *Result) (tailscale.Staleness, error) {
	for _, a := range actions {
		// Only records hold the service's former address, and only a view that
		// was made while it was gone is sure to have them all.
		if a.Op == OpCreateShared && seen != tailscale.Current {
			return tailscale.Current, nil
		}
		r, err := Apply(ctx, api, v, self, want, a)
		if errors.Is(err, ErrChanged) {
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

// DetachPass does the next step of detaching and reports whether it was the last.
// Since is what the pass before returned, zero at first; it may be forgotten.
func DetachPass(ctx context.Context, api API, look ViewFunc, self Self, want Want, since time.Time) (done bool, next time.Time, err error) {
	v, err := look(ctx, tailscale.Recent)
	if err != nil {
		return false, since, err
	}
	actions, err := Detach(v, self, want, since)
	if err != nil || len(actions) == 0 {
		return err == nil, since, err
	}
	for _, a := range actions {
		switch a.Op {
		case OpWait:
			if since.IsZero() {
				since = v.ServicesAt
			}
			continue
		case OpDeleteRecord:
			since = time.Time{}
		case OpPutRecord, OpCreateShared, OpPutShared, OpDeleteExpired, OpRelease, OpDeleteShared:
		}
		if _, err := Apply(ctx, api, v, self, want, a); err != nil && !errors.Is(err, ErrChanged) {
			return false, since, err
		}
	}
	return false, since, nil
}
